"""The table as terminal text, Markdown and JSON, and its footnotes."""

import io
import re
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from postcrash.model import Verdict
from postcrash.properties import GROUPS, PROPERTIES
from postcrash.properties.adversary import Adversary
from postcrash.properties.promises import Clause, Statements
from postcrash.reports.tables.grid import (
    adversary_legend,
    mark,
    marked,
)
from postcrash.reports.tables.published import published, why_otherwise
from postcrash.reports.tables.table import LEGEND, print_table, to_json, to_markdown
from postcrash.store.records import Cell

MakeCell = Callable[..., Cell]
HOLDS, UNDECIDED, VIOLATED = Verdict.HOLDS, Verdict.UNDECIDED, Verdict.VIOLATED


def printed(cells: list[Cell]) -> str:
    out = io.StringIO()
    print_table(cells, Console(file=out, width=100))
    return out.getvalue()


def test_the_published_table() -> None:
    rows = {
        target: [published(target, prop) for prop in ("P1", "P2", "P3", "P4", "P5")]
        for target in ("ext3-ordered", "ext3-writeback", "ext4-original", "ext4-current", "btrfs")
    }
    assert rows == {
        "ext3-ordered": [HOLDS] * 5,
        "ext3-writeback": [HOLDS, VIOLATED, VIOLATED, HOLDS, HOLDS],
        "ext4-original": [HOLDS, HOLDS, VIOLATED, HOLDS, VIOLATED],
        "ext4-current": [HOLDS, HOLDS, VIOLATED, HOLDS, HOLDS],
        "btrfs": [VIOLATED, HOLDS, VIOLATED, HOLDS, HOLDS],
    }
    assert published("xfs", "P1") is None
    assert published("btrfs", "P2-null") is None


def test_the_published_table_of_osdi14() -> None:
    rows = {known.name for known in GROUPS["osdi14"]}
    targets = ("ext2", "ext3-journal", "ext4-current", "btrfs", "xfs-wsync")
    known = {target: {name for name in rows if published(target, name) is VIOLATED} for target in targets}
    assert known == {
        "ext2": rows - {"O-sector-overwrite"},
        "ext3-journal": {"O-blocks"},
        "ext4-current": {"O-block-overwrite", "O-blocks", "O-overwrite-any", "O-append-any"},
        "btrfs": {"O-blocks", "O-dir-any"},
        "xfs-wsync": {"O-block-overwrite", "O-blocks", "O-overwrite-any"},
    }
    assert published("xfs-wsync", "O-append-any") is None
    assert published("btrfs", "O-append-any") is None
    assert all(published("ext2", name) is not None for name in rows)


def test_every_difference_in_the_stored_table_is_explained() -> None:
    text = (Path(__file__).resolve().parents[4] / "docs/results/catalogue.md").read_text()
    differ = re.findall(r"^- (\S+) (\S+): published . \((?:OSDI'14|Linux 3.2)\)(.*)$", text, re.MULTILINE)
    assert differ
    assert [(target, prop) for target, prop, why in differ if why != f"; {why_otherwise(target, prop)}"] == []


def test_many_properties_stand_in_rows(make_cell: MakeCell) -> None:
    cells = [make_cell(target, checked.name) for checked in PROPERTIES for target in ("xfs", "ext4-current")]
    lines = [" ".join(line.split()) for line in printed(cells).splitlines()]
    assert [line for line in lines[2:5] if line][:2] == ["ext4", "xfs current"]
    assert "O-sector-overwrite ✓ ✓" in lines
    assert "D-fdatasync-rename ✓ ✓" in lines
    assert "| O-dir | ✓ | ✓ |" in to_markdown(cells)
    assert LEGEND in lines


def test_no_verdict_is_cut_off_where_the_terminal_is_narrow(make_cell: MakeCell) -> None:
    cells = [make_cell(f"target-{number}", checked.name) for checked in PROPERTIES for number in range(30)]
    out = io.StringIO()
    print_table(cells, Console(file=out, width=60))
    row = next(line for line in out.getvalue().splitlines() if "S-powersafe-overwrite" in line)
    assert row.count("✓") == 30


def test_the_terminal_table(cells: list[Cell]) -> None:
    lines = [" ".join(line.split()) for line in printed(cells).splitlines()]
    assert "P1 P2 P2-null mounts" in lines
    assert "xfs · · ? ✓" in lines
    assert "btrfs ✗ ✗† · ✓" in lines
    assert "† differs from HotDep'13, Table 1, or OSDI'14, Table 1:" in lines
    assert any(line.startswith("btrfs P2: published ✓ (Linux 3.2); the size is set") for line in lines)
    assert "✗ btrfs P1 f-0000000000000001: b is there, a is not; broken: rule (fs(5))" in lines
    assert "? xfs P2-null 4,096 recoveries were not enough" in lines
    assert any(
        line.startswith("5 cells cover 5,902,958,103,587,056,517,120 crash states with 70 rec") for line in lines
    )


def test_what_nobody_promised_is_marked(make_cell: MakeCell) -> None:
    silent, denied = Statements(None, None), Statements(None, Clause("no", "It is not so.", "fs(8)"))
    cells = [
        make_cell("btrfs", "P1", HOLDS, statements=silent),
        make_cell("btrfs", "P3", VIOLATED, statements=denied),
        make_cell("btrfs", "P4", UNDECIDED, statements=silent),
        make_cell("btrfs", "P5", VIOLATED),
    ]
    assert [mark(cell) for cell in cells] == ["✓°†", "✗°", "?", "✗†"]
    assert "btrfs ✓°† ✗° ? ✗†" in [" ".join(line.split()) for line in printed(cells).splitlines()]
    assert "° not promised: ✓ kept, ✗ broken, ✓° provided, ✗° not provided" in printed(cells)
    markdown = to_markdown(cells)
    assert "| btrfs | ✓°† | ✗° | ? | ✗† |" in markdown
    assert [line.split(" | ")[3] for line in markdown.splitlines() if line.startswith("| btrfs | P")] == [
        *("provided", "not provided: no (fs(8))", "", "broken: rule (fs(5))")
    ]


def test_hostile_text_is_shown_as_it_is(make_cell: MakeCell) -> None:
    text = printed([make_cell("[red]x\x1b[2J", verdict=VIOLATED, reason="[bold]\x1b]0;x\x07")])
    assert "[red]x\\x1b[2J" in text
    assert "[bold]\\x1b]0;x\\x07" in text


def test_markdown(cells: list[Cell]) -> None:
    lines = to_markdown(cells).splitlines()
    assert lines[:6] == [
        "**Kernel UML 6.1.176, device model cache**",
        "",
        "|  | P1 | P2 | P2-null | mounts |",
        "| --- | :-: | :-: | :-: | :-: |",
        "| xfs | · | · | ? | ✓ |",
        "| btrfs | ✗ | ✗† | · | ✓ |",
    ]
    assert any(line.startswith("- btrfs P2: published ✓ (Linux 3.2); the size is set") for line in lines)
    row = "| btrfs | P2 | ✗ | broken: rule (fs(5)) | 1,180,591,620,717,411,303,424 | 14 | 9 | 12 | 3 |"
    assert f"{row} f-0000000000000002: a is \\| long; broken: rule (fs(5)) |" in lines


def test_markdown_shows_hostile_text_as_it_is(make_cell: MakeCell) -> None:
    text = to_markdown([make_cell("ext4_x", reason="<b>*a*</b>\n|`x` [y](z) \x1b")])
    assert "ext4\\_x" in text
    assert "\\<b\\>\\*a\\*\\</b\\> \\|\\`x\\` \\[y\\](z) \\\\x1b" in text


def test_json(cells: list[Cell]) -> None:
    assert to_json(cells) == {"cells": [cell.to_json() for cell in cells]}


def test_no_cells_are_no_table() -> None:
    assert printed([]) == ""
    assert to_markdown([]) == ""


def test_a_violation_says_what_it_takes(make_cell: MakeCell) -> None:
    cells = [
        make_cell("btrfs", "P1", Verdict.VIOLATED, adversary=Adversary.FLUSH),
        make_cell("btrfs", "P4", Verdict.HOLDS, adversary=Adversary.COMMIT),
        make_cell("xfs", "P1", Verdict.VIOLATED, adversary=Adversary.PLAIN),
    ]
    said = f"✗ takes {Adversary.PLAIN.shown}; ✗ᶠ takes {Adversary.FLUSH.shown}; ✓ stands up to {Adversary.COMMIT.shown}"
    assert adversary_legend(cells) == said
    assert [marked(cell) for cell in cells] == ["✗ᶠ", "✓", "✗"]
    assert said in to_markdown(cells)
    assert adversary_legend([make_cell(verdict=Verdict.UNDECIDED)]) == ""
