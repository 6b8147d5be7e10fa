"""`postcrash needs`: the smallest sets of properties that an application needs of a file system."""

import datetime
from collections.abc import Sequence

import click
from rich.console import Console

from postcrash.apps import Application
from postcrash.apps.needs import ASSUMPTIONS, Advice, Extent, Needs, in_order
from postcrash.harness.auditing.audit import audit
from postcrash.harness.auditing.needs import ApplicationNeeds
from postcrash.harness.commands.completion import complete_targets
from postcrash.harness.commands.judging.characterize import targets_named
from postcrash.harness.commands.options import exploration_options, json_option, kernel_options
from postcrash.harness.commands.programs.applications import application_options, chosen_applications
from postcrash.harness.commands.programs.audit import require_programs_run
from postcrash.harness.commands.programs.needs_page import needs_page, vulnerabilities_of
from postcrash.harness.commands.programs.needs_sarif import Advised, advice_sarif
from postcrash.harness.commands.programs.needs_text import advice_to_json, print_advice, print_needs, to_json
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.output import command_line, notes, write_json, write_text
from postcrash.harness.progress import TerminalProgress
from postcrash.harness.session import Session
from postcrash.harness.tables.needs_and_gives import compare, gives, plans_of, question_of
from postcrash.model import Verdict, worst
from postcrash.reports.page.of_needs import Vulnerability
from postcrash.reports.tables.needs import NeedsCell, NeedsRow, needs_markdown
from postcrash.targets import Target


@click.command("needs")
@application_options
@click.option(
    "--folders",
    metavar="N",
    type=click.IntRange(1, 10**7),
    default=2000,
    show_default=True,
    help="Judge at most so many for a set.",
)
@click.option(
    "--sets",
    metavar="N",
    type=click.IntRange(1, 100),
    default=6,
    show_default=True,
    help="The most that are looked for.",
)
@click.option(
    "--target",
    "targets",
    shell_complete=complete_targets,
    multiple=True,
    metavar="NAME,…",
    help="Say whether these targets give what it needs, and run it there; can be repeated.",
)
@click.option("--advise", is_flag=True, help="Say which flushes are needed, which can go, and which are missing.")
@click.option(
    "--given",
    metavar="NAME,…",
    callback=lambda _context, _parameter, names: _given(names),
    help="With --advise: the properties that the file system has.  [default: none]",
)
@click.option("--sarif", metavar="FILE", help="With --advise: write the advice as SARIF; - is standard output.")
@click.option("--markdown", metavar="FILE", help="With --target: write the table as Markdown; - is standard output.")
@click.option("--html", metavar="FILE", help="Write a page with the lines of the sources; - is standard output.")
@exploration_options
@kernel_options
@json_option
@click.pass_obj
def needs_command(
    session: Session,
    name: str | None,
    run: str | None,
    check: str | None,
    set_up: str,
    chosen: Sequence[str],
    every: bool,
    folders: int,
    sets: int,
    targets: Sequence[str],
    advise: bool,
    given: frozenset[str],
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
      postcrash needs replace-python --every --target ext4-current,xfs,btrfs
      postcrash needs replace-python --advise --sarif advice.sarif
      postcrash needs lmdb-0.9 --target xfs,btrfs --html needs.html
      postcrash needs --run 'echo new >f.new; mv f.new f' --set-up 'echo old >f' --check 'grep -q . f'
    """
    if sarif is not None and not advise:
        raise UsageError("--sarif writes advice: add --advise")
    if targets:
        require_programs_run(session)
    quiet = "-" in (json_file, markdown, html, sarif)
    report = _Report(session, Extent(folders, sets), how, guests, given if advise else None, quiet=quiet)
    for application in chosen_applications(name, run, check, set_up, chosen, every=every):
        report.add(application, targets_named(session, targets))
        if markdown is not None:
            write_text(markdown, report.markdown())
        if html is not None:
            write_text(html, report.html())
        if sarif is not None:
            write_text(sarif, advice_sarif(report.advised))
    write_json(json_file, report.to_json())
    return worst([cell.real for cell in report.cells] or [Verdict.HOLDS]).exit_code


class _Report:
    """The answers so far."""

    def __init__(
        self,
        session: Session,
        extent: Extent,
        how: Exploration,
        guests: int | None,
        given: frozenset[str] | None,
        *,
        quiet: bool,
    ) -> None:
        """`given`: advise on file systems with these properties; None: do not advise."""
        self._session, self._extent, self._how, self._guests, self._given = session, extent, how, guests, given
        self._console = Console(quiet=quiet)
        self._answers: list[dict[str, object]] = []
        self._rows: list[NeedsRow] = []
        self._vulnerabilities: list[Vulnerability] = []
        self.cells: list[NeedsCell] = []
        self.advised: list[Advised] = []

    def add(self, application: Application, targets: Sequence[Target]) -> None:
        """Find the needs of an application, and whether the targets give them."""
        with ApplicationNeeds(application) as asked:
            with notes().status("judging folders") as status:
                needs = asked.needs(self._extent, lambda text: status.update(f"judging folders {text}"))
            print_needs(self._console, asked, needs)
            self._answers.append(to_json(asked, needs))
            self._rows.append(_row(asked, needs))
            self._vulnerabilities += vulnerabilities_of(asked, needs)
            if self._given is not None:
                advice = self._advice(asked, self._given)
                self._answers[-1]["advice"] = advice_to_json(advice)
                self.advised.append((asked.application.name, asked.protocol, advice))
            for target in targets:
                self.cells.append(self._cell(asked, target))
                self._console.print(_cell_text(self.cells[-1]), highlight=False, markup=False)

    def _advice(self, asked: ApplicationNeeds, given: frozenset[str]) -> Advice:
        with notes().status("judging folders") as status:
            advice = asked.advice(given, self._extent, lambda text: status.update(f"judging folders {text}"))
        print_advice(self._console, asked.protocol, advice)
        return advice

    def _cell(self, asked: ApplicationNeeds, target: Target) -> NeedsCell:
        question = question_of(asked.protocol, self._how)
        with TerminalProgress(plans_of(self._session, target, question)) as progress:
            given = gives(self._session, target, question, self._guests, progress)
        with TerminalProgress(2) as progress:
            real = audit(self._session, asked.application, target, self._how, self._guests, progress)
        return compare(asked, given, real, self._extent)

    def markdown(self) -> str:
        """The table so far."""
        command = command_line()
        date = datetime.datetime.now(datetime.UTC).date()
        kernel, model = self._session.kernel.label, self._how.model
        return needs_markdown(self._rows, self.cells, command=command, kernel=kernel, model=model, date=date)

    def html(self) -> str:
        """The page so far."""
        return needs_page(self._session, self._how.model, self._rows, self.cells, self._vulnerabilities)

    def to_json(self) -> dict[str, object]:
        """Everything so far."""
        cells = [
            {
                **{"application": cell.application, "target": cell.target, "standing": cell.symbol},
                **{"real": cell.real.name.lower(), "modelled": cell.modelled.name.lower(), "because": cell.because},
                **{"prevented_by": list(cell.lacking), "finding": cell.finding, "states": str(cell.states)},
                **{"recoveries": cell.recoveries, "folders": cell.folders},
            }
            for cell in self.cells
        ]
        return {"needs": self._answers, "cells": cells}


def _given(names: str | None) -> frozenset[str]:
    given = frozenset(filter(None, (names or "").split(",")))
    known = {each.name for each in ASSUMPTIONS}
    if unknown := sorted(given - known):
        raise UsageError(f"--given {unknown[0]}: expected properties of {', '.join(in_order(frozenset(known)))}")
    return given


def _row(asked: ApplicationNeeds, needs: Needs) -> NeedsRow:
    sets = tuple(
        (" and ".join(in_order(each.names)) or "nothing") + ("" if each.is_complete else f" (first {each.folders})")
        for each in needs.sets
    )
    protocol = asked.protocol
    return NeedsRow(
        application=asked.application.name,
        sets=sets,
        is_complete=needs.is_complete,
        calls=len(protocol.steps),
        changes=len(protocol.changes),
        folders=asked.folders,
    )


def _cell_text(cell: NeedsCell) -> str:
    because = f": {cell.because}" if cell.because else ""
    lacking = f"; it would take {' or '.join(cell.lacking)}" if cell.lacking else ""
    witness = f" ({cell.finding})" if cell.finding else ""
    return f"  {cell.symbol} on {cell.target}{because}{witness}{lacking}"
