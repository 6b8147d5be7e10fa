"""The table of external synchrony says each verdict once, why, and what it rests on."""

import datetime

from postcrash.model import Verdict
from postcrash.reports.tables.synchrony import synchrony_markdown
from postcrash.store.table_rows import SynchronyAnswer, SynchronyCell


def cell(program: str, target: str, durability: SynchronyAnswer, order: SynchronyAnswer) -> SynchronyCell:
    return SynchronyCell(program, target, {"durability": durability, "order": order}, 5, 7, 3)


def test_verdicts_reasons_and_certificates() -> None:
    good = SynchronyAnswer(Verdict.HOLDS, "", "")
    cells = [
        cell("log", "ext4", SynchronyAnswer(Verdict.VIOLATED, "a|b is lost", "f-1"), good),
        cell("log", "xsyncfs", good, good),
        cell("db", "ext4", good, SynchronyAnswer(Verdict.UNDECIDED, "no time", "")),
    ]
    date = datetime.date(2026, 11, 23)
    page = synchrony_markdown(cells, command="postcrash synchrony", kernel="UML 6.1", model="cache", date=date)
    lines = page.splitlines()
    assert "| file system | log: durability | log: order | db: durability | db: order |" in lines
    assert "| ext4 | ✗ | ✓ | ✓ | ? |" in lines
    assert "| xsyncfs | ✓ | ✓ | · | · |" in lines
    assert "| ext4 | log | durability | ✗ | a\\|b is lost | f-1 |" in lines
    assert "| ext4 | db | order | ? | no time |  |" in lines
    assert sum("| 5 of 7 | 3 |" in line for line in lines) == 3
    assert "2026-11-23" in page and "    postcrash synchrony" in lines
