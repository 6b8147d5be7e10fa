"""The report of a gate: what is new, undecided, known and fixed, by part, target and kernel."""

import pytest

from postcrash.reports.page.gate_page import NOTES_MAX, report_of_gate
from postcrash.store.gate_run import GateRun, Part


def test_parts_stand_by_target_and_kernel(run: GateRun) -> None:
    heat_map = report_of_gate(run).heat_map
    assert [(at.target, at.kernel) for at in heat_map.columns] == [
        *(("ext4-original", "6.1"), ("ext4-original", "6.12"), ("xfs", "6.1"), ("xfs", "6.1, torn"))
    ]
    assert {
        row.name: [square.standing + square.marks if square else None for square in row.squares]
        for row in heat_map.rows
    } == {
        "small-hunt": ["new 2", "known 1", "undecided 1", None],
        "table": [None, None, None, "holds"],
    }
    assert heat_map.rows[0].judges == ("P1", "P5", "P2")


def test_evidence_is_what_the_part_covers(run: GateRun) -> None:
    heat_map = report_of_gate(run).heat_map
    square = heat_map.rows[0].squares[0]
    assert square is not None
    evidence = dict(zip(heat_map.headings, square.evidence, strict=True))
    assert evidence["crash states"] == "100,000,000,000,000,000,000 of 100,000,000,000,000,000,000"
    assert (evidence["expected"], evidence["put to the test"]) == ("practice", "P1 9, P5 12")
    assert square.note == "not on this file system: exchange"


def test_entries_say_what_is_known_of_failures(run: GateRun) -> None:
    new, undecided, *known = report_of_gate(run).entries
    assert [new.standing, undecided.standing, *(each.standing for each in known)] == [
        *("new", "undecided", "known", "known")
    ]
    facts = dict(new.facts)
    assert facts["not the same each time"] == "the check varies: the crash state fails 2 of 3 times"
    assert (facts["rule"], facts["workloads that fail so"]) == ("broken: rename", "3")
    assert dict(known[0].facts)["known because"] == "see the list"
    assert (undecided.judges, undecided.finding, dict(undecided.facts)) == (
        *(("P1", "P2"), ""),
        {"part": "small-hunt", "cause": "c-0000000000000003"},
    )


def test_a_part_that_no_failure_explains_has_an_entry(run: GateRun) -> None:
    part = run.parts[3].model_copy(update={"verdict": "undecided", "not_run": 4, "notes": ("no time",)})
    report = report_of_gate(run.model_copy(update={"parts": (part,)}))
    assert [(entry.standing, entry.judges, entry.message) for entry in report.entries] == [
        ("undecided", (), "4 workloads not run; no time")
    ]


def test_known_failures_do_not_hide_what_was_not_run(run: GateRun) -> None:
    part = run.parts[1].model_copy(update={"not_run": 1})
    report = report_of_gate(run.model_copy(update={"parts": (part,)}))
    assert [entry.standing for entry in report.entries] == ["undecided", "known"]
    square = report.heat_map.rows[0].squares[0]
    assert square is not None and square.standing == "undecided"


def test_the_summary_counts(run: GateRun) -> None:
    report = report_of_gate(run)
    assert [(tile.label, tile.number) for tile in report.tiles] == [
        *(("new", "1"), ("undecided", "1"), ("known", "2"), ("fixed", "1")),
        ("crash states covered", "about 10^20"),
    ]
    assert report.sections[0].items == ("line 7 (c-00000000000000ff): fixed upstream",)
    assert report.about[0] == "gate.toml, begun at 2026-11-23T12:00:00Z, 62 s, postcrash 1.0"


@pytest.mark.parametrize(
    ("kept", "standing", "headline"),
    [
        ((0, 1, 2, 3), "new", "1 new failure, 1 undecided"),
        ((1, 2, 3), "undecided", "1 undecided"),
        ((1, 3), "holds", "Nothing new is broken"),
        ((), "undecided", "Not everything could be decided"),
    ],
)
def test_the_worst_part_stands_above(run: GateRun, kept: tuple[int, ...], standing: str, headline: str) -> None:
    report = report_of_gate(run.model_copy(update={"parts": tuple(run.parts[number] for number in kept)}))
    assert (report.standing, report.headline) == (standing, headline)


def test_a_shard_says_so_and_notes_are_not_endless(run: GateRun) -> None:
    part: Part = run.parts[0].model_copy(update={"notes": ("a",) * (NOTES_MAX + 5)})
    report = report_of_gate(run.model_copy(update={"parts": (part,), "shards": ("1/4", "2/4")}))
    assert report.about[-1] == "shards 1/4, 2/4"
    square = report.heat_map.rows[0].squares[0]
    assert square is not None and square.note.endswith("a; 5 more notes")
