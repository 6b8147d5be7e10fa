"""Which of the writes that a finding's crash state lost matter: each is kept in turn, on a real kernel."""

import json
from pathlib import Path

import pytest

from postcrash.model import ExitCode

from .command import postcrash


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workload on ext4 without barriers, where the blocks of a journal's transaction may be lost one by one."""
    folder = tmp_path_factory.mktemp("flips")
    (folder / "w.ops").write_text("creat a\n---\nappend a 4096\nfsync a\n")
    done = postcrash(
        folder, "check", "w.ops", "--target", "ext4-nobarrier", "--judge", "durability", "--json", "c.json"
    )
    assert done.returncode == ExitCode.VIOLATED, done.stderr
    return folder


def test_a_minimal_witness_needs_each_write_that_it_lost(folder: Path) -> None:
    """Otherwise a simpler state, which is covered too, would have been the witness, if the message is the same."""
    found = json.loads((folder / "c.json").read_text())["findings"]
    lost = {each["id"]: len(each["lost"]) for each in found}
    assert any(lost.values())
    for each in found:
        told = json.loads(postcrash(folder, "repro", each["id"], "--flip", "--json", "-").stdout)
        assert len(told["flips"]) == lost[each["id"]]
        assert {flip["verdict"] for flip in told["flips"]} <= {"holds"}
        text = postcrash(folder, "explain", each["id"]).stdout
        assert text.count("with this write kept, it passes") == lost[each["id"]]


def test_what_was_not_tried_is_not_claimed(folder: Path) -> None:
    done = postcrash(folder, "check", "w.ops", "--target", "ext4-nobarrier", "--judge", "durability", "--fresh")
    assert "it passes" not in done.stdout
