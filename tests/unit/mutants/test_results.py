"""What is kept of a measurement, and the table made of it."""

from dataclasses import replace
from pathlib import Path

from ...mutants.mutant import Mutant
from ...mutants.results import Measurements, Results, Row, compared_markdown, markdown, summary
from ...mutants.stages import DEFAULT, MutantFinding, StageOutcome

NOTHING = StageOutcome("a", "ace", None, workloads=292, seconds=8.0, verdict="holds")
SHOWN = MutantFinding("durability", "foo is gone", "creat foo\n")
FOUND = StageOutcome("f", "full", SHOWN, workloads=5, seconds=1.6, verdict="violated")
STOCK = StageOutcome("a", "ace", None, workloads=292, seconds=8.0, verdict="violated", groups=("durability: a|b",))


STAGES = ["ace", "full"]
HELD = StageOutcome("f", "full", None, workloads=952, seconds=20.0, verdict="holds")


def row(name: str, *outcomes: StageOutcome, equivalent: str = "", missed: str = "") -> Row:
    mutant = Mutant(
        name,
        "fs/x/x.c",
        function="flush",
        old="a;",
        new="",
        breaks="Nothing is true.",
        target="xfs",
        equivalent=equivalent,
        missed=missed,
    )
    return Row(mutant, Measurements("xfs", outcomes))


ROWS = (
    row("late", NOTHING, FOUND),
    row("missed", NOTHING, HELD, missed="No workload has it."),
    row("same", NOTHING, HELD, equivalent="It is never called."),
    row("begun", NOTHING),
    row("new"),
)


def test_what_is_kept_is_read_again_up_to_the_first_stage_that_is_another_one(tmp_path: Path) -> None:
    results = Results(tmp_path)
    measured, nothing = Measurements("xfs", (NOTHING, FOUND), "c"), Measurements("xfs", (), "c")
    results.put("m", measured)
    assert results.get("m", "xfs", "c", ("a", "f", "later")) == measured
    assert results.get("m", "xfs", "c", ("a", "another")) == Measurements("xfs", (NOTHING,), "c")
    assert results.get("m", "xfs", "c", ("another", "f")) == results.get("n", "xfs", "c", ("a",)) == nothing


def test_what_was_measured_with_earlier_code_is_kept_for_the_same_change_and_marked(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.put("m", Measurements("xfs", (NOTHING, FOUND), "c"))
    earlier = results.earlier("m", "xfs", "c")
    assert (earlier.outcomes, earlier.is_earlier) == ((NOTHING, FOUND), True)
    for name, target, change in (("m", "xfs", "d"), ("m", "btrfs", "c"), ("n", "xfs", "c")):
        assert results.earlier(name, target, change).outcomes == ()
    page = markdown([Row(ROWS[0].mutant, earlier)], {}, "UML 6.1.176", STAGES)
    assert "| late \\* | Nothing is true. | xfs | – | full | durability | 297 | 10 |" in page
    assert "\\* Measured with earlier code of postcrash." in page
    assert "earlier code" not in markdown(ROWS, {}, "UML 6.1.176", STAGES)


def test_workloads_and_seconds_are_those_of_all_stages() -> None:
    measured = Measurements("xfs", (NOTHING, FOUND))
    assert (measured.stage, measured.workloads, measured.seconds) == ("full", 297, 9.6)
    assert measured.found == FOUND.found
    assert Measurements("xfs", (NOTHING,)).found is None


def test_the_summary_counts_each_mutant_once() -> None:
    assert summary(ROWS, len(STAGES)) == (
        "5 mutants: 1 found, 0 of them by the default hunt within 120 s, 0 within 10 s, and 0 only by comparison; "
        "3 not found, 1 of them equivalent at this level, "
        "1 of them with stages left to run; 1 not measured"
    )


def test_the_default_hunt_has_a_column_of_its_own() -> None:
    default = StageOutcome("d", DEFAULT.name, SHOWN, workloads=3, seconds=11.0, verdict="violated")
    rows = [row("soon", replace(default, seconds=9.0)), row("late", default), ROWS[0]]
    assert "3 found, 2 of them by the default hunt within 120 s, 1 within 10 s" in summary(rows, 3)
    page = markdown(rows, {}, "UML 6.1.176", [DEFAULT.name, *STAGES])
    assert "| late | Nothing is true. | xfs | 11 | default | durability | 3 | 11 |" in page


def test_the_table_tells_what_was_found_and_what_was_not() -> None:
    page = markdown(ROWS, {"xfs": Measurements("xfs", (STOCK,))}, "UML 6.1.176", STAGES)
    assert "| late | Nothing is true. | xfs | – | full | durability | 297 | 10 |" in page
    assert "| missed | Nothing is true. | xfs | – | **not found** | – | 1244 | 28 |" in page
    assert "| same | Nothing is true. | xfs | – | equivalent | – | 1244 | 28 |" in page
    assert "| begun | Nothing is true. | xfs | – | not found by the end of ace | – | 292 | 8 |" in page
    assert "| new | Nothing is true. | xfs | – | not measured | – | – | – |" in page
    assert "- missed: No workload has it.\n- same: It is never called.\n- begun: not explained yet.\n\n" in page
    assert "| xfs | ace | 292 | 8 | violated | durability: a\\|b |" in page


def test_what_was_compared_says_what_changed_and_what_did_not() -> None:
    rebuilt = {"xfs": Measurements("xfs", (HELD,)), "btrfs": Measurements("btrfs", ())}
    page = compared_markdown((*ROWS[:2], ROWS[4]), rebuilt, "UML 6.1.176")
    assert "(UML 6.1.176)" in page
    assert "It does for 1 of 2." in page, "the last one was not compared"
    assert "| late | xfs | foo is gone | 297 | 10 |" in page
    assert "| missed | xfs | **nothing**: not explained yet. | 1244 | 28 |" in page
    assert "| xfs | full | 952 | 20 | holds |  |" in page
