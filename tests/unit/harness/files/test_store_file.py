"""What commands keep from one run to the next comes back, is never lost to another process, and may be damaged."""

import fcntl
import os
import re
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import pytest
from pydantic import TypeAdapter

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.files.store_file import KeptFile


class Place(NamedTuple):
    """Something with fields of its own, such as commands keep."""

    name: str
    number: int


Kept = dict[str, set[Place]]
SCHEMA = TypeAdapter(Kept)
SEEN: Kept = {"ä\n": {Place("a", 1), Place("b", 2**70)}}


def kept(folder: Path) -> KeptFile[Kept]:
    return KeptFile(folder / "kept.json", SCHEMA, dict)


def test_nothing_is_kept_at_first(tmp_path: Path) -> None:
    assert kept(tmp_path).read() == {}
    assert list(tmp_path.iterdir()) == []


def test_what_is_kept_comes_back_in_the_next_run(tmp_path: Path) -> None:
    assert kept(tmp_path).change(lambda _: SEEN) == SEEN
    assert kept(tmp_path).read() == SEEN
    assert [path.name for path in tmp_path.iterdir()] == ["kept.json"]


def test_a_change_begins_with_what_another_run_has_kept_meanwhile(tmp_path: Path) -> None:
    one, other = kept(tmp_path), kept(tmp_path)
    assert one.read() == other.read() == {}
    other.change(lambda _: SEEN)
    assert one.change(lambda now: {**now, "c": set()}) == {**SEEN, "c": set()} == other.read()


def test_what_is_empty_is_new_each_time(tmp_path: Path) -> None:
    """A caller may change it in place."""
    file = kept(tmp_path)
    file.read()["a"] = set()
    assert file.read() == {}


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"a": 3}', b'{"a": [["b"]]}', b'{"a": [["b", "c"]]}', b'{"\xff": []}', b"[" * 10**5],
)
def test_a_damaged_file_counts_as_empty_and_is_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "kept.json").write_bytes(content)
    assert kept(tmp_path).read() == {}
    kept(tmp_path).change(lambda now: {**now, **SEEN})
    assert kept(tmp_path).read() == SEEN


def test_changes_at_the_same_time_come_one_after_the_other(tmp_path: Path) -> None:
    def add(name: str) -> None:
        kept(tmp_path).change(lambda now: {**now, name: {Place(name, len(now))}})

    threads = [Thread(target=add, args=(f"{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(place.number for places in kept(tmp_path).read().values() for place in places) == list(range(8))


def test_the_store_is_not_locked_any_more_when_a_change_has_failed(tmp_path: Path) -> None:
    kept(tmp_path).change(lambda _: SEEN)
    with pytest.raises(ZeroDivisionError):
        kept(tmp_path).change(lambda now: {"a": {Place("a", 1 // 0)}})
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(handle)
    assert kept(tmp_path).read() == SEEN


def test_a_store_that_is_not_there_is_named(tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    assert kept(absent).read() == {}
    with pytest.raises(InfrastructureError, match=f"^cannot lock {re.escape(str(absent))}: No such file or directory$"):
        kept(absent).change(lambda _: SEEN)
    assert not absent.exists()


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    file.mkdir()
    assert kept(tmp_path).read() == {}
    with pytest.raises(InfrastructureError, match=f"^cannot write {re.escape(str(file))}: Is a directory$"):
        kept(tmp_path).change(lambda _: SEEN)
