"""`postcrash hunt`: every bounded workload on one target, every crash state."""

import re
import time
from dataclasses import replace

import click
from rich.console import Console

from postcrash.harness.commands.minimize import minimized
from postcrash.harness.commands.options import (
    expect_option,
    exploration_options,
    json_option,
    kernel_options,
    promised_option,
)
from postcrash.harness.errors import NothingSelectedError
from postcrash.harness.examination import COUNTS
from postcrash.harness.examine import Plan
from postcrash.harness.expectation import Level, checker_judges, standing_of
from postcrash.harness.exploration import Exploration
from postcrash.harness.groups import Story, kinds_lost, stories
from postcrash.harness.hunt import Hunted, Selection
from postcrash.harness.hunt import hunt as run
from postcrash.harness.judges import kind_of, recoveries_for
from postcrash.harness.output import count_text, write_json
from postcrash.harness.progress import TerminalProgress
from postcrash.harness.recovery import SameRecovery
from postcrash.harness.session import Session
from postcrash.model import Verdict, parse_workload
from postcrash.properties.promises import Said, said_of
from postcrash.reports.records import standing_json
from postcrash.workloads import GRAMMARS, Space

_SHARD = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")
NOTES_MAX = 5


def _shard(_context: click.Context, _parameter: click.Parameter, text: str) -> tuple[int, int]:
    match = _SHARD.fullmatch(text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise click.BadParameter(f"{text!r} is no shard such as 1/4, which is the first of four")
    return int(match[1]), int(match[2])


@click.command()
@click.option(
    "--ops", "length", type=click.IntRange(1, 3), default=1, show_default=True, help="Operations of each workload."
)
@click.option("--target", "target_name", required=True, metavar="NAME", help="The file system, as in the table.")
@click.option(
    "--grammar",
    type=click.Choice(list(GRAMMARS)),
    default="ace",
    show_default=True,
    help="Which operations and files: ace has ACE's bounds, full more.",
)
@click.option(
    "--shard", callback=_shard, default="1/1", show_default=True, metavar="I/N", help="Every N-th workload from I on."
)
@click.option(
    "--workload-limit", type=click.IntRange(1), metavar="N", help="Only N workloads, drawn at random with --seed."
)
@click.option(
    "--symmetry/--no-symmetry",
    default=True,
    show_default=True,
    help="Leave out workloads that differ from another one only in names that mean nothing.",
)
@click.option("--fsck", is_flag=True, help="Run the file system's checker on every crash state too; takes far longer.")
@click.option(
    "--use", is_flag=True, help="Change, delete and write after every recovery too; takes some four times as long."
)
@click.option(
    "--minimize/--no-minimize",
    default=True,
    show_default=True,
    help="Look for the smallest workload of each group of findings.",
)
@expect_option("practice")
@exploration_options
@kernel_options
@json_option
@promised_option
@click.pass_obj
def hunt(
    session: Session,
    length: int,
    target_name: str,
    grammar: str,
    shard: tuple[int, int],
    workload_limit: int | None,
    symmetry: bool,
    fsck: bool,
    use: bool,
    minimize: bool,
    level: Level,
    how: Exploration,
    guests: int | None,
    fresh: bool,
    json_file: str | None,
    promised: bool,
) -> int:
    """Run every workload of so many operations and judge every crash state that each can leave.

    \b
    Judged are all checkers: what was promised durable is there, nothing appears that never was, and so on; and what
    fstests expects of such a file system, without --expect documents. Findings are grouped by their cause; each group
    is shown with its smallest workload (docs/hunting.md). Interrupted, the same command goes on where it was.

    \b
    Examples:
      postcrash hunt --ops 1 --target ext4-current
      postcrash hunt --ops 2 --target btrfs --shard 1/24
      postcrash hunt --ops 3 --target xfs --workload-limit 1000 --seed 7 --json -
    """
    selection = Selection(Space(GRAMMARS[grammar], length), shard, workload_limit, how.seed, symmetry)
    if not selection.numbers():
        raise NothingSelectedError(
            f"there are {len(selection.space)} workloads: shard {shard[0]} of {shard[1]} is empty"
        )
    plan = _plan(session, target_name, level, how, {"walk": True, "fsck": fsck, "use": use})
    started = time.monotonic()
    with TerminalProgress(len(selection.numbers()), rates=True) as progress:
        hunted = run(selection, plan, session.crew(guests), session.store, progress, fresh=fresh)
    seconds = time.monotonic() - started
    least = (lambda finding: minimized(session, finding, how.budget.recoveries, fresh)) if minimize else None
    told = stories(hunted.groups.values(), session.store, least)
    write_json(json_file, {**_to_json(selection, plan, hunted, told, seconds), "expect": level})
    if json_file != "-":
        _print(selection, plan, hunted, told, seconds)
    return (_on_promises(plan, hunted) if promised else hunted.verdict).exit_code


def _on_promises(plan: Plan, hunted: Hunted) -> Verdict:
    """The hunt's verdict, counting only the groups that break a promise; UNDECIDED if no promise was tested."""
    if not any(hunted.tested[judge.name] and _said(plan, judge.name).promise for judge in plan.judges):
        return Verdict.UNDECIDED
    groups = {cause: group for cause, group in hunted.groups.items() if _said(plan, cause.checker).promise}
    return replace(hunted, groups=groups).verdict


def _said(plan: Plan, checker: str) -> Said:
    return said_of(plan.target, plan.how.model, checker)


def _plan(session: Session, target_name: str, level: Level, how: Exploration, wanted: dict[str, bool]) -> Plan:
    """What is done with each workload; here it has the smallest that there is. `wanted` are kinds of recovery."""
    target = session.target(target_name)
    all_judges = checker_judges(level, target, how.model)
    kinds = tuple(kind for kind in recoveries_for(all_judges, target) if wanted[kind_of(kind)])
    session.require(target, fsck=wanted["fsck"])
    return Plan(
        target=target,
        base=session.base(target),
        kernel=session.kernel.label,
        guest=session.guest(),
        workload=parse_workload("sync", "none"),
        judges=tuple(judge for judge in all_judges if any(judge.wants(kind) for kind in kinds)),
        recoveries=kinds,
        how=how,
    )


def _to_json(selection: Selection, plan: Plan, hunted: Hunted, told: list[Story], seconds: float) -> dict[str, object]:
    counts = hunted.counts
    return {
        "verdict": hunted.verdict.name.lower(),
        "target": plan.target.name,
        "kernel": plan.kernel,
        "model": plan.how.model,
        "judges": [judge.name for judge in plan.judges],
        "tested": {name: hunted.tested[name] for name in _judges(plan)},
        "grammar": selection.space.grammar.name,
        "operations": selection.space.length,
        "shard": list(selection.shard),
        "sample": selection.sample,
        "seed": selection.seed,
        "symmetry": selection.symmetry,
        "workloads": {
            "space": len(selection.space),
            "selected": len(selection.numbers()),
            "same": hunted.same,
            "alike": hunted.alike,
            "run": hunted.run,
            "lacking": dict(hunted.lacking),
            "refused": dict(hunted.refused),
            "undecided": dict(hunted.undecided),
        },
        "states": str(counts["covered"]),
        "states_total": str(counts["states"]),
        "states_within_recovery": str(counts["covered_within"]),
        "states_within_recovery_total": str(counts["states_within"]),
        **{name: counts[name] for name in COUNTS},
        "seconds": round(seconds, 1),
        "notes": hunted.notes,
        "on_promises": _on_promises(plan, hunted).name.lower(),
        "groups": [
            {**_story(story), **standing_json(_said(plan, story.shown.checker), Verdict.VIOLATED)} for story in told
        ],
    }


def _judges(plan: Plan) -> list[str]:
    """The names of all who judge, in the order of the tables."""
    return [judge.name for judge in plan.judges] + [SameRecovery.name] * (plan.how.depth > 1)


def _story(story: Story) -> dict[str, object]:
    return {
        "checker": story.shown.checker,
        "message": story.shown.message,
        "lost": list(kinds_lost(story.shown)),
        "workload": parse_workload(story.shown.workload_text, story.shown.workload_name).without_tail().to_text(),
        "finding": story.representative.id,
        "minimal": None if story.minimal is None else story.minimal.id,
        "note": story.note,
        "count": story.count,
        "names": story.names,
        "causes": [cause.to_json() for cause in story.causes],
    }


def _print(selection: Selection, plan: Plan, hunted: Hunted, told: list[Story], seconds: float) -> None:
    console = Console(soft_wrap=True, highlight=False)
    for number, story in enumerate(told, 1):
        console.rule(f"[red]{number}[/] · {story.shown.checker} · {story.count} workloads, first {story.names[0]}")
        console.print(story.shown.message, markup=False)
        meaning = standing_of(plan.target, plan.how.model, story.shown.checker, Verdict.VIOLATED)
        console.print(meaning, markup=False)
        console.print(f"lost: {', '.join(kinds_lost(story.shown)) or 'nothing that had been sent'}", markup=False)
        console.print(_story(story)["workload"], markup=False, end="")
        if story.note:
            console.print(f"not made smaller: {story.note}", markup=False)
        console.print(f"explained: postcrash explain {story.shown.id}")
    if told:
        console.rule()
    for title, reasons in (
        ("not on this file system", hunted.lacking),
        ("could not be run", hunted.refused),
        ("undecided", hunted.undecided),
    ):
        for reason, count in reasons.most_common():
            console.print(f"{title}: {count} workloads: {reason}", markup=False)
    for note in hunted.notes[:NOTES_MAX]:
        console.print(f"note: {note}", markup=False)
    if len(hunted.notes) > NOTES_MAX:
        console.print(f"{len(hunted.notes) - NOTES_MAX} more notes: see --json")
    console.print(_tested(plan, hunted))
    console.print(_asked(selection, hunted))
    console.print(_came_to(plan, hunted, seconds))


def _tested(plan: Plan, hunted: Hunted) -> str:
    """In how many workloads each judge's premise was true; what a judge passes without it says nothing."""
    counts = [(name, hunted.tested[name]) for name in _judges(plan)]
    never = ", ".join(name for name, count in counts if not count)
    some = ", ".join(f"{name} {count}" for name, count in counts if count)
    return f"put to the test, of {hunted.run} workloads: {some or 'nothing'}" + (f"; never: {never}" if never else "")


def _asked(selection: Selection, hunted: Hunted) -> str:
    """Which workloads were run, and which were not."""
    space = selection.space
    of = f"{len(space)} workloads of {space.length} operations, grammar {space.grammar.name}"
    parts = [f"{len(selection.numbers())} of {of}" if len(selection.numbers()) < len(space) else of]
    if selection.shard != (1, 1):
        parts.append("shard {}/{}".format(*selection.shard))
    if selection.sample is not None:
        parts.append(f"drawn with seed {selection.seed}")
    if hunted.same:
        parts.append(f"{hunted.same} are equal to another")
    if hunted.alike:
        parts.append(f"{hunted.alike} equal to another but for names, left out (--no-symmetry runs them)")
    return "; ".join(parts)


def _came_to(plan: Plan, hunted: Hunted, seconds: float) -> str:
    counts = hunted.counts
    within = ""
    if plan.how.depth > 1:
        covered, total = count_text(counts["covered_within"]), count_text(counts["states_within"])
        within = f"{covered} of {total} within their recovery, "
    verdict: Verdict = hunted.verdict
    return (
        f"[bold]{verdict.name}[/] on {plan.target.name}, {plan.kernel}, device model {plan.how.model}: "
        f"{hunted.run} workloads, {count_text(counts['covered'])} of {count_text(counts['states'])} crash states at "
        f"{counts['instants']} instants, {within}{counts['recoveries']} recoveries, "
        f"{counts['remembered']} remembered, {counts['outcomes']} outcomes, "
        f"{counts['rechecks']} run again; {seconds:.0f} s, "
        f"{hunted.run / seconds:.1f} workloads/s, {counts['recoveries'] / seconds:.0f} recoveries/s"
    )
