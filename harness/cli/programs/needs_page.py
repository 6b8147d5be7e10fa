"""The page of `postcrash needs --html`: the table, with the system calls and source lines that are to blame."""

import datetime
from collections.abc import Iterator, Sequence
from contextlib import suppress

from postcrash.apps.needs import BadFolder, Needs, in_order
from postcrash.harness.auditing.needs import ApplicationNeeds
from postcrash.harness.cli.programs.needs_text import change_text, worth_showing
from postcrash.harness.examination.session import Session
from postcrash.harness.files.output import command_line
from postcrash.harness.findings.finding_details import stories_of
from postcrash.reports.page.needs_page import Vulnerability, report_of_needs
from postcrash.reports.page.page import render
from postcrash.store.store import NotInStoreError
from postcrash.store.table_rows import NeedsCell, NeedsRow

_FAILURES_MAX = 20
_LOST_MAX = 12
_SAID_MAX = 3


def vulnerabilities_of(analysis: ApplicationNeeds, needs: Needs) -> Iterator[Vulnerability]:
    """The failures of an application that lose least, each with the first of the changes that it loses."""
    for failure in worth_showing(needs.failures)[:_FAILURES_MAX]:
        yield _vulnerability(analysis, failure)


def _vulnerability(analysis: ApplicationNeeds, failure: BadFolder) -> Vulnerability:
    lost = failure.state.lost
    texts = [change_text(analysis.protocol, change) for change in lost[:_LOST_MAX]]
    return Vulnerability(
        application=analysis.application.name,
        message=failure.message,
        lost=(*texts, *([f"… and {len(lost) - _LOST_MAX} more"] if len(lost) > _LOST_MAX else [])),
        last_output=", ".join(failure.moment.outputs[-_SAID_MAX:]),
        prevented=tuple(in_order(failure.broken)),
    )


def needs_page(
    session: Session,
    model: str,
    rows: Sequence[NeedsRow],
    cells: Sequence[NeedsCell],
    vulnerabilities: Sequence[Vulnerability],
) -> str:
    """The page, with the stories of those findings that the session's store has."""
    found = []
    for id in dict.fromkeys(cell.finding for cell in cells if cell.finding):
        with suppress(NotInStoreError):
            found.append(session.store.finding(id))
    date = datetime.datetime.now(datetime.UTC).date()
    about = f"Made on {date.isoformat()}, device model {model}, by {command_line()}"
    kernel = session.kernel.label
    report = report_of_needs(rows, cells, vulnerabilities, about, kernel)
    return render(report, stories_of(found, session), session.invocation)
