"""The command line as a user sees it, from a workload file to a finding that can be replayed."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .command import COMMAND, EXAMPLE, leftovers, one_line, postcrash


@pytest.fixture(scope="module")
def replaced(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """`check` of the replace-by-rename example on ext4-original: its folder and its JSON."""
    folder = tmp_path_factory.mktemp("replace")
    result = postcrash(folder, "check", str(EXAMPLE), "--target", "ext4-original", "--json", "-")
    assert result.returncode == 1, result.stderr
    return folder, json.loads(result.stdout)


def test_check_finds_the_empty_file_after_rename(replaced: tuple[Path, dict[str, Any]]) -> None:
    _, report = replaced
    assert report["verdict"] == "violated"
    assert int(report["states"]) > report["recoveries"] > 0
    assert report["states"] == report["states_total"]
    (finding,) = (finding for finding in report["findings"] if finding["checker"] == "P5")
    tree = {entry["path"]: entry for entry in finding["observation"]["tree"]}
    assert tree["A"]["size"] == 0
    assert "B" not in tree


def test_repro_fails_again_every_time(replaced: tuple[Path, dict[str, Any]]) -> None:
    folder, report = replaced
    identifier = report["findings"][0]["id"]
    result = postcrash(folder, "repro", identifier, "--times", "20", "--json", "-")
    assert result.returncode == 1, result.stderr
    assert json.loads(result.stdout)["failures"] == 20


def test_explain_tells_what_was_lost_and_found(replaced: tuple[Path, dict[str, Any]]) -> None:
    folder, report = replaced
    (finding,) = (finding for finding in report["findings"] if finding["checker"] == "P5")
    result = postcrash(folder, "explain", finding["id"])
    assert result.returncode == 0, result.stderr
    for expected in (
        "rename B A",
        "write B 0 4096",
        "0 bytes",
        "journal commit block of transaction",
        "never sent to the disk",
    ):
        assert expected in result.stdout


def test_the_same_check_again_comes_from_the_store(replaced: tuple[Path, dict[str, Any]]) -> None:
    folder, report = replaced
    again = postcrash(folder, "check", str(EXAMPLE), "--target", "ext4-original", "--json", "-")
    assert json.loads(again.stdout) == report


def test_minimize_writes_the_smallest_workload_and_explain_names_it(replaced: tuple[Path, dict[str, Any]]) -> None:
    folder, report = replaced
    (finding,) = (finding for finding in report["findings"] if finding["checker"] == "P5")
    result = postcrash(folder, "minimize", finding["id"], "--output", "minimal.ops", "--json", "-")
    assert result.returncode == 1, result.stderr
    found = json.loads(result.stdout)
    text = (folder / "minimal.ops").read_text()
    assert text == found["workload"] == "creat a\nappend a 1\n---\ncreat b\nappend b 1\nrename b a\n"
    assert f"postcrash explain {found['minimal']}" in postcrash(folder, "explain", finding["id"]).stdout
    assert postcrash(folder, "repro", found["minimal"]).returncode == 1
    again = postcrash(folder, "check", "minimal.ops", "--target", "ext4-original", "--judge", "P5", "--json", "-")
    assert found["minimal"] in [finding["id"] for finding in json.loads(again.stdout)["findings"]]


OWN_TARGET = """\
name = "mine"
like = "ext4-original"
title = "ext4, a journal of 1 MiB"
mkfs = ["mkfs.ext4", "-q", "-F", "-b", "1024", "-J", "size=1", "-E", "lazy_itable_init=0,nodiscard"]
"""


def test_a_finding_on_a_target_of_ones_own_is_shown_again_when_its_file_is_gone(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(OWN_TARGET)
    found = postcrash(tmp_path, "check", str(EXAMPLE), "--target", "./mine.toml", "--judge", "P5", "--json", "-")
    (finding,) = json.loads(found.stdout)["findings"]
    assert (finding["target"], finding["explanation"]["named_by"]) == ("mine", "debugfs")
    (tmp_path / "mine.toml").unlink()
    for command in (("repro", "--times", "3"), ("minimize",)):
        again = postcrash(tmp_path, command[0], finding["id"], *command[1:])
        assert (again.returncode, again.stderr) == (1, "")
    reported = postcrash(tmp_path, "report", finding["id"])
    assert "-J size=1" in reported.stdout, reported.stderr


SECTIONS = """\
[ext4_1k]
FSTYP=ext4
MKFS_OPTIONS="-q -F -b1024 -m 0"
MOUNT_OPTIONS="-o noauto_da_alloc"
[xfs_reflink]
FSTYP=xfs
MKFS_OPTIONS="-f -m reflink=1,rmapbt=1 -i sparse=1"
[ext4_with_a_mistake]
FSTYP=ext4
MKFS_OPTIONS="-b 1000"
"""


def test_sections_of_xfstests_really_run(tmp_path: Path) -> None:
    (tmp_path / "local.config").write_text(SECTIONS)
    assert postcrash(tmp_path, "import-xfstests", "local.config").returncode == 0
    for name in ("ext4-1k", "xfs-reflink"):
        target = f"./xfstests-{name}.toml"
        ran = postcrash(tmp_path, "check", str(EXAMPLE), "--target", target, "--judge", "P5,mounts", "--json", "-")
        report = json.loads(ran.stdout)
        assert (ran.returncode, report["judges"]["mounts"]["verdict"]) == (1, "holds"), ran.stderr
        assert report["judges"]["P5"]["verdict"] == "violated"
    wrong = postcrash(tmp_path, "check", str(EXAMPLE), "--target", "./xfstests-ext4-with-a-mistake.toml")
    assert "mkfs.ext4 -b 1000" in one_line(wrong, 3)


def test_a_journal_of_data_replaces_safely_and_says_what_that_covers(tmp_path: Path) -> None:
    judges = ("--judge", "P5", "--judge", "durability")
    result = postcrash(tmp_path, "check", str(EXAMPLE), "--target", "ext4-journal", *judges, "--json", "-")
    report = json.loads(result.stdout)
    assert (result.returncode, report["verdict"]) == (0, "holds"), report["findings"]
    told = {"verdict": "holds", "relevant": True, "reason": "", "promise": None, "denial": None}
    told |= {"standing": "provided", "meaning": "provided"}
    assert report["judges"]["P5"] == told


def test_a_judge_without_a_premise_is_not_put_to_the_test(tmp_path: Path) -> None:
    (tmp_path / "w.ops").write_text("creat a\n")
    arguments = ("check", "w.ops", "--target", "ext4-current", "--judge")
    alone = postcrash(tmp_path, *arguments, "P2", "--json", "-")
    report = json.loads(alone.stdout)
    assert (alone.returncode, report["verdict"]) == (6, "undecided"), alone.stderr
    assert report["judges"]["P2"]["verdict"] == "untested"
    assert "– P2 (not put to the test)" in postcrash(tmp_path, *arguments, "P2").stdout
    both = postcrash(tmp_path, *arguments, "P2,mounts", "--json", "-")
    report = json.loads(both.stdout)
    assert (both.returncode, report["verdict"]) == (0, "holds")
    assert [report["judges"][name]["verdict"] for name in ("P2", "mounts")] == ["untested", "holds"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("check", str(EXAMPLE), "--target", "ext5"), "unknown target 'ext5'"),
        (("check", "missing.ops", "--target", "btrfs"), "missing.ops"),
        (("check", str(EXAMPLE), "--target", "btrfs", "--judge", "P9"), "unknown property or checker 'P9'"),
        (
            ("check", str(EXAMPLE), "--target", "btrfs", "--judge", "P1,mount"),
            "'mount', did you mean 'mounts'?",
        ),
        (("characterize", "--property", "P9"), "P9"),
        (("repro", "f-0000000000000000"), "f-0000000000000000"),
        (
            ("report", "f-0000000000000000", "--fstests", "t/replace"),
            "--fstests t/replace: a test of fstests is called by",
        ),
        (("explain", "nonsense"), "nonsense"),
        (("minimize", "f-0000000000000000"), "f-0000000000000000"),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path: Path, arguments: tuple[str, ...], expected: str) -> None:
    assert expected in one_line(postcrash(tmp_path, *arguments), 4)
    assert leftovers(tmp_path) == []


def test_a_workload_with_an_error_shows_the_place(tmp_path: Path) -> None:
    workload = tmp_path / "bad.ops"
    workload.write_text("creat A\nwrite A zero 4096\n")
    assert "bad.ops:2:9: expected OFFSET" in one_line(postcrash(tmp_path, "check", "bad.ops", "--target", "btrfs"), 4)
    workload.write_text("unlink nothing\n")
    line = one_line(postcrash(tmp_path, "check", "bad.ops", "--target", "btrfs"), 4)
    assert "bad.ops:1" in line and "ENOENT" in line


def test_a_missing_mkfs_says_what_to_install(tmp_path: Path) -> None:
    hide = (
        "import shutil; which = shutil.which; "
        "shutil.which = lambda name, **kw: None if name == 'mkfs.xfs' else which(name, **kw); "
    )
    command = [COMMAND[0], COMMAND[1], hide + COMMAND[2], "characterize", "--target", "xfs"]
    environment = {**os.environ, "POSTCRASH_CACHE": str(tmp_path / "cache")}
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "mkfs.xfs is not installed: run  apt-get install xfsprogs" in one_line(result, 3)


def test_an_image_that_is_not_a_file_system(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    fake = tools / "mkfs.btrfs"
    fake.write_text("#!/bin/sh\nexit 0\n")
    fake.chmod(0o755)
    environment = {"PATH": f"{tools}:{os.environ['PATH']}", "POSTCRASH_CACHE": str(tmp_path / "cache")}
    result = postcrash(tmp_path, "check", str(EXAMPLE), "--target", "btrfs", **environment)
    assert "mount" in one_line(result, 3)
    assert leftovers(tmp_path / ".postcrash") == []


def test_a_truncated_recording(replaced: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, report = replaced
    finding = report["findings"][0]
    recording = folder / f".postcrash/recordings/{finding['recording']}.pcr"
    whole = recording.read_bytes()
    try:
        recording.write_bytes(whole[: len(whole) // 2])
        line = one_line(postcrash(folder, "repro", finding["id"]), 4)
        assert recording.name in line and "truncated" in line
    finally:
        recording.write_bytes(whole)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few pages."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_leaves_nothing_half_written(tiny_disk: Path) -> None:
    result = postcrash(tiny_disk, "check", str(EXAMPLE), "--target", "ext4-original")
    assert "no space left on the disk; what was there before is unharmed" in one_line(result, 3)
    assert leftovers(tiny_disk) == []


def test_control_c_keeps_what_is_finished_and_the_next_run_goes_on(tmp_path: Path) -> None:
    command = [*COMMAND, "characterize", "--target", "ext4-current", "--property", "P1,P4", "--guests", "1"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    database = tmp_path / ".postcrash/verdicts.db"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not finished_runs(database):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 2, errors
    assert len(errors.strip().splitlines()) == 1
    assert "interrupted" in errors
    kept = finished_runs(database)
    assert kept >= 1
    assert leftovers(tmp_path) == []
    again = postcrash(tmp_path, "characterize", "--target", "ext4-current", "--property", "P1,P4", "--json", "-")
    assert again.returncode == 0, again.stderr
    assert finished_runs(database) > kept


def finished_runs(database: Path) -> int:
    """How many runs a store holds."""
    import sqlite3

    if not database.exists():
        return 0
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        return int(connection.execute("SELECT count(*) FROM run").fetchone()[0])
    finally:
        connection.close()
