"""Verdicts of real file systems next to the promises. Exit codes report only broken promises."""

import json
from pathlib import Path

from .command import postcrash

XFS_SYNC = "creat a\nappend a 8192\n---\nwrite a 0 4096\ncommit\nsync\n"
PLANTED = """
name = "ext2-planted"
like = "ext2"

[rules.planted]
statement = "Directory operations are in order."
source = "nowhere(0)"
promises = ["P1"]
"""


def test_the_four_standings_on_xfs(tmp_path: Path) -> None:
    properties = ("characterize", "--target", "xfs", "--promised", "--json", "x.json", "--properties")
    result = postcrash(tmp_path, *properties, "P1,P4,P5,D-sync-data")
    assert result.returncode == 1, result.stderr
    cells = {cell["property"]: cell for cell in json.loads((tmp_path / "x.json").read_text())["cells"]}
    standings = {name: (cell["verdict"], cell["standing"]) for name, cell in cells.items()}
    assert standings == {
        "P1": ("holds", "kept"),
        "P4": ("holds", "provided"),
        "P5": ("violated", "not_provided"),
        "D-sync-data": ("violated", "broken"),
    }
    assert cells["D-sync-data"]["promise"]["rule"] == "sync"
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["xfs", "✓", "✓°", "✗°", "✗"] in lines
    assert "xfs D-sync-data f-" in result.stdout and "broken: sync (sync(2), NOTES)" in result.stdout
    assert postcrash(tmp_path, *properties, "P1,P4,P5").returncode == 0
    assert postcrash(tmp_path, *properties, "P4,P5").returncode == 6


def test_check_fails_for_a_broken_promise(tmp_path: Path) -> None:
    (tmp_path / "sync.ops").write_text(XFS_SYNC)
    result = postcrash(tmp_path, "check", "sync.ops", "--target", "xfs", "--judge", "durability", "--promised")
    assert result.returncode == 1, result.stderr
    assert "✗ durability (broken: persistence (fsync(2), sync(2), msync(2), open(2)))" in " ".join(
        result.stdout.split()
    )


def test_a_synchronous_write_that_a_crash_cuts_short_breaks_no_promise(tmp_path: Path) -> None:
    (tmp_path / "w.ops").write_text("creat a\nappend a 65536\n---\nwrite-osync a 0 65536\n")
    judges = [part for name in ("O-blocks", "durability", "D-osync-data") for part in ("--judge", name)]
    asked = ("check", "w.ops", "--target", "ext4-current", *judges, "--json", "-")
    result = postcrash(tmp_path, *asked)
    assert result.returncode == 1, result.stderr
    report = json.loads(result.stdout)
    assert (report["verdict"], report["on_promises"]) == ("violated", "holds")
    standings = {name: judged["standing"] for name, judged in report["judges"].items()}
    assert standings == {"O-blocks": "not_provided", "durability": "kept", "D-osync-data": "kept"}
    assert "is there in part" in report["judges"]["O-blocks"]["reason"]
    assert postcrash(tmp_path, *asked, "--promised").returncode == 0


def test_a_planted_rule_is_found_broken(tmp_path: Path) -> None:
    (tmp_path / "planted.toml").write_text(PLANTED)
    arguments = ("characterize", "--target", "ext2,planted.toml", "--properties", "P1", "--promised", "--json", "-")
    result = postcrash(tmp_path, *arguments)
    assert result.returncode == 1, result.stderr
    cells = json.loads(result.stdout)["cells"]
    assert [(cell["verdict"], cell["standing"]) for cell in cells] == [
        ("violated", "not_provided"),
        ("violated", "broken"),
    ]


def test_a_rule_about_nothing_that_is_known_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "planted.toml").write_text(PLANTED.replace("P1", "P17"))
    result = postcrash(tmp_path, "characterize", "--target", "planted.toml")
    assert result.returncode == 4
    assert "planted.toml: rule planted: no property or checker is called 'P17'" in result.stderr


def test_a_hunt_counts_broken_promises_only(tmp_path: Path) -> None:
    arguments = (
        "hunt",
        "--ops",
        "1",
        "--workload-limit",
        "12",
        "--no-minimize",
        "--promised",
        "--json",
        "-",
        "--target",
    )
    result = postcrash(tmp_path, *arguments, "ext2")
    assert result.returncode == 1, result.stderr
    standings = {group["checker"]: group["standing"] for group in json.loads(result.stdout)["groups"]}
    assert (standings["durability"], standings["mounts"]) == ("broken", "not_provided")
    result = postcrash(tmp_path, *arguments, "ext4-nobarrier", "--shard", "1/100")
    assert (result.returncode, json.loads(result.stdout)["on_promises"]) == (6, "undecided"), result.stderr
