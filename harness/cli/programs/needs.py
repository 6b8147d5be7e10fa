"""`postcrash needs`: the smallest sets of properties that an application needs of a file system."""

from collections.abc import Sequence
from dataclasses import dataclass

import click

from postcrash.apps import Application
from postcrash.apps.needs import ASSUMPTIONS, SearchLimits, in_order
from postcrash.harness.cli.judging.characterize import targets_named
from postcrash.harness.cli.options import exploration_options, fresh_option, json_option, kernel_options, targets_option
from postcrash.harness.cli.programs.applications import ApplicationChoice, application_options
from postcrash.harness.cli.programs.audit_report import require_programs_run
from postcrash.harness.cli.programs.needs_report import AdviceRequest, NeedsReport, NeedsScope
from postcrash.harness.cli.programs.needs_sarif import advice_sarif
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.session import Session
from postcrash.harness.files.output import say, write_json, write_text
from postcrash.harness.findings.last_finding import keep_last
from postcrash.model import Verdict, worst
from postcrash.targets import Target


@click.command("needs")
@application_options
@click.option(
    "--folders",
    metavar="N",
    type=click.IntRange(1, 10**7),
    default=2000,
    show_default=True,
    help="Judge at most N folders for one set of properties.",
)
@click.option(
    "--sets",
    metavar="N",
    type=click.IntRange(1, 100),
    default=6,
    show_default=True,
    help="Look for at most N sets of properties.",
)
@targets_option(
    help_text="Say whether these targets give what the application needs, and run it there; can be repeated."
)
@click.option("--advise", is_flag=True, help="Say which flushes are needed, which can go, and which are missing.")
@click.option(
    "--given",
    metavar="NAME,…",
    callback=lambda _context, _parameter, names: _property_names(names),
    help="With --advise: the properties that the file system has.  [default: those of --target, or none]",
)
@click.option(
    "--runs",
    metavar="N",
    type=click.IntRange(0, 10_000),
    default=20,
    show_default=True,
    help="With --advise and --target: leave out at most N flushes, each in a run of its own.",
)
@click.option("--resume", "resumed", is_flag=True, help="With --target: take the cells that an earlier run left.")
@click.option("--sarif", metavar="FILE", help="With --advise: write the advice as SARIF; - is standard output.")
@click.option("--markdown", metavar="FILE", help="With --target: write the table as Markdown; - is standard output.")
@click.option("--html", metavar="FILE", help="Write a page with the lines of the sources; - is standard output.")
@fresh_option
@exploration_options
@kernel_options
@json_option
@click.pass_obj
def needs_command(
    session: Session,
    choice: ApplicationChoice,
    folders: int,
    sets: int,
    targets: Sequence[str],
    advise: bool,
    given: frozenset[str] | None,
    runs: int,
    resumed: bool,
    sarif: str | None,
    markdown: str | None,
    html: str | None,
    how: Exploration,
    guests: int | None,
    fresh: bool,
    json_file: str | None,
) -> int:
    """Find the weakest properties of a file system under which an application keeps its promises.

    NAME is an application of the catalogue, or a TOML file that describes one (docs/audit.md), or several with commas
    between them. Parameters may follow a name in brackets. A file NAME.list has one such name a line; the catalogue has
    the list `published`. Or give --run and --check, as for `audit`. The application
    runs once, on this machine, and each change that its system calls make is noted. A crash may lose every change that
    nothing protects. What fsync and its relatives promise protects changes, and so do the properties that a file system
    has. Each folder that can be left is given to the check (docs/needs.md).

    \b
    Examples:
      postcrash needs leveldb-1.23 --set workload=switch
      postcrash needs 'sqlite-3.40[journal=wal],lmdb-0.9' --target ext4-current
      postcrash needs published --target xfs,btrfs --markdown needs.md --resume
      postcrash needs replace-python --every --target ext4-current,xfs,btrfs
      postcrash needs replace-python --advise --sarif advice.sarif
      postcrash needs replace-python --advise --target ext4-current
      postcrash needs lmdb-0.9 --target xfs,btrfs --html needs.html
      postcrash needs --run 'echo new >f.new; mv f.new f' --set-up 'echo old >f' --check 'grep -q . f'
    """
    if sarif is not None and not advise:
        raise UsageError("--sarif writes advice: add --advise")
    if given is not None and targets:
        raise UsageError("--given: with --target, the properties are those that the target was measured to have")
    if resumed and (advise or not targets):
        raise UsageError("--resume takes cells of a table: give --target, and no --advise")
    if targets:
        require_programs_run(session)
    quiet = "-" in (json_file, markdown, html, sarif)
    advising = AdviceRequest(given or frozenset(), runs) if advise else None
    scope = NeedsScope(SearchLimits(folders, sets), how, guests, advising, resumed=resumed, fresh=fresh)
    report = NeedsReport(session, scope, quiet=quiet)
    files = _Files(markdown, html, sarif)
    applications = choice.applications()
    objections = _add_all(report, applications, targets_named(session, targets), files)
    if targets:
        keep_last(session.store, [cell.finding for cell in report.cells if cell.finding])
    write_json(json_file, report.to_json())
    if objections:
        raise UsageError(f"{len(objections)} of {len(applications)} applications could not be asked: {objections[0]}")
    return worst([cell.real for cell in report.cells] or [Verdict.HOLDS]).exit_code


@dataclass(frozen=True, slots=True)
class _Files:
    """Where the report is written after each application; None: nowhere."""

    markdown: str | None
    html: str | None
    sarif: str | None

    def write(self, report: NeedsReport) -> None:
        """Write what is there so far."""
        if self.markdown is not None:
            write_text(self.markdown, report.markdown())
        if self.html is not None:
            write_text(self.html, report.html())
        if self.sarif is not None:
            write_text(self.sarif, advice_sarif(report.advised))


def _add_all(
    report: NeedsReport, applications: Sequence[Application], targets: Sequence[Target], files: _Files
) -> list[str]:
    """Add all applications to the report, and return why some could not be. Raises UsageError if there is only one."""
    objections = []
    for application in applications:
        try:
            report.add(application, targets)
        except UsageError as error:
            if len(applications) == 1:
                raise
            objections.append(str(error))
            say(f"left out: {error}")
        else:
            files.write(report)
    return objections


def _property_names(names: str | None) -> frozenset[str] | None:
    if names is None:
        return None
    given = frozenset(filter(None, names.split(",")))
    known = {each.name for each in ASSUMPTIONS}
    if unknown := sorted(given - known):
        raise UsageError(f"--given {unknown[0]}: expected properties of {', '.join(in_order(frozenset(known)))}")
    return given
