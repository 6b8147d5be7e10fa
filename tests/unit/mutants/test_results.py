"""What is kept of a measurement, and the table made of it."""

from pathlib import Path

from ...mutants.mutant import Mutant
from ...mutants.results import Measurements, Results, Row, markdown, summary
from ...mutants.stages import MutantFinding, StageOutcome

NOTHING = StageOutcome("ace", None, 292, 8.0, "holds")
FOUND = StageOutcome("full", MutantFinding("durability", "foo is gone", "creat foo\n"), 5, 1.6, "violated")
STOCK = StageOutcome("ace", None, 292, 8.0, "violated", ("durability: a|b",))


STAGES = ["ace", "full"]
HELD = StageOutcome("full", None, 952, 20.0, "holds")


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
    return Row(mutant, Measurements("key", "xfs", outcomes))


ROWS = (
    row("late", NOTHING, FOUND),
    row("missed", NOTHING, HELD, missed="No workload has it."),
    row("same", NOTHING, HELD, equivalent="It is never called."),
    row("begun", NOTHING),
    row("new"),
)


def test_what_is_kept_is_read_again_but_not_under_another_key(tmp_path: Path) -> None:
    results = Results(tmp_path)
    measured = Measurements("key", "xfs", (NOTHING, FOUND, STOCK))
    results.put("m", measured)
    assert results.get("m", "key") == measured
    assert results.get("m", "another key") is None
    assert results.get("n", "key") is None


def test_workloads_and_seconds_are_those_of_all_stages() -> None:
    measured = Measurements("key", "xfs", (NOTHING, FOUND))
    assert (measured.stage, measured.workloads, measured.seconds) == ("full", 297, 9.6)
    assert measured.found == FOUND.found
    assert Measurements("key", "xfs", (NOTHING,)).found is None


def test_the_summary_counts_each_mutant_once() -> None:
    assert summary(ROWS, len(STAGES)) == (
        "5 mutants: 1 found, 1 of them in under 10 s; 2 not found, 1 of them equivalent; 2 not measured to the end"
    )


def test_the_table_tells_what_was_found_and_what_was_not() -> None:
    page = markdown(ROWS, {"xfs": Measurements("key", "xfs", (STOCK,))}, "UML 6.1.176", STAGES)
    assert "| late | Nothing is true. | xfs | full | durability | 297 | 10 |" in page
    assert "| missed | Nothing is true. | xfs | **not found** | – | 1244 | 28 |" in page
    assert "| same | Nothing is true. | xfs | equivalent | – | 1244 | 28 |" in page
    assert "| begun | Nothing is true. | xfs | not found by the end of ace | – | 292 | 8 |" in page
    assert "| new | Nothing is true. | xfs | not measured | – | – | – |" in page
    assert "- missed: No workload has it.\n- same: It is never called.\n" in page
    assert "| xfs | ace | 292 | 8 | violated | durability: a\\|b |" in page
