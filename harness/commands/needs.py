"""`postcrash needs`: the smallest sets of properties that an application needs of a file system."""

import datetime
import shlex
import sys
from collections.abc import Sequence
from itertools import chain

import click
from rich.console import Console
from rich.markup import escape

from postcrash.apps import Application
from postcrash.apps.protocol import Budget, Failure, Needs, Protocol, in_order
from postcrash.apps.protocol.trace import BlockSlot, Change, NameSlot
from postcrash.harness.auditing.audit import audit
from postcrash.harness.auditing.needs import ApplicationNeeds
from postcrash.harness.commands.applications import application_options, chosen_applications
from postcrash.harness.commands.audit import require_programs_run
from postcrash.harness.commands.characterize import targets_named
from postcrash.harness.commands.options import exploration_options, json_option, kernel_options
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.output import write_json, write_text
from postcrash.harness.progress import TerminalProgress
from postcrash.harness.session import Session
from postcrash.harness.tables.needs_and_gives import compare, gives, plans_of, question_of
from postcrash.model import Verdict, worst
from postcrash.reports.tables.needs import NeedsCell, NeedsRow, needs_markdown
from postcrash.targets import Target

_FAILURES_SHOWN = 8
_LOST_SHOWN = 4


@click.command("needs")
@application_options
@click.option(
    "--folders", type=click.IntRange(1, 10**7), default=2000, show_default=True, help="Judge at most so many for a set."
)
@click.option("--sets", type=click.IntRange(1, 100), default=6, show_default=True, help="The most that are looked for.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME,…",
    help="Say whether these targets give what it needs, and run it there; can be repeated.",
)
@click.option("--markdown", metavar="FILE", help="With --target: write the table as Markdown; - is standard output.")
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
    markdown: str | None,
    how: Exploration,
    guests: int | None,
    fresh: bool,
    json_file: str | None,
) -> int:
    """Find the weakest properties of a file system under which an application keeps its promises.

    NAME is an application of the catalogue, or a TOML file that describes one (docs/audit.md), or several with commas
    between them. Or give --run and --check, as for `audit`. The application runs once, on this machine, and each change
    that its system calls make is noted. A crash may lose every change that nothing protects. What fsync and its
    relatives promise protects changes, and so do the properties that a file system has. Each folder that can be left is
    given to the check (docs/needs.md).

    \b
    Examples:
      postcrash needs leveldb-1.23 --set workload=switch
      postcrash needs replace-python --every --target ext4-current,xfs,btrfs
      postcrash needs --run 'echo new >f.new; mv f.new f' --set-up 'echo old >f' --check 'grep -q . f'
    """
    if targets:
        require_programs_run(session)
    report = _Report(session, Budget(folders, sets), how, guests, quiet="-" in (json_file, markdown))
    names = [None] if name is None else name.split(",")
    variants = [chosen_applications(each, run, check, set_up, chosen, every=every) for each in names]
    for application in chain.from_iterable(variants):
        report.add(application, targets_named(session, targets))
        if markdown is not None:
            write_text(markdown, report.markdown())
    write_json(json_file, report.to_json())
    return worst([cell.real for cell in report.cells] or [Verdict.HOLDS]).exit_code


class _Report:
    """The answers so far."""

    def __init__(self, session: Session, budget: Budget, how: Exploration, guests: int | None, *, quiet: bool) -> None:
        self._session, self._budget, self._how, self._guests = session, budget, how, guests
        self._console = Console(quiet=quiet)
        self._answers: list[dict[str, object]] = []
        self._rows: list[NeedsRow] = []
        self.cells: list[NeedsCell] = []

    def add(self, application: Application, targets: Sequence[Target]) -> None:
        """Find the needs of an application, and whether the targets give them."""
        with ApplicationNeeds(application) as asked:
            with Console(stderr=True).status("judging folders") as status:
                needs = asked.needs(self._budget, lambda text: status.update(f"judging folders {text}"))
            print_needs(self._console, asked, needs)
            self._answers.append(to_json(asked, needs))
            self._rows.append(_row(asked, needs))
            for target in targets:
                self.cells.append(self._cell(asked, target))
                self._console.print(_cell_text(self.cells[-1]), highlight=False, markup=False)

    def _cell(self, asked: ApplicationNeeds, target: Target) -> NeedsCell:
        question = question_of(asked.protocol, self._how)
        with TerminalProgress(plans_of(self._session, target, question)) as progress:
            given = gives(self._session, target, question, self._guests, progress)
        with TerminalProgress(2) as progress:
            real = audit(self._session, asked.application, target, self._how, self._guests, progress)
        return compare(asked, given, real, self._budget)

    def markdown(self) -> str:
        """The table so far."""
        command = shlex.join(["postcrash", *sys.argv[1:]])
        date = datetime.datetime.now(datetime.UTC).date()
        kernel, model = self._session.kernel.label, self._how.model
        return needs_markdown(self._rows, self.cells, command=command, kernel=kernel, model=model, date=date)

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


def _row(asked: ApplicationNeeds, needs: Needs) -> NeedsRow:
    sets = tuple(" and ".join(in_order(each.names)) or "nothing" for each in needs.sets)
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


def print_needs(console: Console, asked: ApplicationNeeds, needs: Needs) -> None:
    """What was found out, for people."""
    protocol, shown = asked.protocol, _worth_showing(needs.failures)
    for failure in shown[:_FAILURES_SHOWN]:
        console.rule(f"[red]{escape(failure.message)}[/]", align="left")
        for line in told(protocol, failure):
            console.print(line, highlight=False, markup=False)
    if len(shown) > _FAILURES_SHOWN:
        console.print(f"… and {len(shown) - _FAILURES_SHOWN} more", highlight=False)
    console.rule()
    console.print(f"[bold]{escape(asked.application.name)}[/] needs", highlight=False)
    for number, each in enumerate(needs.sets):
        names = ", ".join(in_order(each.names)) or "nothing beyond what documents promise of fsync and its relatives"
        how = f"all {each.folders} folders" if each.is_complete else f"the first {each.folders} folders"
        console.print(f"  {'or ' if number else ''}{names}  ({how} are fine)", highlight=False, markup=False)
    if needs.hopeless:
        console.print("  what no property gives: see the first failure", highlight=False)
    if asked.unknown:
        console.print(f"  the check could not tell of some folders: {asked.unknown}", highlight=False, markup=False)
    whole = "there are no other sets" if needs.is_complete else "there may be other sets"
    console.print(
        f"{len(protocol.steps)} calls, {len(protocol.changes)} changes, {asked.folders} folders judged; {whole}",
        highlight=False,
    )


def told(protocol: Protocol, failure: Failure) -> list[str]:
    """A failure in words: what is lost, what is there, and which properties would have prevented it."""
    lost = failure.state.lost
    lines = [f"  lost: {change_text(protocol, change)}" for change in lost[:_LOST_SHOWN]]
    lines += [f"  … and {len(lost) - _LOST_SHOWN} more"] if len(lost) > _LOST_SHOWN else []
    later = next((each for each in reversed(protocol.changes[: failure.moment.end]) if each not in lost), None)
    if later is not None and lost and later.index > lost[0].index:
        lines.append(f"  there: {change_text(protocol, later)}")
    said = ", ".join(failure.moment.said[-3:])
    lines += [f"  it had said: {said}"] if said else []
    names = ", ".join(in_order(failure.broken)) or "no property"
    return [*lines, f"  prevented by: {names}"]


def change_text(protocol: Protocol, change: Change) -> str:
    """A change in words, with its call."""
    step = protocol.steps[change.step]
    if isinstance(change.slot, NameSlot):
        what = f"the name {change.slot.name}" if change.value else f"that the name {change.slot.name} is gone"
    elif isinstance(change.slot, BlockSlot):
        what = f"block {change.slot.block}"
    else:
        what = f"the size {change.value!r}"
    return f"{what} ({step.call} of {step.about}, call {step.number})"


def _worth_showing(failures: Sequence[Failure]) -> list[Failure]:
    """Failures of which no other one with the same message lost only a part."""
    found: list[Failure] = []
    for failure in sorted(failures, key=lambda each: len(each.state.lost)):
        lost = set(failure.state.lost)
        if not any(each.message == failure.message and set(each.state.lost) <= lost for each in found):
            found.append(failure)
    return found


def to_json(asked: ApplicationNeeds, needs: Needs) -> dict[str, object]:
    """What was found out, as JSON."""
    protocol = asked.protocol
    return {
        "application": asked.application.name,
        **{"calls": len(protocol.steps), "changes": len(protocol.changes), "folders": asked.folders},
        "sets": [
            {"properties": in_order(each.names), "folders": each.folders, "complete": each.is_complete}
            for each in needs.sets
        ],
        "complete": needs.is_complete,
        "unknown": asked.unknown,
        "failures": [
            {
                "message": failure.message,
                "said": list(failure.moment.said),
                "lost": [change_text(protocol, change) for change in failure.state.lost],
                "prevented_by": in_order(failure.broken),
            }
            for failure in _worth_showing(needs.failures)
        ],
    }
