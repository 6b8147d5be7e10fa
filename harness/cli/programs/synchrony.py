"""`postcrash synchrony`: whether what a program says is true once it is said, whenever the power fails."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from postcrash.apps import Application
from postcrash.harness.auditing.audit import Audit, synchrony_audit, synchrony_cell
from postcrash.harness.auditing.folder_plan import AuditSetup
from postcrash.harness.cli.options import (
    exploration_options,
    json_option,
    kernel_options,
    one_disk_option,
    targets_option,
)
from postcrash.harness.cli.programs.applications import ApplicationChoice, program_options
from postcrash.harness.cli.programs.audit_report import AuditFiles, audit_each
from postcrash.harness.cli.progress import TerminalProgress
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.session import Session
from postcrash.reports.tables.synchrony import synchrony_markdown
from postcrash.targets import Target


@click.command("synchrony")
@program_options
@targets_option(required=True)
@click.option("--markdown", metavar="FILE", help="Write a table of all programs and targets as Markdown.")
@one_disk_option
@exploration_options
@kernel_options
@json_option
@click.pass_obj
def synchrony(
    session: Session,
    choice: ApplicationChoice,
    targets: Sequence[str],
    markdown: str | None,
    one_disk: bool,
    how: Exploration,
    guests: int | None,
    json_file: str | None,
) -> int:
    """Ask whether a program's output is true once it has left the machine, whenever the power fails.

    NAME is an application of the catalogue, or a TOML file that describes one. Or give --run. An output (a line, and at
    last the exit status) depends on every change that the program had made before. Two judges look at each crash state.
    external-durability asks whether these changes are there. external-order asks whether no change is there without all
    those before it (docs/synchrony.md).

    \b
    Examples:
      postcrash synchrony --run 'echo new >f; echo done' --target ext4-current
      postcrash synchrony sqlite-3.40 --target ext4-journal
    """
    if (choice.name is None) == (choice.run is None):
        raise UsageError("which program? Give the name of an application, or --run (postcrash synchrony --help)")
    applications = replace(choice, check=choice.run and "true").applications()

    def audit_one(application: Application, target: Target) -> Audit:
        with TerminalProgress(len(how.disks(one=one_disk))) as progress:
            return synchrony_audit(AuditSetup(session, how, guests, progress), application, target, one_disk=one_disk)

    def table(audits: Sequence[Audit], **about: Any) -> str:
        return synchrony_markdown([synchrony_cell(each) for each in audits], model=how.model, **about)

    return audit_each(session, applications, targets, audit_one, AuditFiles(json_file, markdown, table))
