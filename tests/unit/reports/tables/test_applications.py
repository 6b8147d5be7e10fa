"""The table of audits says each verdict once, why, and what it rests on."""

import datetime

from postcrash.model import Verdict
from postcrash.reports.tables.applications import applications_markdown
from postcrash.store.table_rows import AuditCell


def cell(application: str, target: str, verdict: Verdict, said: str = "", finding: str = "") -> AuditCell:
    return AuditCell(
        application,
        target,
        verdict=verdict,
        states=5,
        total=7,
        recoveries=3,
        folders=2,
        recordings=1,
        ways=0,
        said=said,
        finding=finding,
    )


def test_verdicts_reasons_and_certificates() -> None:
    cells = [
        cell("db[a|b]", "ext4", Verdict.HOLDS),
        cell("db[a|b]", "xfs", Verdict.VIOLATED, "a row is lost", "f-1"),
        cell("git", "ext4", Verdict.UNDECIDED, "no time"),
    ]
    date = datetime.date(2026, 11, 22)
    page = applications_markdown(cells, command="postcrash audit", kernel="UML 6.1", model="cache", date=date)
    lines = page.splitlines()
    assert "| application | ext4 | xfs |" in lines
    assert "| db\\[a\\|b\\] | ✓ | ✗ |" in lines
    assert "| git | ? | · |" in lines
    assert "| db\\[a\\|b\\] | xfs | ✗ | a row is lost | f-1 |" in lines
    assert "| git | ext4 | ? | no time |  |" in lines
    assert sum("| 5 of 7 | 3 | 2 | 1 | 0 | 100% |" in line for line in lines) == 3
    assert "2026-11-22" in page and "    postcrash audit" in lines
