"""Prints the needs of applications as they are found, and collects them for the files that are written."""

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.status import Status

from postcrash.apps import Application
from postcrash.apps.needs import ASSUMPTIONS, Advice, Needs, SearchLimits, advise, find_needs, in_order
from postcrash.harness.auditing.audit import Audit, audit
from postcrash.harness.auditing.flush_runs import FlushRunner
from postcrash.harness.auditing.folder_plan import AuditSetup
from postcrash.harness.auditing.needs import ApplicationNeeds
from postcrash.harness.cli.programs.flush_runs_text import print_runs, runs_to_json
from postcrash.harness.cli.programs.needs_page import needs_page, vulnerabilities_of
from postcrash.harness.cli.programs.needs_sarif import ApplicationAdvice
from postcrash.harness.cli.programs.needs_text import advice_to_json, print_advice, print_needs, to_json
from postcrash.harness.cli.progress import TerminalProgress
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.session import Session
from postcrash.harness.files.output import command_line, notes
from postcrash.harness.tables.cell_store import KeptCells
from postcrash.harness.tables.needs_and_gives import compare, gives, lacking_of, plans_of, question_of
from postcrash.model import Verdict
from postcrash.reports.page.needs_page import Vulnerability
from postcrash.reports.tables.needs import needs_markdown
from postcrash.store.table_rows import NeedsCell, NeedsRow
from postcrash.targets import Target


@dataclass(frozen=True, slots=True)
class AdviceRequest:
    """A request for advice on file systems with the properties `given`, or on targets.

    runs  how many flushes are left out on each target, each in a run of its own
    """

    given: frozenset[str]
    runs: int


@dataclass(frozen=True, slots=True)
class NeedsScope:
    """What a report covers, and what it may cost.

    resumed  take the cells that the store has
    fresh    measure the properties of targets again
    """

    limits: SearchLimits
    how: Exploration
    guests: int | None
    advising: AdviceRequest | None
    resumed: bool = False
    fresh: bool = False


class NeedsReport:
    """The needs that were found so far."""

    def __init__(self, session: Session, scope: NeedsScope, *, quiet: bool) -> None:
        self._session, self._scope = session, scope
        self._kept = KeptCells(session, scope.how, scope.limits)
        self._console = Console(quiet=quiet)
        self._answers: list[dict[str, object]] = []
        self._rows: list[NeedsRow] = []
        self._vulnerabilities: list[Vulnerability] = []
        self.cells: list[NeedsCell] = []
        self.advised: list[ApplicationAdvice] = []

    def add(self, application: Application, targets: Sequence[Target]) -> None:
        """Find the needs of an application, and whether the targets give them."""
        with ApplicationNeeds(application) as analysis:
            with notes().status("judging folders") as status:
                needs = find_needs(analysis.protocol, analysis.judge, self._scope.limits, _updating(status))
            print_needs(self._console, analysis, needs)
            self._answers.append(to_json(analysis, needs))
            self._rows.append(_row(analysis, needs))
            self._vulnerabilities += vulnerabilities_of(analysis, needs)
            if self._scope.advising is not None and not targets:
                advice = self._advice(analysis, self._scope.advising.given)
                self._answers[-1]["advice"] = advice_to_json(advice)
                self.advised.append(ApplicationAdvice(analysis.application.name, analysis.protocol, advice))
            advice_on: dict[str, object] = {}
            for target in targets:
                if self._scope.resumed and (known := self._kept.cell(application, target)) is not None:
                    self._add_cell(known)
                    continue
                cell, given, whole = self._cell(analysis, target)
                self._add_cell(cell)
                self._kept.keep(application, target, cell)
                if self._scope.advising is not None:
                    advice_on[target.name] = self._advice_on(analysis, target, given, whole)
            if advice_on:
                self._answers[-1]["advice_on"] = advice_on

    def _add_cell(self, cell: NeedsCell) -> None:
        self.cells.append(cell)
        self._console.print(_cell_text(cell), highlight=False, markup=False)

    def _advice(self, analysis: ApplicationNeeds, given: frozenset[str]) -> Advice:
        with notes().status("judging folders") as status:
            advice = advise(analysis.protocol, analysis.judge, self._scope.limits, given, _updating(status))
        print_advice(self._console, analysis.protocol, advice)
        return advice

    def _advice_on(
        self, analysis: ApplicationNeeds, target: Target, given: frozenset[str], whole: Audit
    ) -> dict[str, object]:
        """Advice on a target where `whole` is the audit, as decoded JSON. Flushes are left out there to test it."""
        assert self._scope.advising is not None
        if lacking := lacking_of(analysis.protocol, given):
            self._console.print(f"  no advice: {lacking}", highlight=False, markup=False)
            return {"lacking": lacking}
        advice = self._advice(analysis, given & frozenset(each.name for each in ASSUMPTIONS))
        self.advised.append(
            ApplicationAdvice(f"{analysis.application.name} on {target.name}", analysis.protocol, advice)
        )
        if whole.verdict is not Verdict.HOLDS or not advice.flushes:
            return advice_to_json(advice)
        with TerminalProgress(None) as progress:
            setup = AuditSetup(self._session, self._scope.how, self._scope.guests, progress)
            runner = FlushRunner(setup, analysis.application, analysis.protocol, whole, self._scope.advising.runs)
            runs = runner.runs([each.step for each in advice.flushes])
        self.advised[-1] = replace(self.advised[-1], runs=runs)
        print_runs(self._console, runs)
        return {**advice_to_json(advice), "runs": runs_to_json(runs)}

    def _cell(self, analysis: ApplicationNeeds, target: Target) -> tuple[NeedsCell, frozenset[str], Audit]:
        """The cell, the properties of the target, and the audit there."""
        question = question_of(analysis.protocol, self._scope.how)
        with TerminalProgress(plans_of(self._session, target, question)) as progress:
            given = gives(self._session, target, question, self._scope.guests, progress, fresh=self._scope.fresh)
        with TerminalProgress(2) as progress:
            setup = AuditSetup(self._session, self._scope.how, self._scope.guests, progress)
            real = audit(setup, analysis.application, target)
        return compare(analysis, given, real, self._scope.limits), given, real

    def markdown(self) -> str:
        """The table so far."""
        command = command_line()
        date = datetime.datetime.now(datetime.UTC).date()
        kernel, model = self._session.kernel.label, self._scope.how.model
        return needs_markdown(self._rows, self.cells, command=command, kernel=kernel, model=model, date=date)

    def html(self) -> str:
        """The page so far."""
        return needs_page(self._session, self._scope.how.model, self._rows, self.cells, self._vulnerabilities)

    def to_json(self) -> dict[str, object]:
        """Everything so far."""
        cells = [
            {
                "application": cell.application,
                "target": cell.target,
                "standing": cell.symbol,
                "real": cell.real.name.lower(),
                "modelled": cell.modelled.name.lower(),
                "because": cell.because,
                "prevented_by": list(cell.lacking),
                "finding": cell.finding,
                "states": str(cell.states),
                "recoveries": cell.recoveries,
                "folders": cell.folders,
            }
            for cell in self.cells
        ]
        return {"needs": self._answers, "cells": cells}


def _updating(status: Status) -> Callable[[str], None]:
    return lambda text: status.update(f"judging folders {text}")


def _row(analysis: ApplicationNeeds, needs: Needs) -> NeedsRow:
    sets = tuple(
        (" and ".join(in_order(each.names)) or "nothing") + ("" if each.is_complete else f" (first {each.folders})")
        for each in needs.sets
    )
    protocol = analysis.protocol
    return NeedsRow(
        application=analysis.application.name,
        sets=sets,
        is_complete=needs.is_complete,
        calls=len(protocol.steps),
        changes=len(protocol.changes),
        folders=analysis.folders,
    )


def _cell_text(cell: NeedsCell) -> str:
    because = f": {cell.because}" if cell.because else ""
    lacking = f"; it would take {' or '.join(cell.lacking)}" if cell.lacking else ""
    witness = f" ({cell.finding})" if cell.finding else ""
    return f"  {cell.symbol} on {cell.target}{because}{witness}{lacking}"
