"""The report of a matrix: what each standing becomes, and what is said of kernels that differ."""

from collections.abc import Callable
from typing import Any

import pytest

from postcrash.model import Verdict
from postcrash.properties.adversary import Adversary
from postcrash.properties.promises import Clause, Statements
from postcrash.reports.page.matrix_page import report_of_matrix
from postcrash.reports.page.report import Report
from postcrash.reports.tables.matrix import Matrix
from postcrash.store.records import Cell

HOLDS, UNDECIDED, VIOLATED = Verdict.HOLDS, Verdict.UNDECIDED, Verdict.VIOLATED
MakeCell = Callable[..., Cell]
MakeMatrix = Callable[..., Matrix]


def squares(report: Report) -> dict[str, list[str]]:
    """The standings and marks of each row."""
    return {
        row.name: [square.standing + square.marks if square else "" for square in row.squares]
        for row in report.heat_map.rows
    }


def test_each_verdict_has_its_standing(make_cell: MakeCell, make_matrix: MakeMatrix) -> None:
    silent, denied = Statements(None, None), Statements(None, Clause("no", "It is not so.", "fs(8)"))
    cells = [
        make_cell("xfs", "P1", HOLDS),
        make_cell("xfs", "P2", HOLDS, statements=silent),
        make_cell("xfs", "P3", VIOLATED, statements=denied),
        make_cell("xfs", "P4", VIOLATED),
        make_cell("xfs", "P5", UNDECIDED, reason="too many"),
        make_cell("xfs", "mounts", UNDECIDED, workloads=0, reason="it has no links"),
    ]
    report = report_of_matrix(make_matrix(cells), [])
    assert squares(report) == {
        **{"P1": ["kept"], "P2": ["provided"], "P3": ["not provided"], "P4": ["broken"]},
        **{"P5": ["undecided"], "mounts": ["not there"]},
    }
    evidence = [row.squares[0].evidence[0] for row in report.heat_map.rows if row.squares[0]]
    assert evidence == [
        *("kept: rule: It is so.", "provided", "not provided: no (fs(8)): It is not so."),
        *("broken: rule (fs(5)): It is so.", "It is so.", ""),
    ]
    assert [(tile.label, tile.number) for tile in report.tiles[:-1]] == [
        *(("broken", "1"), ("not provided", "1"), ("undecided", "1"), ("kept", "1"), ("provided", "1"))
    ]
    assert (report.standing, report.headline) == ("broken", "1 promise broken, 1 undecided")
    assert [entry.standing for entry in report.entries] == ["broken", "not provided", "undecided"]


@pytest.mark.parametrize(
    ("verdict", "standing", "headline"),
    [
        (HOLDS, "kept", "No promise is broken"),
        (UNDECIDED, "undecided", "No promise is broken, 1 undecided"),
        (VIOLATED, "broken", "1 promise broken"),
    ],
)
def test_the_worst_answer_stands_above(
    make_cell: MakeCell, make_matrix: MakeMatrix, verdict: Verdict, standing: str, headline: str
) -> None:
    report = report_of_matrix(make_matrix([make_cell(), make_cell(prop="P2", verdict=verdict)]), [])
    assert (report.standing, report.headline) == (standing, headline)


def test_kernels_stand_side_by_side_and_differences_are_marked(make_cell: MakeCell, make_matrix: MakeMatrix) -> None:
    old = [make_cell("xfs", "P1", kernel="6.1"), make_cell("jfs", "P1", kernel="6.1")]
    new = [make_cell("xfs", "P1", VIOLATED, kernel="6.12", reason="b"), make_cell("jfs", "P1", kernel="6.12")]
    report = report_of_matrix(make_matrix(old, new), [])
    assert [(at.target, at.kernel) for at in report.heat_map.columns] == [
        *(("xfs", "6.1"), ("xfs", "6.12"), ("jfs", "6.1"), ("jfs", "6.12"))
    ]
    assert squares(report) == {"P1": ["kept*", "broken*", "kept", "kept"]}
    assert [section.items for section in report.sections] == [("xfs P1: ✓ 6.1; ✗ 6.12: b",)]
    assert report.tiles[-1].exactly == "200,000,000,000,000,000,000"


def test_the_weakest_adversary_is_marked(make_cell: MakeCell, make_matrix: MakeMatrix) -> None:
    cells = [make_cell("xfs", "P1", VIOLATED, adversary=Adversary.COMMIT), make_cell("xfs", "P2")]
    heat_map = report_of_matrix(make_matrix(cells), []).heat_map
    assert [square.marks for row in heat_map.rows for square in row.squares if square] == ["ᶜ", ""]
    square = heat_map.rows[0].squares[0]
    assert square is not None
    assert square.evidence[1] == "a commit of the journal's timer in between"
    assert any("✗ᶜ takes a commit" in note for note in heat_map.notes)


def test_what_a_broken_property_takes_is_told(make_cell: MakeCell, make_matrix: MakeMatrix) -> None:
    cells = [
        make_cell("xfs", "P1", VIOLATED, adversary=Adversary.COMMIT),
        make_cell("xfs", "P2", UNDECIDED, reason="too many", adversary=Adversary.TORN),
        make_cell("xfs", "P3", VIOLATED, adversary=Adversary.FLUSH),
        make_cell("xfs", "P4", HOLDS, adversary=Adversary.RECOVERY),
    ]
    report = report_of_matrix(make_matrix(cells), [])
    flush, commit = Adversary.FLUSH.shown, Adversary.COMMIT.shown
    assert report.adversaries == ("a power cut alone", flush, commit)
    assert [row.squares[0].adversary for row in report.heat_map.rows if row.squares[0]] == [commit, "", flush, ""]
    assert [entry.adversary for entry in report.entries] == [commit, flush, ""]
    assert [dict(entry.facts).get("takes") for entry in report.entries] == [commit, flush, None]


def test_without_a_stronger_adversary_there_is_nothing_to_choose(make_cell: MakeCell, make_matrix: MakeMatrix) -> None:
    cells = [make_cell("xfs", "P1", VIOLATED, adversary=Adversary.PLAIN), make_cell("xfs", "P2")]
    report = report_of_matrix(make_matrix(cells), [])
    assert report.adversaries == ()
    assert dict(report.entries[0].facts)["takes"] == "a power cut alone"


def test_what_others_published_is_marked(make_cell: MakeCell, make_matrix: MakeMatrix) -> None:
    report = report_of_matrix(make_matrix([make_cell("ext4-original", "P2", VIOLATED)]), [])
    assert squares(report) == {"P2": ["broken†"]}
    assert report.sections[0].heading.startswith("† differs from HotDep'13")


def test_findings_that_are_no_witness_are_there_too(crash: Any, make_cell: MakeCell, make_matrix: MakeMatrix) -> None:
    report = report_of_matrix(make_matrix([make_cell()]), [crash.finding])
    assert [(entry.finding, entry.judges) for entry in report.entries] == [(crash.finding.id, ("P5",))]
