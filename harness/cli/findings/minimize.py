"""`postcrash minimize ID`: find the smallest workload that still breaks the judge."""

import click
from rich.console import Console

from postcrash.harness.budget import Budget
from postcrash.harness.cli.completion import complete_findings
from postcrash.harness.cli.options import json_option, kernel_options
from postcrash.harness.cli.progress import TerminalProgress
from postcrash.harness.examination.recording import settings_for_recorders
from postcrash.harness.examination.recording_metadata import provenance
from postcrash.harness.examination.session import Session
from postcrash.harness.files.output import say, write_json, write_text
from postcrash.harness.findings.bundles.import_bundle import finding_named
from postcrash.harness.findings.last_finding import keep_last
from postcrash.harness.findings.minimize import MinimalFinding, minimized_on
from postcrash.harness.findings.own_kernel import guest_difference, on_its_kernel
from postcrash.harness.guests.lazy_machine import Spare
from postcrash.model import ExitCode, parse_workload
from postcrash.store.records import Finding


@click.command()
@click.argument("id", metavar="ID|last|BUNDLE", shell_complete=complete_findings)
@click.option("--output", metavar="FILE", help="Write the minimal workload to FILE; - is standard output.")
@click.option(
    "--recoveries",
    metavar="N",
    type=click.IntRange(min=1),
    default=Budget().recoveries,
    show_default=True,
    help="Budget for one workload. A workload that stays UNDECIDED does not count as failing.",
)
@click.option("--fresh", is_flag=True, help="Run workloads again that have a result in the store.")
@kernel_options
@json_option
@click.pass_obj
def minimize(session: Session, id: str, output: str | None, recoveries: int, fresh: bool, json_file: str | None) -> int:
    """Look for the smallest workload that breaks the same judge as finding ID, on its kernel, target and device model.

    `last` in place of ID is the first finding that the last command named.
    BUNDLE is a finding as a file (`postcrash bundle`). It is put into the store first.
    Operations are left out and made simpler as long as some crash state still breaks the judge. Every workload on the
    way is recorded, explored and confirmed like any other. The result is a finding of its own, which `explain` and
    `repro` take. After an interruption, the same command goes on where it was.

    \b
    Example:
      postcrash minimize f-1a2b3c4d5e6f7a8b --output minimal.ops
    """
    finding = finding_named(session, id)
    session = on_its_kernel(session, finding)
    if unlike := guest_difference(finding, session):
        say(f"{finding.id}: {unlike}")
    found = minimized(session, finding, recoveries, fresh)
    write_json(json_file, to_json(finding, found))
    if output is not None:
        write_text(output, found.workload.to_text())
    if "-" not in (json_file, output):
        print_minimized(finding, found, session.invocation)
    return ExitCode.VIOLATED


def minimized(session: Session, finding: Finding, recoveries: int | None, fresh: bool) -> MinimalFinding:
    """Minimize `finding` with progress on the terminal. Then `last` stands for the smallest workload's finding."""
    settings = settings_for_recorders(session.settings, [provenance(session.store, finding).recorder])
    with Spare(settings) as machine, TerminalProgress(None) as progress:
        found = minimized_on(machine, session, finding, recoveries, fresh, progress)
    keep_last(session.store, [found.finding.id])
    return found


def to_json(finding: Finding, found: MinimalFinding) -> dict[str, object]:
    """What `--json` gives."""
    return {
        "id": finding.id,
        "minimal": found.finding.id,
        "workload": found.workload.to_text(),
        "message": found.finding.message,
        "lost": len(found.finding.lost),
        "torn": found.finding.torn,
        "tried": found.tried,
        "undecided": found.undecided,
    }


def print_minimized(finding: Finding, found: MinimalFinding, invocation: str) -> None:
    """Print the minimal workload, what it breaks, and the command that explains it with the same store."""
    console = Console(soft_wrap=True, highlight=False)
    before = len(parse_workload(finding.workload_text, finding.workload_name).without_tail().operations)
    after = len(found.workload.operations)
    console.print(f"{finding.id}: {before} operations, minimal {after}, of {found.tried} workloads tried:")
    console.print(found.workload.to_text(), markup=False, end="")
    console.print(found.finding.message, markup=False)
    if found.undecided:
        console.print(f"{found.undecided} workloads were left undecided: a smaller one may fail")
    console.print(f"explained: {invocation} explain {found.finding.id}", markup=False)
