"""`postcrash repro ID`: run one crash state again."""

import click
from rich.console import Console

from postcrash.harness.commands.options import json_option, kernel_options
from postcrash.harness.errors import UsageError
from postcrash.harness.judges import Judge, judges_named
from postcrash.harness.machine import Machine, Source
from postcrash.harness.output import write_json
from postcrash.harness.recovery import SameRecovery, judge_again, source_of
from postcrash.harness.session import Session
from postcrash.model import ExitCode, History, Observation, ObservationError, Verdict, parse_workload, worst
from postcrash.reports.records import Finding


@click.command()
@click.argument("id")
@click.option("--times", type=click.IntRange(1, 100_000), default=1, show_default=True, help="Run it so many times.")
@kernel_options
@json_option
@click.pass_obj
def repro(session: Session, id: str, times: int, json_file: str | None) -> int:
    """Recover the crash state of finding ID again and say whether it still fails.

    \b
    ID is printed by `check` and `characterize`, such as f-1a2b3c4d. Exit code 1 if it fails every time, 0 if it never
    does, 3 if it sometimes does: then something is not deterministic. 6 if it does not fail, but could not be judged.
    """
    finding = session.store.finding(id)
    with source_of(session.store, finding) as (source, under), Machine(session.settings) as machine:
        judge = _judge(machine, under, finding)
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
        found = "" if label == finding.kernel else f", but was found on {finding.kernel}"
        place = f"{finding.checker} on {finding.target}, {label}{found}"
        console.print(f"{id}: fails {failures} of {times} times ({place})", highlight=False)
        console.print(message, markup=False, highlight=False)
    if 0 < failures < times:
        return ExitCode.INFRASTRUCTURE
    return worst(verdict for verdict, _ in answers).exit_code


def _judge(machine: Machine, under: Source | None, finding: Finding) -> Judge | None:
    """Who objected; None where the guest was lost."""
    if finding.casualty is not None:
        return None
    if under is not None and finding.checker == SameRecovery.name:
        return judge_again(machine, under, finding)
    return judges_named([finding.checker])[0]


def _once(machine: Machine, source: Source, finding: Finding, judge: Judge | None) -> tuple[Verdict, str]:
    event = machine.execute(source, finding.interval, list(finding.choices), finding.recover)
    if event["observation"] is None:
        return Verdict.UNDECIDED if judge else Verdict.VIOLATED, event["casualty"]["what"]
    if judge is None:
        return Verdict.HOLDS, "the state is recovered"
    workload = parse_workload(finding.workload_text, finding.workload_name)
    try:
        observation = Observation.from_wire(event["observation"])
    except ObservationError as error:
        raise UsageError(f"the agent's report is broken: {error}") from error
    opinion = judge.opinion(History(workload, finding.started, finding.returned), observation)
    return opinion.verdict, opinion.message or f"{judge.name} holds"
