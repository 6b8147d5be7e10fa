"""Recovered trees as folders: every byte, every choice, and nothing that could not be read."""

import io
import tarfile
from dataclasses import replace

import pytest

from postcrash.apps import Folder, UnreadFolderError
from postcrash.model import Entry, Segment, Tree, UndecidedBytes, every_answer

ROOT = Entry(".", "dir", 0o755)


def file(path: str, content: bytes, inode: int = 2) -> Entry:
    segments = (Segment(0, len(content), f"bytes:{content.hex()}"),) if content else ()
    return Entry(path, "file", 0o640, inode=inode, size=len(content), segments=segments)


def members(folder: Folder) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(folder.archive)) as archive:
        return {member.name: member for member in archive}


def content(folder: Folder, name: str) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(folder.archive)) as archive:
        found = archive.extractfile(name)
        assert found is not None
        return found.read()


def test_files_folders_links_and_names() -> None:
    tree = Tree(
        [
            ROOT,
            Entry("d", "dir", 0o700, inode=3),
            file("d/f", b"one\0two"),
            file("g", b"one\0two"),
            Entry("l", "symlink", 0o777, inode=4, target="d/f"),
            Entry("s", "socket", 0o777, inode=5),
            file("empty", b"", inode=6),
        ]
    )
    found = members(Folder.of(tree))
    assert sorted(found) == ["d", "d/f", "empty", "g", "l"]
    assert content(Folder.of(tree), "d/f") == b"one\0two"
    assert found["g"].linkname == "d/f"
    assert (found["l"].issym(), found["l"].linkname, found["d"].mode, found["d/f"].mode) == (True, "d/f", 0o700, 0o640)


def test_equal_folders_have_one_digest() -> None:
    first, second = ([ROOT, file("a", b"1", 2), file("b", b"2", 3)], [ROOT, file("b", b"2", 8), file("a", b"1", 9)])
    assert Folder.of(Tree(first)).digest == Folder.of(Tree(second)).digest
    for other in ([ROOT, file("a", b"2", 2), file("b", b"2", 3)], [ROOT, file("a", b"1", 2)]):
        assert Folder.of(Tree(other)).digest != Folder.of(Tree(first)).digest


def test_every_content_that_is_not_settled_is_a_folder() -> None:
    versions = tuple((Segment(2, 4, f"bytes:{text.hex()}"),) for text in (b"cd", b"CD"))
    choices = (UndecidedBytes(2, 4, 7, versions),)
    settled = (Segment(0, 2, f"bytes:{b'ab'.hex()}"), Segment(4, 5, f"bytes:{b'e'.hex()}"))
    tree = Tree([ROOT, Entry("f", "file", 0o644, inode=2, size=5, segments=settled, choices=choices)])
    answers = list(every_answer(lambda: Folder.of(tree)))
    assert [(content(folder, "f"), chosen) for folder, chosen in answers] == [(b"abcde", {7: 0}), (b"abCDe", {7: 1})]


@pytest.mark.parametrize(
    "entry",
    [
        Entry("f", "file", error=5),
        file("f\ufffd80", b"1"),
        Entry("f", "symlink", 0o777, inode=4, target="\ufffd80"),
        replace(file("f", b"1"), xattrs=(("user.a", "00"),)),
        Entry("f", "file", 0o644, inode=2, size=4, segments=(Segment(0, 4, "error:5"),)),
        Entry("f", "file", 0o644, inode=2, size=4, segments=(Segment(0, 4, "zero"),)),
    ],
    ids=["name", "no-text", "no-text-behind-a-link", "attributes", "bytes", "not-told-byte-by-byte"],
)
def test_what_could_not_be_read_is_no_folder(entry: Entry) -> None:
    with pytest.raises(UnreadFolderError, match="f"):
        Folder.of(Tree([ROOT, entry]))
