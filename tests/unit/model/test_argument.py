"""For each kind of argument, what is accepted and what is refused."""

import pytest

from postcrash.model.argument import ArgumentError, read_argument
from postcrash.model.operation import Kind

LONG = "x" * 256


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_is_read_or_refused(kind: Kind) -> None:
    with pytest.raises(ArgumentError):
        read_argument(kind, "x" * 4001)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Kind.PATH, "a", "a"),
        (Kind.PATH, "a b/..c/.d", "a b/..c/.d"),
        (Kind.PATH, "é" * 127, "é" * 127),
        (Kind.PATH, "d/.postcrash", "d/.postcrash"),
        (Kind.PATH, "d/lost+found", "d/lost+found"),
        (Kind.PATH, "x/" * 63 + "x", "x/" * 63 + "x"),
        (Kind.FILE, "d/a", "d/a"),
        (Kind.FILE, "@d/a", "@d/a"),
        (Kind.FILE_OR_ROOT, ".", "."),
        (Kind.FILE_OR_ROOT, "d", "d"),
        (Kind.FILE_OR_ROOT, "@d", "@d"),
        (Kind.HANDLE, "@d", "@d"),
        (Kind.TARGET, "/etc/../x//", "/etc/../x//"),
        (Kind.OFFSET, "0", 0),
        (Kind.OFFSET, "1024M", 1 << 30),
        (Kind.SECTOR_OFFSET, "1K", 1024),
        (Kind.LENGTH, "1", 1),
        (Kind.LENGTH, "64M", 64 << 20),
        (Kind.SECTOR_LENGTH, "512", 512),
        (Kind.SIZE, "4K", 4096),
        (Kind.SECONDS, "1", 1),
        (Kind.SECONDS, "3600", 3600),
        (Kind.MODE, "punch-hole", "punch-hole"),
        (Kind.XATTR_NAME, "user.a", "user.a"),
        (Kind.XATTR_VALUE, "", ""),
        (Kind.FLUSHES, "3", "3"),
        (Kind.FLUSHES, "3,15", "3,15"),
        (Kind.COMMAND, "echo a >f; sync", "echo a >f; sync"),
        (Kind.LINE, "", ""),
    ],
)
def test_taken(kind: Kind, text: str, value: str | int) -> None:
    assert read_argument(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *((Kind.PATH, text) for text in ("", ".", "..", "/a", "a/", "a//b", "a/../b", "./a", ".postcrash", LONG)),
        (Kind.PATH, "é" * 128),
        (Kind.PATH, "/".join(["x" * 200] * 6)),
        (Kind.PATH, ".postcrash/a"),
        *(
            (Kind.PATH, text)
            for text in (".nilfs", ".aged/a", "lost+found", "lost+found/a", ".postcrash-new", "d/.postcrash-new/a")
        ),
        (Kind.PATH, "/".join(["x"] * 65)),
        *((Kind.PATH, text) for text in ("@", "@a", "@a/b")),
        *((Kind.FILE, text) for text in ("@", "@.", "@/a", "@@a", "@.postcrash", ".")),
        (Kind.HANDLE, "a"),
        (Kind.FILE_OR_ROOT, "@."),
        (Kind.FILE_OR_ROOT, "./."),
        (Kind.TARGET, ""),
        *((Kind.OFFSET, text) for text in ("", "-1", "+1", "1025M", "1k", "1G", "0x10", "1.5", "٤", "9" * 5000)),
        (Kind.OFFSET, str((1 << 30) + 1)),
        (Kind.LENGTH, "0"),
        (Kind.LENGTH, "65M"),
        (Kind.SECTOR_OFFSET, "100"),
        (Kind.SECTOR_LENGTH, "0"),
        (Kind.SECTOR_LENGTH, "513"),
        *((Kind.SECONDS, text) for text in ("", "0", "3601", "1.5", "-1", "4K", "٤")),
        *((Kind.FLUSHES, text) for text in ("", "0", ",", "3,", "3, 5", "1234567", "٤", ",".join(["1"] * 101))),
        (Kind.MODE, "punch"),
        (Kind.XATTR_NAME, "user."),
        (Kind.XATTR_NAME, "trusted.a"),
        (Kind.XATTR_NAME, "user." + LONG),
    ],
)
def test_refused(kind: Kind, text: str) -> None:
    with pytest.raises(ArgumentError):
        read_argument(kind, text)
