"""`postcrash check`: judge every crash state of one workload on one target with every judge."""

from collections.abc import Sequence
from dataclasses import replace

import click
from rich.console import Console

from postcrash.harness.cli.findings.minimize import minimized, print_minimized, to_json
from postcrash.harness.cli.options import (
    expect_option,
    exploration_options,
    fresh_option,
    json_option,
    kernel_options,
    promised_option,
    target_option,
)
from postcrash.harness.cli.progress import TerminalProgress
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.campaign import run_campaign
from postcrash.harness.examination.certificate import Certificate
from postcrash.harness.examination.coverage import coverage, states_text, within_text
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import is_shown, judges_named, kind_of
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.planner import plan_check
from postcrash.harness.examination.repair import said_repair
from postcrash.harness.examination.result import Examination, Ruling, counts_json
from postcrash.harness.examination.session import Session
from postcrash.harness.expectations.expectation import Expectation
from postcrash.harness.expectations.reference import opened
from postcrash.harness.files.output import write_json
from postcrash.harness.files.workload_files import loaded
from postcrash.harness.findings.finding_details import with_block_names
from postcrash.harness.findings.last_finding import keep_last
from postcrash.model import Verdict
from postcrash.model.judge import Judge
from postcrash.properties import HOTDEP13
from postcrash.properties.promises import Statements, statements_of, verdict_on_promises
from postcrash.reports.explanation.explanation_text import render_text
from postcrash.reports.tables.table import VERDICT_COLOURS
from postcrash.store.json_codec import to_plain
from postcrash.store.records import standing_json
from postcrash.targets import RecoveryKind, Target

UNTESTED = "–"
"""Stands in place of a verdict's symbol for a judge that was not put to the test."""
NOT_LOOKED_AT = "not looked at: a disk that holds completions back, as gates and tables have it besides (--held 1)"


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
@target_option
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="NAME[,NAME...]",
    help="Only these properties or checkers; can be repeated.",
)
@click.option(
    "--minimize", is_flag=True, help="Look for the smallest workload that breaks the same judge, as `minimize` does."
)
@expect_option("documents")
@fresh_option
@exploration_options
@kernel_options
@json_option
@promised_option
@click.pass_obj
def check(
    session: Session,
    file: str,
    target_name: str,
    judges: Sequence[str],
    minimize: bool,
    expected: Expectation,
    how: Exploration,
    guests: int | None,
    fresh: bool,
    json_file: str | None,
    promised: bool,
) -> int:
    """Run the workload FILE and judge every crash state that it can leave.

    Judged on every state: it mounts, the kernel log is clean, fsck is clean, what fsync, fdatasync, msync, sync, O_SYNC
    and O_DSYNC promised is there, nothing appears that never was, link counts are right, everything can be changed,
    deleted and written anew, and each property of the table (P1 to P5, P2-null) holds. With --judge, only
    the named ones judge.

    It is recorded on a disk that completes writes at once, or with --held on one that holds completions back. Hunts,
    gates and tables look at both.

    FILE is in the .ops language (docs/workloads.md). `commit`, `sync` and `checkpoint` are added at its end. They stand
    for what the kernel does later by itself, in this one order.

    \b
    Examples:
      postcrash check examples/rename-replace.ops --target ext4-original
      postcrash check examples/create-fsync.ops --target btrfs --judge durability --json -
    """
    target = session.target(target_name)
    workload = loaded(file)
    if judges and (expected.compares or expected.contract):
        raise UsageError(f"--judge names who judges, and so does --expect {expected.name}: give one of them")
    with opened(session, expected, target, how) as expected:
        chosen = _judges(judges, expected, target, how)
        plan = plan_check(session, target, workload, chosen, how)
        with TerminalProgress(1) as progress:
            (result,) = run_campaign([plan], session.crew(guests), session.store, progress, fresh=fresh)
        if result.unsupported:
            raise UsageError(result.notes[0])
        result = replace(result, findings=with_block_names(result.findings, session.store))
        firsts = {finding.checker: finding for finding in reversed(result.findings)} if minimize else {}
        smallest = [(finding, minimized(session, finding, how.budget.recoveries, fresh)) for finding in firsts.values()]
        keep_last(session.store, [least.finding.id for _, least in smallest] or [each.id for each in result.findings])
        about = {name: statements_of(target, how.model, name) for name in result.rulings}
        tested = {name: ruling.verdict for name, ruling in result.rulings.items() if ruling.is_tested}
        on_promises = verdict_on_promises((verdict, about[name]) for name, verdict in tested.items())
        meanings = {name: _meaning(plan, expected, name, ruling) for name, ruling in result.rulings.items()}
        document = {**_to_json(result, about, meanings), "held": [how.held], "expect": expected.name}
        document["on_promises"] = on_promises.name.lower()
        write_json(json_file, {**document, "minimal": [to_json(*pair) for pair in smallest]})
        if json_file != "-":
            _print(plan, result, expected, session.invocation)
            for pair in smallest:
                print_minimized(*pair, session.invocation)
        return (on_promises if promised else result.verdict).exit_code


def _judges(names: Sequence[str], expected: Expectation, target: Target, how: Exploration) -> tuple[Judge, ...]:
    try:
        named = judges_named(name.strip() for given in names for name in given.split(","))
    except LookupError as error:
        raise UsageError(str(error.args[0])) from error
    for judge in named:
        if not is_shown(judge, target, how.recovery):
            raise UsageError(f"{judge.name} judges a program that no recovery of {target.name} runs")
    properties = () if expected.compares else HOTDEP13
    every: dict[str, Judge] = {each.name: each for each in properties}
    every = {judge.name: judge for judge in expected.judges(target, how.model)} | every
    return named or tuple(judge for judge in every.values() if is_shown(judge, target, how.recovery))


def _word(ruling: Ruling) -> str:
    """The verdict as it stands in JSON."""
    return ruling.verdict.name.lower() if ruling.is_tested else "untested"


def _meaning(plan: Plan, expected: Expectation, judge: str, ruling: Ruling) -> str:
    """What the judge's verdict means, with the rule and its source; empty if it was not put to the test."""
    return expected.standing(plan.target, plan.how.model, judge, ruling.verdict) if ruling.is_tested else ""


def _to_json(result: Examination, about: dict[str, Statements], meanings: dict[str, str]) -> dict[str, object]:
    rulings = {
        name: {
            "verdict": _word(ruling),
            "relevant": ruling.relevant,
            "reason": ruling.reason,
            **standing_json(about[name], ruling.verdict if ruling.is_tested else Verdict.UNDECIDED),
            "meaning": meanings[name],
        }
        for name, ruling in result.rulings.items()
    }
    return {
        "verdict": result.verdict.name.lower(),
        **counts_json(result.counts),
        "recording": result.recording,
        "device": result.device,
        "intervals": [_interval(certificate) for certificate in result.certificates],
        "judges": rulings,
        "notes": result.notes,
        "findings": [finding.to_json() for finding in result.findings],
    }


def _interval(certificate: Certificate) -> dict[str, object]:
    return {
        "kind": kind_of(certificate.recover),
        "repaired": certificate.recover.is_repaired,
        "index": certificate.index,
        "instants": to_plain(certificate.instants),
        "states": str(certificate.states),
        "covered": str(certificate.covered),
        "recoveries": certificate.recoveries,
        "remembered": certificate.remembered,
        "reached": to_plain(certificate.reached),
        "left_out": certificate.left_out,
    }


def _kind(recover: RecoveryKind) -> str:
    """The kind of recovery, in words for people."""
    return f"{kind_of(recover)} after {said_repair(recover)}" if recover.is_repaired else kind_of(recover)


def _print(plan: Plan, result: Examination, expected: Expectation, invocation: str) -> None:
    console = Console()
    for finding in result.findings:
        console.rule(f"[red]{finding.checker}[/] · {finding.id}")
        if finding.explanation is not None:
            render_text(finding.explanation, console, finding.needed)
        console.print(f"again: {invocation} repro {finding.id}", markup=False, highlight=False, soft_wrap=True)
    console.rule()
    for name, ruling in result.rulings.items():
        if not ruling.is_tested:
            console.print(f"[dim]{UNTESTED}[/] {name} (not put to the test)", highlight=False)
            continue
        meaning = expected.standing(plan.target, plan.how.model, name, ruling.verdict)
        reason = f": {ruling.reason}" if ruling.reason else ""
        console.print(f"[{VERDICT_COLOURS[ruling.verdict]}]{ruling.verdict.symbol}[/] {name}", end="")
        console.print(f" ({meaning}){reason}" if meaning else reason, markup=False, highlight=False)
    incomplete = [certificate for certificate in result.certificates if certificate.left_out is not None]
    for certificate in incomplete:
        if certificate.within is None:
            kind = _kind(certificate.recover)
            console.print(f"covered ({kind}): {coverage(certificate)}", markup=False, highlight=False)
    if within := sum(certificate.within is not None for certificate in incomplete):
        console.print(f"covered in part: {within} crash intervals of recoveries", markup=False, highlight=False)
    for note in result.notes:
        console.print(f"note: {note}", markup=False, highlight=False)
    console.print(f"recorded on: {result.device}", markup=False, highlight=False)
    if plan.how.held is None:
        console.print(NOT_LOOKED_AT, markup=False, highlight=False)
    in_recovery = ""
    if plan.how.depth > 1:
        only = "" if all(kind.walk for kind in plan.recoveries) else " (for walk only)"
        in_recovery = f"{within_text(result)}{only}, "
    kinds = ", ".join(map(_kind, plan.recoveries))
    console.print(
        f"[bold]{result.verdict.name}[/] on {plan.target.name}, {plan.kernel}, device model {plan.how.model}, "
        f"{plan.how.disk}: {states_text(result)}, {in_recovery}"
        f"each recovered for {kinds}: {result.recoveries} recoveries, {result.remembered} remembered, "
        f"{result.outcomes} outcomes, {result.rechecks} run again",
        highlight=False,
    )
