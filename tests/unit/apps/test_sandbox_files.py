"""Folders that bubblewrap makes: the same as `tar` makes, and only those that cannot lead it out of the sandbox."""

import gzip
import tarfile

import pytest

from postcrash.apps import Folder, Sandbox
from postcrash.apps.sandbox_files import FILES_MAX, SandboxFiles

from .archives import DIR, FIFO, FILE, LINK, SYMLINK, Member, archive

LISTED = "find . -mindepth 1 -printf '%P %y %m %s %n %l\\n' | sort; cat f d/e/*"
PLAIN: list[Member] = [
    ("d", DIR, ""),
    ("d/e", DIR, ""),
    ("d/e/a name\nof two lines", FILE, "one\n"),
    ("d/link", SYMLINK, "../f"),
    ("f", FILE, "two\n"),
    ("\u00e9", FILE, ""),
]


def is_added(members: list[Member], *modes: int) -> bool:
    with SandboxFiles() as files:
        is_added = files.add_folder(archive(members, modes or (0o755,)), "/mnt")
        assert is_added or not (files.words or files.files)
        return is_added


@pytest.mark.slow
def test_tar_makes_the_same_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = archive(PLAIN)
    assert is_added(PLAIN)
    with Sandbox() as sandbox:
        made = sandbox.run(folder, LISTED, [])
        monkeypatch.setattr(SandboxFiles, "add_folder", lambda *_: False)
        unpacked = sandbox.run(folder, LISTED, [])
    assert made.status == 0
    assert made.output.count("\n") > len(PLAIN)
    assert made == unpacked


@pytest.mark.slow
def test_what_only_tar_makes_is_there_too() -> None:
    linked = archive([*PLAIN, ("g", LINK, "f"), ("p", FIFO, "")])
    many = archive([(str(number), FILE, "x") for number in range(FILES_MAX + 1)])
    with Sandbox() as sandbox:
        assert sandbox.run(linked, "[ f -ef g ] && [ -p p ] && cat g", []).output == "two\n"
        assert sandbox.run(many, "ls | wc -l", []).output == f"{FILES_MAX + 1}\n"


@pytest.mark.parametrize(
    "members",
    [
        [("out", SYMLINK, "/oldroot/etc"), ("out/passwd", FILE, "x")],
        [("out", SYMLINK, "/oldroot/etc/passwd"), ("out", FILE, "x")],
        [("out", SYMLINK, "/oldroot"), ("out", DIR, ""), ("out/x", FILE, "x")],
        [("d", DIR, ""), ("d/../../x", FILE, "x")],
        [("..", DIR, ""), ("../x", FILE, "x")],
        [("/x", FILE, "x")],
        [("/", DIR, ""), ("/x", FILE, "x")],
        [("d/x", FILE, "x"), ("d", SYMLINK, "/oldroot")],
        [("x", FILE, "x"), ("y", LINK, "x")],
        [("p", FIFO, "")],
    ],
)
def test_what_may_lead_out_is_left_to_tar(members: list[Member]) -> None:
    assert not is_added(members)


def test_as_many_files_as_there_may_be_descriptors() -> None:
    files: list[Member] = [(f"f{number}", FILE, "x") for number in range(FILES_MAX)]
    assert is_added(files)
    assert not is_added([*files, ("one more", FILE, "x")])
    assert not is_added([(f"d{number}", DIR, "") for number in range(5 * FILES_MAX)])
    long = "\u00e9" * 120
    assert is_added([(f"{number}{long}", DIR, "") for number in range(50)])
    assert not is_added([(f"{number}{long}", SYMLINK, long * 8) for number in range(100)])


@pytest.mark.parametrize("mode", [0o1777, 0o2755, 0o4755])
def test_modes_that_mkdir_does_not_set_are_left_to_tar(mode: int) -> None:
    for kind in (DIR, FILE):
        assert is_added([("x", kind, "")])
        assert not is_added([("x", kind, "")], mode)


def test_an_archive_that_unpacks_to_more_than_itself_is_left_to_tar() -> None:
    with SandboxFiles() as files:
        assert not files.add_folder(Folder(gzip.compress(archive(PLAIN).archive)), "/mnt")
        info = tarfile.TarInfo("f")
        info.size = 1 << 40
        assert not files.add_folder(Folder(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024)), "/mnt")
        assert not (files.words or files.files)


def test_links_come_last() -> None:
    with SandboxFiles() as files:
        assert files.add_folder(archive([("a", SYMLINK, "b"), ("b", DIR, ""), ("b/c", FILE, "x")]), "/mnt")
        assert [word for word in files.words if word in ("--symlink", "--dir", "--file")] == [
            "--dir",
            "--file",
            "--symlink",
        ]
