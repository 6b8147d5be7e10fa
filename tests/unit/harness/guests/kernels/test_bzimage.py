"""A kernel is unpacked on the host if it can be started so, and left to the guest otherwise."""

import bz2
import gzip
import lzma
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.guests.kernels import bzimage as module
from postcrash.harness.guests.kernels.bzimage import unpacked
from postcrash.harness.guests.kernels.copies import UNUSED_SECONDS_MAX

SETUP_SECTORS, OFFSET = 3, 100


def note(name: bytes, kind: int, content: bytes) -> bytes:
    padded = (part + bytes(-len(part) % 4) for part in (name, content))
    return struct.pack("<III", len(name), len(content), kind) + b"".join(padded)


PVH = note(b"Linux\0", 7, b"odd") + note(b"Xen\0", 18, bytes(4))
XEN_ONLY = note(b"Xen\0", 6, b"linux\0")


def elf(notes: bytes) -> bytes:
    """An ELF file with two program headers, of which the second one is for notes."""
    head = b"\x7fELF\x02" + bytes(27) + struct.pack("<Q", 64) + bytes(14) + struct.pack("<HH", 56, 2) + bytes(6)
    loaded = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 0, 0, 0)
    noted = struct.pack("<IIQQQQQQ", 4, 4, 64 + 2 * 56, 0, 0, len(notes), len(notes), 4)
    return head + loaded + noted + notes


def image(payload: bytes, *, protocol: int = 0x20F, length: int | None = None) -> bytes:
    header = bytearray((1 + SETUP_SECTORS) * 512 + OFFSET)
    header[0x1F1] = SETUP_SECTORS
    header[0x202:0x208] = b"HdrS" + struct.pack("<H", protocol)
    header[0x248:0x250] = struct.pack("<II", OFFSET, len(payload) if length is None else length)
    return bytes(header) + payload


def asked(folder: Path, content: bytes) -> tuple[Path, Path]:
    """The image, and what QEMU boots."""
    file = folder / "bzImage"
    file.write_bytes(content)
    return file, unpacked(file, folder / "cache")


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_what_the_image_holds_is_booted(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    kernel = elf(PVH) + bytes(9000)
    file, booted = asked(tmp_path, image(pack(kernel) + b"size"))
    assert booted.parent == tmp_path / "cache/unpacked"
    assert booted.read_bytes() == kernel
    booted.write_bytes(b"kept")
    assert unpacked(file, tmp_path / "cache").read_bytes() == b"kept"
    assert [path.name for path in booted.parent.iterdir()] == [booted.name]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        image(gzip.compress(elf(XEN_ONLY))),
        image(gzip.compress(elf(b""))),
        image(gzip.compress(b"no ELF file")),
        image(gzip.compress(elf(PVH)[:150])),
        image(gzip.compress(elf(PVH)), protocol=0x207),
        image(gzip.compress(elf(PVH))[:-20]),
        image(gzip.compress(elf(PVH)), length=30),
        image(gzip.compress(elf(PVH)), length=2**32 - 1)[:700],
        image(b"\x28\xb5\x2f\xfd of zstd"),
        image(b"\xfd7zXZ\0 and no more"),
        image(elf(PVH)),
    ],
)
def test_what_cannot_be_started_so_is_left_to_the_guest(tmp_path: Path, content: bytes) -> None:
    file, booted = asked(tmp_path, content)
    assert booted == file
    assert not (tmp_path / "cache").exists()


def test_a_kernel_that_is_too_large_is_left_to_the_guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KERNEL_BYTES_MAX", 1000)
    file, booted = asked(tmp_path, image(gzip.compress(elf(PVH) + bytes(1000))))
    assert booted == file


def test_what_was_not_used_for_long_is_removed(tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.write_bytes(image(gzip.compress(elf(PVH))))
    old, used = unpacked(first, tmp_path), asked(tmp_path, image(gzip.compress(elf(PVH) + b"2")))[1]
    long_ago = time.time() - UNUSED_SECONDS_MAX - 60
    for path in (old, used):
        os.utime(path, (long_ago, long_ago))
    assert unpacked(tmp_path / "bzImage", tmp_path / "cache") == used
    folder = used.parent
    old.rename(folder / "old")
    new = asked(tmp_path, image(gzip.compress(elf(PVH) + b"3")))[1]
    assert set(folder.iterdir()) == {used, new}


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(b"")
    with pytest.raises(InfrastructureError, match=r"bzImage cannot be unpacked into .*/cache/unpacked: "):
        asked(tmp_path, image(gzip.compress(elf(PVH))))
