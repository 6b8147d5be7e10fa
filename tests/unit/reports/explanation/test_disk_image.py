"""The disk of a recording is copied for programs that read file systems, as it was at a crash and at the end."""

import os
from pathlib import Path
from typing import Any

import pytest

from postcrash._core import Recording, write_recording
from postcrash.model import stale
from postcrash.reports.explanation import disk_image
from postcrash.reports.explanation.disk_image import DiskImage, ImageTooLargeError


def test_the_image_is_first_that_of_the_crash_and_then_that_of_the_end(tmp_path: Path) -> None:
    base, path = tmp_path / "base.img", tmp_path / "made.pcr"
    base.write_bytes(b"a" * 4096 + stale(1, 4096) + b"c" * 8192)
    events: list[tuple[Any, ...]] = [
        *(("write", 0, 8, b"x" * 512, False, False), ("complete", 0), ("durable",)),
        *(("write", 1, 0, b"y" * 1024, False, False), ("zero", 2, 16, 8, True)),
        ("write", 3, 1, b"z" * 512, False, False),
    ]
    write_recording(path, 32, "{}", events)
    crash = b"y" * 1024 + b"a" * 3072 + b"x" * 512 + bytes(3584) + bytes(4096) + b"c" * 4096
    with DiskImage(Recording(path), base, 5) as disk:
        assert disk.read(0, 1 << 20) == Path(disk.path).read_bytes() == crash
        disk.finish()
        assert disk.read(0, 1024) == b"y" * 512 + b"z" * 512
        assert disk.read(1024, 1 << 20) == crash[1024:]
    assert not Path(disk.path).exists()


def recorded(folder: Path, *events: tuple[Any, ...], sectors: int = 32) -> Recording:
    write_recording(folder / "made.pcr", sectors, "{}", events)
    return Recording(folder / "made.pcr")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_the_base_image_stays_as_it_is(tmp_path: Path) -> None:
    base = tmp_path / "base.img"
    base.write_bytes(b"a" * 16384)
    with DiskImage(recorded(tmp_path, ("write", 0, 0, b"x" * 512, False, False)), base, 1) as disk:
        assert disk.read(0, 600) == b"x" * 512 + b"a" * 88
    assert base.read_bytes() == b"a" * 16384


def test_only_what_was_submitted_before_the_crash_is_there(tmp_path: Path) -> None:
    base = tmp_path / "base.img"
    base.write_bytes(bytes(16384))
    recording = recorded(tmp_path, *(("write", n, n, bytes([n + 1]) * 512, False, False) for n in range(4)))
    for until in range(5):
        with DiskImage(recording, base, until) as disk:
            assert disk.read(0, 2048)[::512] == bytes([1, 2, 3, 4][:until]).ljust(4, b"\0")


def test_holes_and_free_space_stay_empty(tmp_path: Path) -> None:
    """Also at the end of the disk, and where a part of the last block is missing."""
    base = tmp_path / "base.img"
    with base.open("wb") as file:
        file.write(b"a" * 4096)
        file.seek(1 << 20)
        file.write(b"b" * 4096 + stale(7, 4096) + b"c" * 512)
        os.truncate(file.fileno(), 2 << 20)
    with DiskImage(recorded(tmp_path), base, 0) as disk:
        made = disk.read(0, 4 << 20)
        blocks = os.stat(disk.path).st_blocks
    assert made == (b"a" * 4096).ljust(1 << 20, b"\0") + (b"b" * 4096 + bytes(4096) + b"c" * 512).ljust(1 << 20, b"\0")
    assert blocks * 512 < 100_000


def test_zeros_can_be_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_image, "_CHUNK_BYTES", 1024)
    base = tmp_path / "base.img"
    base.write_bytes(b"a" * 16384)
    with DiskImage(recorded(tmp_path, ("zero", 0, 1, 7, False)), base, 1) as disk:
        assert disk.read(0, 1 << 20) == b"a" * 512 + bytes(3584) + b"a" * 12288


def test_nothing_is_left_over(tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base, recording = tmp_path / "base.img", recorded(tmp_path)
    with pytest.raises(FileNotFoundError):
        DiskImage(recording, base, 0)
    base.write_bytes(b"a" * 16384)
    with pytest.raises(ZeroDivisionError), DiskImage(recording, base, 0):
        raise ZeroDivisionError
    monkeypatch.setattr(disk_image, "IMAGE_BYTES_MAX", 16383)
    with pytest.raises(ImageTooLargeError, match=r"^the disk has 16384 bytes; at most 16383 are looked at$"):
        DiskImage(recording, base, 0)
    assert list(temporary.iterdir()) == []
    monkeypatch.setattr(disk_image, "IMAGE_BYTES_MAX", 16384)
    with DiskImage(recording, base, 0) as disk:
        assert Path(disk.path).parent.parent == temporary
        assert disk.read(16383, 9) == b"a"
