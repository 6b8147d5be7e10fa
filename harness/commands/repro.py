"""`postcrash repro ID`: recover one crash state again."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console

from postcrash.harness.commands.options import json_option, kernel_options
from postcrash.harness.errors import GuestLostError, UsageError
from postcrash.harness.examination.casualties import doing
from postcrash.harness.examination.crash_in_recovery import SameRecovery, judge_again, source_of
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import Judge
from postcrash.harness.examination.recording import record, settings_for_recorders
from postcrash.harness.expectations.reference import judges_of
from postcrash.harness.findings.minimize import recorded_how
from postcrash.harness.guests.machine import Machine, MachineSettings, Source
from postcrash.harness.output import write_json
from postcrash.harness.session import Session
from postcrash.model import ExitCode, History, Observation, ObservationError, Verdict, parse_workload, worst
from postcrash.reports.store.records import Finding
from postcrash.targets import RecoveryKind


@click.command()
@click.argument("id")
@click.option("--times", type=click.IntRange(1, 100_000), default=1, show_default=True, help="Run it this many times.")
@kernel_options
@json_option
@click.pass_obj
def repro(session: Session, id: str, times: int, json_file: str | None) -> int:
    """Recover the crash state of finding ID again and say whether it still fails.

    If guests were lost while they ran the workload, the finding has no crash state. Then its workload is run again.

    \b
    `check` and `characterize` print the ID, such as f-1a2b3c4d5e6f7a8b. Exit code 1 if it fails every time, 0 if it
    never does, 3 if it sometimes does: then something is not deterministic. 6 if it does not fail, but could not be
    judged.
    """
    finding = session.store.finding(id)
    with source_of(session.store, finding) as (source, under), Machine(_settings(session, finding)) as machine:
        if finding.is_of_run:
            answers = [_run_once(session, machine, source, finding) for _ in range(times)]
        else:
            with _judge(session, machine, under, finding) as judge:
                answers = [_once(machine, source, finding, judge) for _ in range(times)]
    failures = sum(verdict is Verdict.VIOLATED for verdict, _ in answers)
    message = answers[-1][1]
    write_json(
        json_file,
        {"id": id, "state": finding.state, "kernel": session.kernel.label}
        | {"runs": times, "failures": failures, "message": message},
    )
    if json_file != "-":
        console = Console(soft_wrap=True)
        label = session.kernel.label
        found = "" if finding.guest == session.guest() else f", but was found on {_other(finding, label)}"
        place = f"{finding.checker} on {finding.target}, {label}{found}"
        console.print(f"{id}: fails {failures} of {times} times ({place})", highlight=False)
        console.print(message, markup=False, highlight=False)
    if 0 < failures < times:
        return ExitCode.INFRASTRUCTURE
    return worst(verdict for verdict, _ in answers).exit_code


def _other(finding: Finding, label: str) -> str:
    """The guest on which the finding was made, if it is not the one here."""
    same_name = "another build of it, or with other modules or programs"
    return same_name if finding.kernel == label else finding.kernel


def _settings(session: Session, finding: Finding) -> MachineSettings:
    if not finding.is_of_run:
        return session.settings
    return settings_for_recorders(session.settings, [recorded_how(session.store, finding)["recorder"]])


def _run_once(session: Session, machine: Machine, source: Source, finding: Finding) -> tuple[Verdict, str]:
    """VIOLATED if two guests in a row are lost while they run the finding's workload, as before."""
    how, workload = recorded_how(session.store, finding), parse_workload(finding.workload_text, finding.workload_name)
    mount = session.target(finding.target).mount_wire()
    with tempfile.TemporaryDirectory(prefix="postcrash-") as folder:
        out = Path(folder) / "run.pcr"
        try:
            record(machine, source.base, mount, workload, out, {}, held=how["held"], recorder=how["recorder"])
        except GuestLostError as error:
            return Verdict.VIOLATED, f"{doing(workload, error.lost)}: {error}"
    if machine.take_lost():
        return Verdict.HOLDS, "one guest was lost, and a fresh one ran the workload to its end"
    return Verdict.HOLDS, "the workload ran to its end"


@contextmanager
def _judge(session: Session, machine: Machine, under: Source | None, finding: Finding) -> Iterator[Judge | None]:
    """The judge that objected. None if the guest was lost."""
    if under is not None and finding.checker == SameRecovery.name and finding.casualty is None:
        yield judge_again(machine, under, finding)
        return
    with judges_of(session, finding, session.target(finding.target), Exploration(finding.model)) as judges:
        yield next(iter(judges), None) if finding.casualty is None else None


def _once(machine: Machine, source: Source, finding: Finding, judge: Judge | None) -> tuple[Verdict, str]:
    executed = machine.execute(source, finding.interval, finding.choices, RecoveryKind.from_wire(finding.recover))
    if executed.casualty is not None:
        return Verdict.UNDECIDED if judge else Verdict.VIOLATED, executed.casualty.what
    if judge is None:
        return Verdict.HOLDS, "the state is recovered"
    workload = parse_workload(finding.workload_text, finding.workload_name)
    try:
        observation = Observation.from_wire(executed.observation)
    except ObservationError as error:
        raise UsageError(f"the agent's report is broken: {error}") from error
    opinion = judge.opinion(History(workload, finding.started, finding.returned), observation)
    return opinion.verdict, opinion.message or f"{judge.name} holds"
