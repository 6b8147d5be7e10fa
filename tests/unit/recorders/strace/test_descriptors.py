"""Descriptors, mappings and directories are followed, so that later calls are of the right file."""

from pathlib import Path

import pytest

from postcrash.recorders.strace.descriptors import CLONES, CLOSING, HANDLERS, shared_by

from ..test_strace import OPEN, imported, not_mapped, operations


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("child_stack=NULL, flags=CLONE_VM|CLONE_FILES, tls=1", {"CLONE_VM", "CLONE_FILES"}),
        ("{flags=CLONE_FS, exit_signal=SIGCHLD} => {parent_tid=[2]}, 88", {"CLONE_FS"}),
        ("child_stack=NULL, flags=SIGCHLD, child_tidptr=0", {"SIGCHLD"}),
        ("", frozenset()),
    ],
)
def test_what_a_child_shares_with_its_parent(arguments: str, expected: set[str]) -> None:
    assert shared_by(arguments) == expected


def test_calls_that_close_have_a_meaning_and_those_that_clone_have_none_here() -> None:
    assert CLOSING - {"close"} <= set(HANDLERS)
    assert CLONES.isdisjoint(HANDLERS)


WRITE = 'write(5</r/g>, "x", 1) = 1'


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('open("/r/g", O_WRONLY|O_CREAT, 0644) = 5</r/g>', ["creat g", "write g 0 1"]),
        ('open("/r/f", O_WRONLY|O_CREAT, 0644) = 5</r/f>', ["write f 0 1"]),
        ('open("/r/f", O_WRONLY|O_TRUNC) = 5</r/f>', ["truncate f 0", "write f 0 1"]),
        ('open("/r/f", O_WRONLY|O_APPEND) = 5</r/f>', ["append f 1"]),
        ('creat("/r/g", 0644) = 5</r/g>', ["creat g", "write g 0 1"]),
        ('creat("/r/f", 0644) = 5</r/f>', ["truncate f 0", "write f 0 1"]),
        ('openat2(7</r>, "g", {flags=O_RDWR|O_CREAT, mode=0644}, 24) = 5</r/g>', ["creat g", "write g 0 1"]),
        ('openat2(AT_FDCWD</r>, "f", {flags=O_RDWR}, 24) = 5</r/f>', ["write f 0 1"]),
    ],
)  # fmt: skip
def test_an_opening_makes_or_cuts_the_file_as_its_flags_say(file: Path, line: str, expected: list[str]) -> None:
    assert operations(file, OPEN, line, WRITE.replace("/r/g", line[-5:-1].strip("<")))[1:] == expected


@pytest.mark.parametrize("flags", ["O_CREAT", "O_TRUNC", "O_APPEND"])
def test_a_link_is_followed_to_the_file(file: Path, flags: str) -> None:
    lines = ['symlink("f", "/r/s") = 0', f'open("/r/s", O_WRONLY|{flags}, 0644) = 5</r/f>', 'unlink("/r/s") = 0']
    last = operations(file, OPEN, *lines, 'write(5</r/f>, "x", 1) = 1')[-1]
    assert last == ("append f 1" if flags == "O_APPEND" else "write f 0 1")


@pytest.mark.parametrize("flags", ["O_RDONLY|O_PATH|O_NOFOLLOW", "O_PATH|O_NOFOLLOW|O_CLOEXEC"])
def test_a_link_that_is_not_followed_is_opened_itself(file: Path, flags: str) -> None:
    """With O_PATH a descriptor of the link can be had, which no call can write through."""
    lines = ['symlink("f", "/r/s") = 0', f'open("/r/s", {flags}) = 5</r/s>', "fsync(3</r/f>) = 0"]
    assert operations(file, OPEN, *lines) == ["creat f", "symlink f s", "fsync f"]
    (found,) = not_mapped(file, OPEN, *lines[:2], 'fsetxattr(5</r/s>, "user.x", "v", 1, 0) = 0')
    assert found.endswith("workloads have no attributes of symbolic links")


def test_a_file_that_was_cut_is_written_on_from_its_start(file: Path) -> None:
    lines = ['write(3</r/f>, "xyz", 3) = 3', 'open("/r/f", O_WRONLY|O_TRUNC|O_APPEND|O_SYNC) = 5</r/f>']
    more = ['write(5</r/f>, "x", 1) = 1', 'write(5</r/f>, "y", 1) = 1']
    assert operations(file, OPEN, *lines, *more)[2:] == ["truncate f 0", "write-osync f 0 1", "write-osync f 1 1"]


def test_reading_what_the_trace_does_not_know_is_nothing_and_writing_it_is_reported(file: Path) -> None:
    assert operations(file, OPEN, 'open("/r/x", O_RDONLY) = 5</r/x>') == ["creat f"]
    (found,) = not_mapped(file, OPEN, 'open("/r/x", O_WRONLY) = 5</r/x>')
    assert found.endswith("'x' is not there, as far as the trace tells")


@pytest.mark.parametrize(
    "line",
    [
        *("dup(3</r/f>) = 5</r/f>", "dup2(3</r/f>, 5) = 5</r/f>", "dup3(3</r/f>, 5, 0) = 5</r/f>"),
        *("fcntl(3</r/f>, F_DUPFD, 5) = 5</r/f>", "fcntl(3</r/f>, F_DUPFD_CLOEXEC, 5) = 5</r/f>"),
    ],
)
def test_a_duplicate_shares_position_and_flags(file: Path, line: str) -> None:
    lines = [line, 'write(3</r/f>, "xy", 2) = 2', 'write(5</r/f>, "x", 1) = 1']
    assert operations(file, OPEN, *lines)[1:] == ["write f 0 2", "write f 2 1"]
    flagged = "fcntl(3</r/f>, F_SETFL, O_RDWR|O_APPEND) = 0"
    assert operations(file, OPEN, line, flagged, lines[2])[1:] == ["append f 1"]


def test_a_duplicate_of_another_file_replaces_what_was_there(file: Path) -> None:
    lines = ["dup2(0</dev/null>, 3) = 3</dev/null>", 'write(3</dev/null>, "x", 1) = 1']
    assert operations(file, OPEN, *lines) == ["creat f"]


def test_fcntl_takes_flags_away_and_leaves_those_that_it_cannot_set(file: Path) -> None:
    opened = 'open("/r/g", O_WRONLY|O_CREAT|O_APPEND|O_SYNC, 0644) = 5</r/g>'
    lines = [opened, "fcntl(5</r/g>, F_SETFL, O_WRONLY) = 0", WRITE]
    assert operations(file, *lines) == ["creat g", "write-osync g 0 1"]
    lines[0] = opened.replace("|O_SYNC", "")
    assert operations(file, *lines) == ["creat g", "write g 0 1"]


EXEC = 'execve("/bin/x", ["x"], 0x7ff /* 3 vars */) = 0'


@pytest.mark.parametrize(
    ("lines", "is_closed"),
    [
        ([EXEC], False),
        (["fcntl(3</r/f>, F_SETFD, FD_CLOEXEC) = 0", EXEC], True),
        (["fcntl(3</r/f>, F_SETFD, FD_CLOEXEC) = 0", "fcntl(3</r/f>, F_SETFD, 0) = 0", EXEC], False),
        (["close_range(3, 3, CLOSE_RANGE_CLOEXEC) = 0"], False),
        (["close_range(3, 3, CLOSE_RANGE_CLOEXEC) = 0", EXEC], True),
        (["close_range(3, 3, 0) = 0"], True),
        (["close_range(0, 2, 0) = 0", "close_range(4, 4294967295, 0) = 0"], False),
        (["close_range(0, 4294967295, 0) = 0"], True),
    ],
)
def test_what_closes_a_descriptor(file: Path, lines: list[str], is_closed: bool) -> None:
    write = 'write(3</r/f>, "x", 1) = 1'
    assert len(not_mapped(file, OPEN, *lines, write)) == is_closed


@pytest.mark.parametrize(("flags", "is_closed"), [("0", True), ("CLOSE_RANGE_UNSHARE", False)])
def test_a_thread_that_no_longer_shares_descriptors_closes_its_own(file: Path, flags: str, is_closed: bool) -> None:
    clone = "1 clone(child_stack=NULL, flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 2"
    lines = [clone, f"2 close_range(3, 3, {flags}) = 0", '1 write(3</r/f>, "x", 1) = 1']
    assert len(not_mapped(file, OPEN, *lines)) == is_closed


def test_relative_paths_begin_in_the_directory_that_was_changed_to(file: Path) -> None:
    """With no descriptor of the directory printed, what chdir said is all that is known."""
    lines = ['mkdir("/r/D", 0777) = 0', 'chdir("/r/D") = 0', 'mkdir("E", 0777) = 0', 'chdir("E") = 0']
    more = ['mkdir("F", 0777) = 0', 'chdir("..") = 0', 'mkdir("G", 0777) = 0', "fchdir(7</r>) = 0"]
    assert operations(file, *lines, *more, 'mkdir("H", 0777) = 0') == [
        *("mkdir D", "mkdir D/E", "mkdir D/E/F", "mkdir D/G", "mkdir H"),
    ]


def test_a_directory_that_is_not_known_is_not_guessed(file: Path) -> None:
    (found,) = not_mapped(file, OPEN, "fchdir(7) = 0", 'mkdir("E", 0777) = 0')
    assert "relative to a directory that is not known" in found


MAPPED = "mmap(NULL, 8192, PROT_READ, MAP_SHARED, 3</r/f>, 0) = 0x10000"
FILLED = 'pwrite64(3</r/f>, "x"..., 8192, 0) = 8192'
PART = "line 4: msync: msync of a part of a file; workloads sync a whole one"
STORES = "mmap: stores through a shared mapping, which strace does not see"


@pytest.mark.parametrize(
    ("mapped", "synced", "is_whole"),
    [
        (MAPPED, "msync(0x10000, 8192, MS_SYNC) = 0", True),
        (MAPPED, "msync(0x10000, 12288, MS_SYNC) = 0", True),
        (MAPPED, "msync(0xf000, 12288, MS_SYNC) = 0", True),
        (MAPPED, "msync(0x10000, 8191, MS_SYNC) = 0", False),
        (MAPPED, "msync(0x11000, 8192, MS_SYNC) = 0", False),
        (MAPPED.replace(", 0)", ", 4096)"), "msync(0x10000, 8192, MS_SYNC) = 0", False),
    ],
)
def test_msync_is_mapped_if_it_is_of_the_whole_file(file: Path, mapped: str, synced: str, is_whole: bool) -> None:
    result = imported(file, OPEN, FILLED, mapped, synced)
    assert [str(operation) for operation in result.workload.ops][2:] == ["msync f"] * is_whole
    assert [str(item) for item in result.not_mapped] == [PART] * (not is_whole)


@pytest.mark.parametrize(
    "lines",
    [
        [MAPPED, "msync(0x10000, 8192, MS_ASYNC) = 0"],
        [MAPPED, "msync(0x12000, 8192, MS_SYNC) = 0"],
        [MAPPED, "msync(0xf000, 4096, MS_SYNC) = 0"],
        [MAPPED, "munmap(0x10000, 8192) = 0", "msync(0x10000, 8192, MS_SYNC) = 0"],
        [MAPPED, EXEC, "msync(0x10000, 8192, MS_SYNC) = 0"],
        [MAPPED, "mremap(0x10000, 8192, 8192, MREMAP_MAYMOVE) = 0x90000", "msync(0x10000, 8192, MS_SYNC) = 0"],
        [MAPPED.replace("MAP_SHARED", "MAP_PRIVATE"), "msync(0x10000, 8192, MS_SYNC) = 0"],
        ["mmap(NULL, 8192, PROT_READ, MAP_SHARED|MAP_ANONYMOUS, -1, 0) = 0x10000", "msync(0x10000, 8192, MS_SYNC) = 0"],
    ],
    ids=["asynchronous", "behind it", "before it", "unmapped", "exec", "moved away", "private", "anonymous"],
)
def test_msync_of_nothing_of_the_folder_is_nothing(file: Path, lines: list[str]) -> None:
    assert operations(file, OPEN, FILLED, *lines)[2:] == []


@pytest.mark.parametrize(
    "line", ["munmap(0x10000, 4096) = 0", "munmap(0x11000, 8192) = 0", "mremap(0x10000, 8192, 8192, 0) = 0x10000"]
)
def test_a_mapping_of_which_something_is_left_is_known(file: Path, line: str) -> None:
    assert operations(file, OPEN, FILLED, MAPPED, line, "msync(0x10000, 8192, MS_SYNC) = 0")[2:] == ["msync f"]


def test_a_mapping_that_moved_is_known_at_its_new_place(file: Path) -> None:
    lines = [MAPPED, "mremap(0x10000, 8192, 16384, MREMAP_MAYMOVE) = 0x90000", "msync(0x90000, 8192, MS_SYNC) = 0"]
    assert operations(file, OPEN, FILLED, *lines)[2:] == ["msync f"]


@pytest.mark.parametrize(
    ("line", "is_told"),
    [
        ("mprotect(0x10000, 4096, PROT_READ|PROT_WRITE) = 0", True),
        ("mprotect(0x11000, 4096, PROT_WRITE) = 0", True),
        ("mprotect(0x10000, 8192, PROT_READ) = 0", False),
        ("mprotect(0x12000, 4096, PROT_WRITE) = 0", False),
        ("mprotect(0xf000, 4096, PROT_WRITE) = 0", False),
    ],
)
def test_that_a_mapping_can_be_stored_to_is_told(file: Path, line: str, is_told: bool) -> None:
    found = not_mapped(file, OPEN, FILLED, MAPPED, line)
    assert found == [f"line 4: {STORES.replace('mmap', 'mprotect')}"] * is_told
    assert not_mapped(file, OPEN, MAPPED.replace("PROT_READ", "PROT_READ|PROT_WRITE")) == [f"line 2: {STORES}"]
