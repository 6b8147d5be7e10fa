"""The report of applications on file systems: what each cell becomes, and where the sources are to blame."""

from postcrash.reports.page.needs_page import ANYWHERE, report_of_needs
from postcrash.reports.page.report import Report


def test_each_cell_has_its_standing(needs: Report) -> None:
    squares = {
        row.name: [square.standing for square in row.squares if square is not None] for row in needs.heat_map.rows
    }
    assert squares == {
        "kv-1.2[sync=on]": ["unsafe", "unsafe by its properties"],
        "replace": ["safe", "safe so far"],
    }
    assert (needs.standing, needs.headline, needs.judges_are) == ("unsafe", "1 cell unsafe", "application")
    assert [tile.number for tile in needs.tiles] == ["1", "1", "0", "1", "1", "1", "4,000,000"]


def test_what_is_lost_is_told_with_its_source_lines(needs: Report) -> None:
    (entry,) = (entry for entry in needs.entries if entry.target == ANYWHERE)
    assert entry.standing == "vulnerability"
    assert entry.facts == (
        ("lost", "block 0 (write of store/log, call 7, db/log.cc:87 from db/db.cc:12)"),
        ("lost", "the name CURRENT (rename, call 9)"),
        ("it had said", "put a"),
        ("prevented by", "P1 or P5"),
    )


def test_what_only_the_model_shows_is_no_finding(needs: Report) -> None:
    square = needs.heat_map.rows[0].squares[1]
    assert square is not None
    assert (square.entries, square.note, square.evidence[-1]) == ((), "a key is lost", "P5")


def test_what_each_needs_is_listed(needs: Report) -> None:
    assert needs.sections[0].items == (
        "kv-1.2[sync=on]: P1 and P5; or S-sequential (first 200); there may be other sets "
        "(200 folders of 31 changes judged)",
        "replace: what no property gives (7 folders of 5 changes judged)",
    )


def test_without_a_target_nothing_is_called_safe() -> None:
    report = report_of_needs([], [], [], "now", "UML 6.1")
    assert (report.standing, report.headline) == ("undecided", "0 applications, run on no file system")
