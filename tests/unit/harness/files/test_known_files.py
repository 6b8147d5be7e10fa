"""What is known of files is kept between commands, and never outlives a change of a file."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from postcrash.harness.files.known_files import ANSWERS_MAX, KnownFiles


class Reader:
    """Reads a file, and counts how often."""

    def __init__(self, file: Path) -> None:
        self.file, self.count = file, 0

    def __call__(self) -> str:
        self.count += 1
        return self.file.read_text()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "file"
    found.write_text("old")
    return found


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "known-files.json"


def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the files that are there be old."""
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now + 10_000_000_000)


def test_a_file_that_is_known_is_not_read_again(file: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later(monkeypatch)
    read = Reader(file)
    for _ in range(2):
        known = KnownFiles(place)
        assert [known.ask("text", (file,), read) for _ in range(2)] == ["old", "old"]
        known.save()
    assert read.count == 1
    assert KnownFiles(place).ask("another question", (file,), read) == "old"
    assert read.count == 2


def write_unnoticed(file: Path) -> None:
    """The length and the time of the last change of the content stay as they are."""
    before = file.stat()
    file.write_text("OLD")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.write_text("new!"),
        lambda file: os.utime(file, ns=(1, 1)),
        write_unnoticed,
        lambda file: (file.with_name("other").write_text("new"), file.with_name("other").rename(file)),
    ],
    ids=["written", "touched", "written with its old time", "replaced"],
)
def test_a_file_that_has_changed_is_read_again(
    change: Callable[[Path], object], file: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later(monkeypatch)
    read = Reader(file)
    known = KnownFiles(place)
    known.ask("text", (file,), read)
    known.save()
    change(file)
    assert KnownFiles(place).ask("text", (file,), read) == file.read_text()
    assert known.ask("text", (file,), read) == file.read_text()
    assert read.count == 3


def test_an_answer_is_about_all_its_files(file: Path, place: Path) -> None:
    second = file.with_name("second")
    second.write_text("1")
    known, read = KnownFiles(place), Reader(second)
    assert known.ask("text", (file, second), read) == "1"
    second.write_text("22")
    assert known.ask("text", (file, second), read) == "22"


def test_what_changed_just_now_is_not_kept(file: Path, place: Path) -> None:
    known = KnownFiles(place)
    known.ask("text", (file,), Reader(file))
    known.save()
    assert not place.exists()


def test_two_processes_keep_what_both_found(file: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = file.with_name("gone")
    gone.write_text("gone")
    later(monkeypatch)
    one, other = KnownFiles(place), KnownFiles(place)
    one.ask("text", (file,), Reader(file))
    other.ask("length", (file,), lambda: "3")
    other.ask("text", (gone,), Reader(gone))
    gone.unlink()
    one.save()
    other.save()
    assert [key.split("\0")[0] for key in json.loads(place.read_text())] == ["text", "length"]
    assert [path.name for path in place.parent.iterdir()] == [place.name]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", '{"a": 1}', '{"a": [1]}', '{"text": [[], 5]}', "[" * 100_000, "\udcff"]
)
def test_a_damaged_file_is_ignored(text: str, file: Path, place: Path) -> None:
    place.parent.mkdir()
    place.write_text(text, errors="surrogateescape")
    assert KnownFiles(place).ask("text", (file,), Reader(file)) == "old"


def test_a_full_disk_is_no_error(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later(monkeypatch)
    known = KnownFiles(file / "below a file")
    known.ask("text", (file,), Reader(file))
    known.save()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path, place: Path) -> None:
    with pytest.raises(FileNotFoundError):
        KnownFiles(place).ask("text", (tmp_path / "none",), lambda: "")


def test_the_oldest_answers_are_forgotten(file: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later(monkeypatch)
    known = KnownFiles(place)
    for number in range(ANSWERS_MAX + 2):
        known.ask(str(number), (file,), lambda: "")
    known.save()
    kept = [key.split("\0")[0] for key in json.loads(place.read_text())]
    assert kept == [str(number) for number in range(2, ANSWERS_MAX + 2)]
