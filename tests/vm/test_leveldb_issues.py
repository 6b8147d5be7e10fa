"""LevelDB's five issues of HotDep'13: docs/results/leveldb.md has exactly those that `needs` shows of each version."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from .audits import made
from .command import postcrash

PAGE = Path(__file__).resolve().parents[2] / "docs/results/leveldb.md"
DATA = "(block|the size|that it was cut off).* of store/"
WORKLOADS = ("puts", "create", "switch")


@dataclass(frozen=True)
class Issue:
    """A folder shows it if each change that is lost matches `lost`, and `property_` would have prevented it.

    There is no property if ours says less than that of the paper (docs/results/leveldb.md).
    """

    number: int
    lost: str
    property_: str

    def is_shown_by(self, failure: Mapping[str, Sequence[str]]) -> bool:
        lost = failure["lost"]
        is_its_own = bool(lost) and all(re.match(self.lost, change) for change in lost)
        return is_its_own and (not self.property_ or self.property_ in failure["prevented_by"])


ISSUES = (
    Issue(68, rf"{DATA}\d+\.dbtmp", ""),
    Issue(183, rf"{DATA}MANIFEST", "P3"),
    Issue(187, rf"{DATA}\d+\.log", "P3"),
    Issue(189, r"the name CURRENT \(rename", "P1"),
    Issue(190, r"the name \S+ \(openat", "P4"),
)


def on_the_page() -> dict[str, set[int]]:
    """The issues of each version, as the table says."""
    rows = re.findall(r"^\| (1\.\d+) \|(.*)\|$", PAGE.read_text(), re.MULTILINE)
    return {
        version: {issue.number for issue, cell in zip(ISSUES, cells.split("|"), strict=True) if "✗" in cell}
        for version, cells in rows
    }


def needs(folder: Path, version: str, workload: str, sync: str) -> list[dict[str, list[str]]]:
    """What can go wrong in a workload of a version."""
    chosen = ["--set", f"workload={workload}", "--set", f"sync={sync}", "--folders", "800", "--sets", "1"]
    ran = postcrash(folder, "needs", made(f"leveldb-{version}"), *chosen, "--json", "-")
    assert (ran.returncode, ran.stderr) == (0, "")
    (answer,) = json.loads(ran.stdout)["needs"]
    failures: list[dict[str, list[str]]] = answer["failures"]
    return failures


def test_the_table_has_every_version() -> None:
    assert on_the_page().keys() == {"1.2", "1.9", "1.11", "1.14", "1.15", "1.18", "1.23"}


@pytest.mark.full
@pytest.mark.parametrize("version", ["1.2", "1.9", "1.11", "1.14", "1.15", "1.18", "1.23"])
def test_the_table_says_what_is_found(tmp_path: Path, version: str) -> None:
    failures = [failure for workload in WORKLOADS for failure in needs(tmp_path, version, workload, "every")]
    failures += needs(tmp_path, version, "switch", "none")
    assert {issue.number for issue in ISSUES for failure in failures if issue.is_shown_by(failure)} == on_the_page()[
        version
    ]
