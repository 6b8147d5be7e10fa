"""Runs audits one after the other, and writes their results: to the terminal, as JSON, and as a table."""

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console

from postcrash.apps import Application
from postcrash.harness.auditing.audit import Audit
from postcrash.harness.auditing.coverage_estimate import RISK
from postcrash.harness.auditing.flushes import flushes_in
from postcrash.harness.auditing.second_crash import SecondCrashes
from postcrash.harness.cli.judging.characterize import targets_named
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.coverage import coverage, states_text, within_text
from postcrash.harness.examination.result import Examination, Ruling, counts_json
from postcrash.harness.examination.session import Session
from postcrash.harness.files.output import command_line, write_json, write_text
from postcrash.harness.findings.finding_details import with_block_names
from postcrash.harness.findings.last_finding import keep_last
from postcrash.harness.guests.engine import Uml
from postcrash.harness.guests.kernels.suitability import ONLY_UML_RUNS_PROGRAMS
from postcrash.model import worst
from postcrash.reports.explanation.explanation_text import render_text
from postcrash.reports.tables.applications import share_text
from postcrash.reports.tables.table import VERDICT_COLOURS
from postcrash.targets import Target


def require_programs_run(session: Session) -> None:
    """Raise UsageError if programs of this machine do not run in guests of the session's kernel."""
    if not isinstance(session.kernel.engine, Uml):
        raise UsageError(f"{session.kernel.label}: {ONLY_UML_RUNS_PROGRAMS}")


@dataclass(frozen=True, slots=True)
class AuditFiles:
    """Where the results of audits are written besides the terminal. None: nowhere.

    table  makes the text of the file `markdown`
    """

    json: str | None
    markdown: str | None
    table: Callable[..., str]


def audit_each(
    session: Session,
    applications: Sequence[Application],
    targets: Sequence[str],
    audit_one: Callable[[Application, Target], Audit],
    files: AuditFiles,
) -> int:
    """Audit each application on each target. The table is written after each audit. Returns the exit code."""
    require_programs_run(session)
    audits = []
    for application in applications:
        for target in targets_named(session, targets):
            audits.append(audit_one(application, target))
            if files.json != "-":
                print_audit(session, audits[-1])
            if files.markdown is not None:
                date = datetime.datetime.now(datetime.UTC).date()
                table = files.table(audits, command=command_line(), kernel=session.kernel.label, date=date)
                write_text(files.markdown, table)
    keep_last(session.store, [finding.id for each in audits for finding in each.findings])
    write_json(files.json, {"audits": [audit_to_json(each) for each in audits]})
    return worst(each.verdict for each in audits).exit_code


def print_audit(session: Session, done: Audit) -> None:
    """Print the findings of an audit, what each judge says on each disk, and the verdict."""
    console = Console()
    for result in done.everything:
        _print_findings(console, session, result)
    for how, result in zip(done.how, done.results, strict=True):
        disk = "completes writes at once" if how.held is None else f"holds completions back (seed {how.held})"
        console.print(f"on a disk that {disk}:", highlight=False)
        for name, ruling in result.rulings.items():
            _print_ruling(console, name, ruling)
        for certificate in result.certificates:
            if certificate.left_out is not None:
                console.print(f"  covered: {coverage(certificate)}", markup=False, highlight=False)
        for note in result.notes:
            console.print(f"  note: {note}", markup=False, highlight=False)
        within = f", {within_text(result)}" if how.depth > 1 else ""
        console.print(
            f"  {states_text(result)}{within}, {result.recoveries} recoveries, {result.outcomes} outcomes",
            highlight=False,
        )
    if done.application.left_out:
        _print_left_out(console, session, done)
    if done.second is not None:
        _print_second(console, done.second)
    judged = f": {done.folders} folders judged" if done.folders else ""
    console.print(
        f"[bold]{done.verdict.name}[/]: {done.application.name} on {done.target.name}, {done.kernel}{judged}",
        highlight=False,
    )
    if done.ways:
        console.print(f"recorded {_recordings_text(done)}", highlight=False)


def _recordings_text(done: Audit) -> str:
    if done.recordings == 1:
        return "once: nobody knows whether other runs are like this one"
    ways = "always in the same way" if done.ways == 1 else f"in {done.ways} different ways"
    share = f"at most {share_text(done.unseen)} of all runs are in other ways (confidence {1 - RISK:.0%})"
    return f"{done.recordings} times, {ways}: {share}"


def _print_findings(console: Console, session: Session, result: Examination) -> None:
    for finding in with_block_names(result.findings, session.store):
        console.rule(f"[red]{finding.message}[/] · {finding.id}")
        if finding.explanation is not None:
            render_text(finding.explanation, console, finding.needed)
        again = f"again: {session.invocation} repro {finding.id}"
        console.print(again, markup=False, highlight=False, soft_wrap=True)


def _print_left_out(console: Console, session: Session, done: Audit) -> None:
    """The flushes that were left out, for each recording in which others were."""
    recordings = [result.recording for result in done.results if result.recording]
    flushes = [flushes_in(session.store.recording_path(recording)) for recording in recordings]
    for texts in dict.fromkeys(tuple(flush.text for flush in each if flush.left_out) for each in flushes):
        console.print(f"left out: {', '.join(texts)}", markup=False, highlight=False)


def _print_ruling(console: Console, name: str, ruling: Ruling) -> None:
    reason = f": {ruling.reason}" if ruling.reason else ""
    console.print(f"  [{VERDICT_COLOURS[ruling.verdict]}]{ruling.verdict.symbol}[/] {name}", end="")
    console.print(reason, markup=False, highlight=False)


def _print_second(console: Console, second: SecondCrashes) -> None:
    """One line for each judge: the worst that it says of any folder."""
    console.print(f"a second crash, in its own recovery of each of {second.folders} folders:", highlight=False)
    for name in dict.fromkeys(name for result in second.results for name in result.rulings):
        rulings = [result.rulings[name] for result in second.results if name in result.rulings]
        _print_ruling(console, name, max(rulings, key=lambda ruling: ruling.verdict))
    for note in dict.fromkeys(note for result in second.results for note in result.notes):
        console.print(f"  note: {note}", markup=False, highlight=False)
    if second.undecided:
        console.print(f"  [yellow]?[/] {second.undecided}", highlight=False)
    elif second.failed:
        console.print(f"  note: in {second.failed} of the folders its recovery fails by itself", highlight=False)
    covered, states, recoveries = second.counts
    console.print(f"  {covered:,} of {states:,} crash states, {recoveries:,} recoveries", highlight=False)


def audit_to_json(done: Audit) -> dict[str, object]:
    """An audit as decoded JSON."""
    wire: dict[str, object] = {
        "application": done.application.name,
        "target": done.target.name,
        "kernel": done.kernel,
        "verdict": done.verdict.name.lower(),
        "workload": done.workload.to_text(),
        "folders": done.folders,
        "recordings": done.recordings,
        "ways": done.ways,
        "unseen_at_most": done.unseen,
        "disks": [
            {"held": how.held, **_result_to_json(result)} for how, result in zip(done.how, done.results, strict=True)
        ],
    }
    return wire | ({"second_crash": _second_to_json(done.second)} if done.second else {})


def _result_to_json(result: Examination) -> dict[str, object]:
    return {
        **counts_json(result.counts),
        "recording": result.recording,
        "judges": {
            name: {"verdict": ruling.verdict.name.lower(), "reason": ruling.reason}
            for name, ruling in result.rulings.items()
        },
        "findings": [finding.to_json() for finding in result.findings],
        "notes": result.notes,
    }


def _second_to_json(second: SecondCrashes) -> dict[str, object]:
    return {
        "folders": second.folders,
        "failed": second.failed,
        "verdict": second.verdict.name.lower(),
        "recoveries_of_folders": [
            {
                "folder": each.state.folder.digest,
                "acknowledged": list(each.state.acknowledged),
                "held": each.how.held,
                **_result_to_json(each.result),
            }
            for each in second.crashes
        ],
    }
