"""Cells of tables as tests need them."""

from dataclasses import replace
from typing import Any

from postcrash.model import Verdict
from postcrash.store.table_rows import AuditCell


def audit_cell(verdict: Verdict = Verdict.HOLDS, **changed: Any) -> AuditCell:
    """What an application came to on a target, with other fields where they are given."""
    cell = AuditCell(
        application="app",
        target="ext4",
        verdict=verdict,
        states=1200,
        total=1200,
        recoveries=30,
        folders=5,
        recordings=2,
        ways=1,
        said="",
        finding="",
    )
    return replace(cell, **changed)
