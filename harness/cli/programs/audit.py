"""`postcrash audit`: an application on a file system, crashed everywhere, and asked whether it kept its promises."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from postcrash.apps import Application
from postcrash.harness.auditing.application_choice import leaving_out, no_longer_syncing
from postcrash.harness.auditing.audit import Audit, audit
from postcrash.harness.auditing.folder_plan import AuditSetup
from postcrash.harness.cli.options import (
    exploration_options,
    json_option,
    kernel_options,
    one_disk_option,
    targets_option,
)
from postcrash.harness.cli.programs.applications import ApplicationChoice, application_options
from postcrash.harness.cli.programs.audit_report import AuditFiles, audit_each
from postcrash.harness.cli.progress import TerminalProgress
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.session import Session
from postcrash.model.argument import ArgumentError, read_argument
from postcrash.model.operation import Kind
from postcrash.model.validation import shown
from postcrash.reports.tables.applications import applications_markdown
from postcrash.targets import Target

RECORDINGS = 3


@click.command("audit")
@application_options
@targets_option(required=True)
@click.option(
    "--without-fsync",
    is_flag=True,
    help="Run the application so that its fsync, fdatasync, msync, sync and O_SYNC do nothing.",
)
@click.option(
    "--without-flush",
    metavar="N,…",
    callback=lambda _context, _parameter, numbers: _flush_numbers(numbers),
    help="Run the application so that its flushes with these numbers do nothing. "
    "`postcrash needs --advise --target` shows the numbers.",
)
@click.option("--markdown", metavar="FILE", help="Write a table of all that was audited as Markdown.")
@click.option(
    "--recordings",
    type=click.IntRange(1, 1000),
    default=RECORDINGS,
    metavar="N",
    show_default=True,
    help="Record N times on each disk, unless a promise is broken before. No two runs need be alike.",
)
@click.option(
    "--recover",
    metavar="COMMAND",
    help="For --twice: a shell command that has the application recover, and does nothing else.",
)
@click.option(
    "--twice",
    is_flag=True,
    help="Crash the application's own recovery, too, of each folder that its check accepts (docs/audit.md).",
)
@one_disk_option
@exploration_options
@kernel_options
@json_option
@click.pass_obj
def audit_command(
    session: Session,
    choice: ApplicationChoice,
    targets: Sequence[str],
    without_fsync: bool,
    without_flush: tuple[int, ...],
    markdown: str | None,
    recordings: int,
    recover: str | None,
    twice: bool,
    one_disk: bool,
    how: Exploration,
    guests: int | None,
    json_file: str | None,
) -> int:
    """Run an application on a file system, crash it everywhere, and ask its check what is left.

    NAME is an application of the catalogue, or a TOML file that describes one (docs/audit.md); several have commas
    between them. Or give --run and --check. Both commands start in the folder that is crashed. Each line that the first
    one prints acknowledges something. The second one finds the lines that had been printed before the crash in
    $POSTCRASH_ACKNOWLEDGED. A program with threads has other schedules each time it runs: --recordings.
    An audit is always run anew: nobody knows all the files that your commands read.

    \b
    Examples:
      postcrash audit sqlite-3.40 --target ext4-current
      postcrash audit sqlite-3.40 --set synchronous=off --target ext4-current,btrfs
      postcrash audit --run 'sh -c "echo new >f; echo done"' --check 'grep -q new f' --target ext4-current
    """
    variants = choice.applications()
    if recover is not None:
        variants = [replace(each, recover=recover) for each in variants]
    if without_fsync:
        variants = [no_longer_syncing(each) for each in variants]
    if without_flush:
        variants = [leaving_out(each, without_flush) for each in variants]
    for each in variants if twice else ():
        if not each.recover:
            raise UsageError(f"--twice: nobody knows how {each.name} recovers: say so with --recover, or in its file")

    def audit_one(application: Application, target: Target) -> Audit:
        with TerminalProgress(len(how.disks(one=one_disk)) * recordings) as progress:
            setup = AuditSetup(session, how, guests, progress)
            return audit(setup, application, target, one_disk=one_disk, recordings=recordings, twice=twice)

    def table(audits: Sequence[Audit], **about: Any) -> str:
        return applications_markdown([each.cell for each in audits], model=how.model, **about)

    return audit_each(session, variants, targets, audit_one, AuditFiles(json_file, markdown, table))


def _flush_numbers(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    try:
        read_argument(Kind.FLUSHES, text)
    except ArgumentError as error:
        raise UsageError(f"--without-flush: expected {error}, found {shown(text)}") from error
    return tuple(map(int, text.split(",")))
