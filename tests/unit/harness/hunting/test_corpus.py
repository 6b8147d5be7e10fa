"""Which workloads are run on which targets, and what the table says about it."""

import datetime

from postcrash.harness.budget import Budget
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.expectations.expectation import Expectation
from postcrash.harness.hunting.corpus import CorpusQuestion, joined, with_shorter
from postcrash.model import Verdict, parse_workload
from postcrash.reports.tables.corpus import CorpusTable, corpus_markdown
from postcrash.store.table_rows import CorpusColumn, CorpusObjection, Result
from postcrash.targets import target_named

HOLDS, UNDECIDED, VIOLATED = Verdict.HOLDS, Verdict.UNDECIDED, Verdict.VIOLATED


def test_a_workload_called_after_a_file_system_is_asked_on_that_one_only() -> None:
    names = ("generic-001", "xfs-002", "ext4-003", "my-bug", "xfsx")
    workloads = [parse_workload("sync", name) for name in names]
    targets = [target_named(name) for name in ("xfs", "xfs-wsync", "ext4-current", "f2fs")]
    question = CorpusQuestion(
        workloads, targets, Expectation("practice"), frozenset({"walk"}), Exploration(budget=Budget(1, 1))
    )
    asked = {name: [target.name for workload, target in question.pairs if workload.name == name] for name in names}
    everywhere = ["xfs", "xfs-wsync", "ext4-current", "f2fs"]
    assert asked == {
        **dict.fromkeys(names, everywhere),
        "xfs-002": ["xfs", "xfs-wsync"],
        "ext4-003": ["ext4-current"],
    }


def objection(finding: str, *, is_expected: bool = True, page: str = "") -> CorpusObjection:
    return CorpusObjection("mounts", "a <long> name", finding, "broken in practice: r (s)", is_expected, page)


def table() -> CorpusTable:
    old = (
        Result("a", "xfs", VIOLATED, objections=(objection("f-1"),), states=5, recoveries=3),
        Result("a", "f2fs", VIOLATED, objections=(objection("f-2", page="docs/p.md"),), states=1, recoveries=1),
        Result("b", "xfs", UNDECIDED, reason="the budget is spent"),
        Result("f2fs-c", "f2fs", UNDECIDED, absent="no reflink"),
    )
    new = (
        Result("a", "xfs", HOLDS, states=10**20, recoveries=7),
        Result("a", "f2fs", VIOLATED, objections=(objection("f-3", page="docs/p.md"),)),
        Result("b", "xfs", VIOLATED, objections=(objection("f-4", is_expected=False),)),
        Result("f2fs-c", "f2fs", UNDECIDED, absent="no reflink"),
    )
    columns = (CorpusColumn("6.1", ("UML 6.1.176",), old), CorpusColumn("7.2", ("UML 7.2.7",), new))
    date = datetime.date(2026, 11, 22)
    return CorpusTable(
        columns,
        ("a", "b", "f2fs-c"),
        targets=("xfs", "f2fs"),
        level="practice",
        model="cache",
        command="postcrash corpus x",
        date=date,
    )


def test_cells_have_a_symbol_for_each_kernel() -> None:
    marks = {(row, target): table().mark(row, target) for row in table().workloads for target in table().targets}
    assert marks == {
        ("a", "xfs"): "✗✓*",
        ("a", "f2fs"): "✗✗",
        ("b", "xfs"): "?✗°",
        ("b", "f2fs"): "·",
        ("f2fs-c", "xfs"): "·",
        ("f2fs-c", "f2fs"): "––",
    }
    assert table().verdict is VIOLATED


def test_the_page_has_every_objection_and_every_reason() -> None:
    text = corpus_markdown(table())
    assert "| a | ✗✓\\* | ✗✗ |" in text
    assert "| a | xfs | mounts | a \\<long\\> name | broken in practice: r (s) | 6.1 f-1 |" in text
    assert "| a | f2fs | mounts | a \\<long\\> name | broken in practice: r (s) | 6.1, 7.2: [p](docs/p.md) |" in text
    assert "- ? xfs on 6.1: b: the budget is spent" in text
    assert "- – f2fs on 6.1, 7.2: f2fs-c: no reflink" in text
    assert "- 7.2 (UML 7.2.7): 3 runs, about 10^20 crash states covered with 7 recoveries" in text


def test_of_two_disks_a_cell_has_the_worse_verdict() -> None:
    at_once = Result("a", "xfs", HOLDS, states=5, recoveries=3)
    held_back = Result("a", "xfs", VIOLATED, objections=(objection("f-1"),), states=6, recoveries=4)
    spent = Result("a", "xfs", UNDECIDED, reason="the budget is spent")
    assert joined(at_once, held_back) == joined(held_back, at_once)
    assert joined(at_once, held_back) == Result(
        "a", "xfs", VIOLATED, objections=(objection("f-1"),), states=11, recoveries=7
    )
    assert joined(at_once, spent) == Result("a", "xfs", UNDECIDED, reason="the budget is spent", states=5, recoveries=3)
    assert joined(spent, held_back).reason == ""
    absent = Result("a", "xfs", UNDECIDED, absent="reflink fails")
    assert joined(held_back, absent) == joined(absent, held_back) == held_back
    assert joined(at_once, absent).symbol == "–"
    both = joined(held_back, Result("a", "xfs", VIOLATED, objections=(objection("f-2"),)))
    assert [each.finding for each in both.objections] == ["f-1"]


def test_a_workload_without_its_checkpoint_says_more_of_an_undecided_one() -> None:
    spent = Result("a", "xfs", UNDECIDED, reason="the budget is spent", states=5)
    assert spent.is_open
    assert with_shorter(spent, Result("a", "xfs", HOLDS, states=9)).symbol == "?ˡ"
    assert with_shorter(spent, Result("a", "xfs", HOLDS)).verdict is UNDECIDED
    assert with_shorter(spent, Result("a", "xfs", UNDECIDED, reason="spent again")) == spent
    found = with_shorter(spent, Result("a", "xfs", VIOLATED, objections=(objection("f-1"),)))
    assert (found.symbol, [each.finding for each in found.objections]) == ("✗", ["f-1"])


def test_nothing_that_could_be_run_is_no_pass() -> None:
    absent = (Result("a", "xfs", UNDECIDED, absent="6.1 has no xfs"),)
    nothing = CorpusTable(
        (CorpusColumn("6.1", (), absent),),
        ("a",),
        targets=("xfs",),
        level="practice",
        model="cache",
        command="c",
        date=table().date,
    )
    assert nothing.verdict is UNDECIDED


def test_json_has_numbers_of_crash_states_as_text() -> None:
    told = table().to_json()
    assert told["kernels"][1]["results"][0] == {
        "workload": "a",
        "target": "xfs",
        "verdict": "holds",
        "absent": "",
        "reason": "",
        "objections": [],
        "states": str(10**20),
        "shorter_holds": False,
        "recoveries": 7,
    }
