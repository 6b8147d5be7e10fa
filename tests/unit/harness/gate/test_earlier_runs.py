"""Which parts of a gate come first in the next run."""

import fcntl
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash.harness.gate.earlier_runs import UNFINISHED_FILE, Sightings, UnfinishedParts
from postcrash.model import NO_TIME_FOR_MORE_LOOKS
from postcrash.store.gate_run import NO_TIME

from .conftest import failure, part


def planned(name: str, kernel_name: str = "./linux") -> Any:
    """A planned part, of which only what tells it from others is there."""
    about = {"target": SimpleNamespace(name="ext4-current"), "how": SimpleNamespace(model="cache")}
    return SimpleNamespace(name=name, kernel_name=kernel_name, **about)


A, B, C = (planned(name) for name in "abc")


def test_nothing_is_known_at_first(tmp_path: Path) -> None:
    assert UnfinishedParts(tmp_path).sort([A, B]) == [A, B]


def test_what_was_left_open_comes_first_on_a_kernel_that_was_built_anew(tmp_path: Path) -> None:
    UnfinishedParts(tmp_path).update([A, B], [part(kernel="UML 6.1.1"), part(kernel="UML 6.1.1", not_run=1)])
    assert UnfinishedParts(tmp_path).sort([A, B, C]) == [B, A, C]
    assert UnfinishedParts(tmp_path).sort([A, planned("b", "6.12"), B]) == [B, A, planned("b", "6.12")]


def test_a_run_of_one_part_forgets_nothing_of_the_others(tmp_path: Path) -> None:
    UnfinishedParts(tmp_path).update([A, B], [part(not_run=1), part(not_run=1)])
    UnfinishedParts(tmp_path).update([A], [part()])
    assert UnfinishedParts(tmp_path).sort([A, B]) == [B, A]


def test_two_runs_of_one_store_at_the_same_time_forget_nothing_of_each_other(tmp_path: Path) -> None:
    one, other = UnfinishedParts(tmp_path), UnfinishedParts(tmp_path)
    one.update([A], [part(not_run=1)])
    other.update([B], [part(not_run=1)])
    assert UnfinishedParts(tmp_path).sort([C, B, A]) == [B, A, C]


def test_nobody_else_changes_the_file_between_reading_and_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_open, sightings = UnfinishedParts(tmp_path), Sightings(tmp_path)

    def is_locked(place: str, text: str) -> None:
        other = os.open(tmp_path, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(other)
        written.append(place)

    written: list[str] = []
    monkeypatch.setattr("postcrash.harness.files.store_file.write_text", is_locked)
    left_open.update([A], [part(not_run=1)])
    sightings.add([part(failure())])
    assert written == [str(tmp_path / UNFINISHED_FILE), str(tmp_path / "gate-seen.json")]


def test_an_application_that_was_cut_short_is_open(tmp_path: Path) -> None:
    undecided = failure(verdict="undecided", message="covered 3 of 9 crash states", finding="")
    UnfinishedParts(tmp_path).update([A, B], [part(undecided, kind="hunt"), part(undecided, kind="application")])
    assert UnfinishedParts(tmp_path).sort([A, B]) == [B, A]
    assert undecided.message != NO_TIME


def test_a_part_that_had_first_looks_only_is_open(tmp_path: Path) -> None:
    first_look = failure(verdict="undecided", message=NO_TIME_FOR_MORE_LOOKS, finding="")
    UnfinishedParts(tmp_path).update([A, B], [part(), part(first_look)])
    assert UnfinishedParts(tmp_path).sort([A, B]) == [B, A]


def test_a_damaged_file_counts_as_empty(tmp_path: Path) -> None:
    (tmp_path / UNFINISHED_FILE).write_text("{")
    assert UnfinishedParts(tmp_path).sort([A, B]) == [A, B]
