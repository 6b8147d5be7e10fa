"""The property table: every cell decided, with evidence."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from postcrash.model import Verdict
from postcrash.reports.tables.published import published

from .command import postcrash

Cells = dict[tuple[str, str], dict[str, Any]]
"""The cells of a table by target and property."""
Table = tuple[Path, Cells]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """The cells of a whole table, and the folder with its store."""
    folder = tmp_path_factory.mktemp("table")
    written = ("--json", "table.json", "--html", "table.html", "--markdown", "table.md")
    result = postcrash(folder, "characterize", *written)
    assert result.returncode == 1, result.stderr
    cells = json.loads((folder / "table.json").read_text())["cells"]
    return folder, {(cell["target"], cell["property"]): cell for cell in cells}


def test_every_cell_is_decided_and_says_what_it_rests_on(table: Table) -> None:
    _, cells = table
    assert len(cells) == 5 * 6
    for cell in cells.values():
        assert cell["verdict"] in ("holds", "violated")
        assert (cell["witness"] is not None) == (cell["verdict"] == "violated")
        assert int(cell["states"]) > cell["recoveries"] > cell["workloads"] > 0
        assert cell["relevant"] > 0


def test_every_published_counterexample_is_found_again(table: Table) -> None:
    _, cells = table
    known = [place for place in cells if published(*place) is Verdict.VIOLATED]
    assert len(known) == 7
    for place in known:
        assert cells[place]["verdict"] == "violated", place


def test_a_disk_that_takes_its_time_is_blamed_only_where_it_is_needed(table: Table) -> None:
    folder, cells = table
    assert [place for place, cell in cells.items() if cell["adversary"] == "held" and cell["witness"]] == [
        ("ext4-current", "P5")
    ]
    held = cells_of(folder, "--target", "ext4-current", "--property", "P2,P5", "--held", "2")
    shown = {name: (cell["verdict"], cell["adversary"]) for (_, name), cell in held.items()}
    assert shown == {"P2": ("violated", "plain"), "P5": ("violated", "held")}


def test_one_disk_is_named_as_what_was_tried(table: Table) -> None:
    folder, _ = table
    (cell,) = cells_of(folder, "--target", "ext4-current", "--property", "P5", "--one-disk").values()
    assert (cell["verdict"], cell["adversary"]) == ("holds", "commit")


ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (ext[34]|btrfs)\S*.* \|$", re.MULTILINE)


def rows(text: str) -> list[list[str]]:
    """The first table of file systems in a page: the name and the cells of each row, without footnotes."""
    found = [[cell.strip() for cell in row[0].strip("|").split("|")] for row in ROW.finditer(text)][:5]
    return [[name.partition(" ")[0], *(re.sub("[ ⁰¹²³⁴⁵⁶⁷⁸⁹†]", "", cell) for cell in cells)] for name, *cells in found]


@pytest.mark.parametrize("page", ["README.md", "docs/characterize.md"])
def test_pages_have_the_table_that_the_command_makes(table: Table, page: str) -> None:
    folder, _ = table
    made = rows((folder / "table.md").read_text())
    assert [len(row) for row in made] == [7] * 5
    assert rows((ROOT / page).read_text()) == made


def test_a_gate_says_the_same(table: Table) -> None:
    """A table and a gate answer the same question in the same way, on the same kernel."""
    folder, cells = table
    targets = ("ext3-ordered", "ext4-current")
    (folder / "postcrash.toml").write_text(
        f'targets = {json.dumps(targets)}\nexpect = "documents"\n[parts.replace]\nproperties = ["P5"]\n'
    )
    postcrash(folder, "gate", "--json", "gate.json")
    parts = json.loads((folder / "gate.json").read_text())["parts"]
    said = {part["target"]: any(failure["judge"] == "P5" for failure in part["failures"]) for part in parts}
    assert said == {target: cells[target, "P5"]["verdict"] == "violated" for target in targets}
    assert set(said.values()) == {False, True}


def test_every_witness_fails_again(table: Table, pytestconfig: pytest.Config) -> None:
    """Without --full: one of each target."""
    folder, cells = table
    witnesses = {place: cell["witness"] for place, cell in cells.items() if cell["witness"]}
    by_target = {target: witness for (target, _), witness in witnesses.items()}
    assert len(by_target) == 5
    for witness in set((witnesses if pytestconfig.option.full else by_target).values()):
        assert postcrash(folder, "repro", witness).returncode == 1


def test_the_page_tells_every_witness(table: Table) -> None:
    folder, cells = table
    page = (folder / "table.html").read_text()
    (block,) = re.findall(r'<script type="application/json" id="stories">(.*)</script>', page)
    stories = json.loads(block)["stories"]
    for cell in cells.values():
        if cell["witness"]:
            assert f'id="{cell["witness"]}"' in page
            assert f"postcrash repro {cell['witness']}" in page
            assert stories[cell["witness"]]["timeline"] and stories[cell["witness"]]["script"]
    findings = [json.loads(story["finding"]) for story in stories.values()]
    assert all(finding["needed"] is not None for finding in findings)
    assert any(finding["needed"] for finding in findings), "there are lost writes that matter"


def test_a_drive_that_ignores_flushes_shows_in_the_table(tmp_path: Path) -> None:
    arguments = (
        "characterize",
        "--target",
        "ext4-current",
        "--property",
        "P4",
        "--model",
        "lying",
        "--budget",
        "200",
        "--json",
        "-",
    )
    result = postcrash(tmp_path, *arguments)
    (cell,) = json.loads(result.stdout)["cells"]
    assert (result.returncode, cell["verdict"]) == (1, "violated")


OTHER_THAN_PUBLISHED = {
    ("ext3-ordered", "P2"),
    ("ext3-ordered", "P3"),
    ("ext3-writeback", "P5"),
    ("ext4-original", "P2"),
    ("ext4-current", "P2"),
    ("btrfs", "P1"),
    ("btrfs", "P3"),
}
"""Where a power cut alone shows something else than HotDep'13's table. docs/characterize.md has the causes."""


def test_a_power_cut_alone_gives_the_published_table(table: Table) -> None:
    folder, usual = table
    cells = cells_of(folder, "--adversary", "plain")
    plain = {place: Verdict[cell["verdict"].upper()] for place, cell in cells.items()}
    printed = {place: verdict for place in plain if (verdict := published(*place)) is not None}
    assert len(printed) == 5 * 5
    assert {place for place, verdict in printed.items() if plain[place] is not verdict} == OTHER_THAN_PUBLISHED
    for place, cell in usual.items():
        assert (cell["adversary"] == "plain") == (plain[place] is Verdict.VIOLATED), place


def cells_of(folder: Path, *arguments: str) -> Cells:
    """The cells of a table of the chosen properties."""
    result = postcrash(folder, "characterize", *arguments, "--json", "-")
    return {(cell["target"], cell["property"]): cell for cell in json.loads(result.stdout)["cells"]}


def test_the_catalogue_tells_file_systems_apart(tmp_path: Path) -> None:
    chosen = "O-append-append,A-rename,A-symlink,R-rename-new,D-fsync-link,D-return-name"
    targets = ("ext2", "ext4-journal", "ext4-original", "xfs-wsync")
    cells = cells_of(tmp_path, *(f"--target={target}" for target in targets), "--properties", chosen)
    broken = {
        target: {name for (at, name), cell in cells.items() if (at, cell["verdict"]) == (target, "violated")}
        for target in targets
    }
    assert broken == {
        "ext2": set(chosen.split(",")),
        "ext4-journal": {"D-return-name"},
        "ext4-original": {"O-append-append", "R-rename-new", "D-return-name"},
        "xfs-wsync": {"O-append-append", "R-rename-new"},
    }
    assert {cell["verdict"] for cell in cells.values()} == {"holds", "violated"}


def test_what_a_file_system_refuses_is_undecided(tmp_path: Path) -> None:
    (cell,) = cells_of(tmp_path, "--target", "ext2", "--properties", "A-exchange").values()
    assert cell["verdict"] == "undecided"
    assert (cell["workloads"], cell["reason"]) == (0, "not supported: exchange")


def test_a_torn_block_needs_a_device_that_tears(tmp_path: Path) -> None:
    arguments = ("--target", "ext4-current", "--properties", "O-block-overwrite", "--model")
    (whole,) = cells_of(tmp_path, *arguments, "cache").values()
    (torn,) = cells_of(tmp_path, *arguments, "torn").values()
    assert (whole["verdict"], torn["verdict"]) == ("undecided", "violated")
    assert whole["reason"] == "the device model cache never tears a block: see --model torn"
