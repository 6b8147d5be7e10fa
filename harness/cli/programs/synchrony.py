"""`postcrash synchrony`: whether what a program says is true once it is said, whenever the power fails."""

import datetime
from collections.abc import Sequence

import click

from postcrash.harness.auditing.audit import Audit, synchrony_audit, synchrony_cell
from postcrash.harness.cli.completion import complete_targets
from postcrash.harness.cli.judging.characterize import targets_named
from postcrash.harness.cli.options import exploration_options, json_option, kernel_options, one_disk_option
from postcrash.harness.cli.programs.applications import chosen_applications, program_options
from postcrash.harness.cli.programs.audit import require_programs_run
from postcrash.harness.cli.programs.audit_report import audit_to_json, print_audit
from postcrash.harness.cli.progress import TerminalProgress
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.session import Session
from postcrash.harness.files.output import command_line, write_json, write_text
from postcrash.harness.findings.last_finding import keep_last
from postcrash.model import worst
from postcrash.reports.tables.synchrony import synchrony_markdown


@click.command("synchrony")
@program_options
@click.option(
    "--target",
    "targets",
    shell_complete=complete_targets,
    multiple=True,
    required=True,
    metavar="NAME,…",
    help="Names with commas between them, or all of the catalogue; can be repeated.",
)
@click.option("--markdown", metavar="FILE", help="Write a table of all programs and targets as Markdown.")
@one_disk_option
@exploration_options
@kernel_options
@json_option
@click.pass_obj
def synchrony(
    session: Session,
    name: str | None,
    run: str | None,
    set_up: str,
    targets: Sequence[str],
    chosen: Sequence[str],
    every: bool,
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
    if (name is None) == (run is None):
        raise UsageError("which program? Give the name of an application, or --run (postcrash synchrony --help)")
    require_programs_run(session)
    audits = []
    for application in chosen_applications(name, run, run and "true", set_up, chosen, every=every):
        for target in targets_named(session, targets):
            with TerminalProgress(len(how.disks(one=one_disk))) as progress:
                audits.append(synchrony_audit(session, application, target, how, guests, progress, one_disk=one_disk))
            if json_file != "-":
                print_audit(session, audits[-1])
            if markdown is not None:
                _write_table(markdown, audits, how)
    keep_last(session.store, [finding.id for each in audits for finding in each.findings])
    write_json(json_file, {"audits": [audit_to_json(each) for each in audits]})
    return worst(each.verdict for each in audits).exit_code


def _write_table(place: str, audits: Sequence[Audit], how: Exploration) -> None:
    cells = [synchrony_cell(each) for each in audits]
    date = datetime.datetime.now(datetime.UTC).date()
    command, kernel = command_line(), audits[0].kernel
    write_text(place, synchrony_markdown(cells, command=command, kernel=kernel, model=how.model, date=date))
