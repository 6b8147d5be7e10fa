"""corpus/fstests/ has workloads that can be run. Each names its test, and the list has exactly these workloads."""

import re
from pathlib import Path

import pytest

from postcrash.model import load_workload, parse_workload, simulate

FOLDER = Path(__file__).resolve().parents[3] / "corpus/fstests"
WORKLOADS = sorted(FOLDER.glob("*.ops"))
README = (FOLDER / "README.md").read_text(encoding="utf-8")
LINE_MAX = 120

NAME = re.compile(r"(?P<suite>generic|btrfs|ext4|f2fs|xfs)-(?P<number>\d{3})(-[\w-]+)?")
FIRST_LINE = re.compile(r"# (?P<suite>\w+)/(?P<number>\d{3}): \S.*\.")
ROW = re.compile(r"^\| `(?P<name>[\w-]+)` \| \S.* \| \S.* \|$", re.MULTILINE)
LEFT_OUT = re.compile(r"^\| (?P<test>\w+/\d{3}) \| \S.* \| \S.* \|$", re.MULTILINE)


each_workload = pytest.mark.parametrize("path", WORKLOADS, ids=lambda path: path.stem)


def header(path: Path) -> list[str]:
    """The comments before the first operation."""
    lines = path.read_text(encoding="utf-8").splitlines()
    count = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    return lines[:count]


def test_there_are_workloads() -> None:
    assert WORKLOADS


@each_workload
def test_it_is_in_the_language(path: Path) -> None:
    workload = parse_workload(path.read_text(encoding="utf-8"), path.stem)
    assert workload.ops


@each_workload
def test_it_can_be_run(path: Path) -> None:
    workload = load_workload(path).with_tail()
    assert len(simulate(workload)) == len(workload.operations) + 1


@each_workload
def test_its_first_line_names_the_test(path: Path) -> None:
    name, first = NAME.fullmatch(path.stem), FIRST_LINE.fullmatch(header(path)[0])
    assert name is not None
    assert first is not None
    assert (first["suite"], first["number"]) == (name["suite"], name["number"])


@each_workload
def test_its_header_says_what_must_be_there(path: Path) -> None:
    _, when, *rest = header(path)
    assert when == "# After a crash, once every operation has returned:"
    assert rest[0].startswith("# - ")


@each_workload
def test_its_lines_are_short(path: Path) -> None:
    assert max(map(len, path.read_text(encoding="utf-8").splitlines())) <= LINE_MAX


def test_the_list_names_exactly_the_workloads() -> None:
    assert sorted(row["name"] for row in ROW.finditer(README)) == sorted(path.stem for path in WORKLOADS)


def test_the_list_says_what_is_left_out() -> None:
    tests = [row["test"] for row in LEFT_OUT.finditer(README)]
    assert tests
    assert len(tests) == len(set(tests))
