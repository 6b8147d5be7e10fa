"""How the lines of a trace are read, whether right or wrong."""

import random
import re
from pathlib import Path

import pytest

from postcrash.model import simulate
from postcrash.recorders.strace import ImportedTrace, StraceError, import_strace, prepare

ROOT = "/r"
OPEN = 'openat(AT_FDCWD</r>, "f", O_RDWR|O_CREAT, 0644) = 3</r/f>'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "trace"


def imported(file: Path, *lines: str) -> ImportedTrace:
    """Import these lines. Lines without a thread belong to thread 1."""
    text = "".join(f"{line if line[0].isdigit() else f'1 {line}'}\n" for line in lines)
    file.write_text(text, encoding="latin-1")
    result = import_strace(file, prepare(Path(ROOT)), "w")
    simulate(result.workload)
    return result


def operations(file: Path, *lines: str) -> list[str]:
    """The operations of a trace in which everything is mapped."""
    result = imported(file, *lines)
    assert result.not_mapped == ()
    return [str(op) for op in result.workload.ops]


def not_mapped(file: Path, *lines: str) -> list[str]:
    return [str(item) for item in imported(file, *lines).not_mapped]


def test_positions_follow_the_descriptor_and_its_duplicates(file: Path) -> None:
    lines = ['write(3</r/f>, "ab", 2) = 2', "dup(3</r/f>) = 4</r/f>", 'read(4</r/f>, "", 9) = 5']
    more = [
        "fcntl(4</r/f>, F_DUPFD_CLOEXEC, 0) = 9</r/f>",
        'write(9</r/f>, "c"..., 70) = 20',
        "lseek(3</r/f>, 0, SEEK_SET) = 0",
    ]
    last = ['writev(4</r/f>, [{iov_base="d", iov_len=1}, {iov_base="e", iov_len=1}], 2) = 2']
    assert operations(file, OPEN, *lines, *more, *last) == ["creat f", "write f 0 2", "write f 7 20", "write f 0 2"]


def test_payloads_are_kept_where_strace_printed_them(file: Path) -> None:
    lines = [
        r'write(3</r/f>, "\x61\x00", 2) = 2',
        r'pwrite64(3</r/f>, "a\n\0\"\1772", 6, 9) = 6',
        'write(3</r/f>, "a"..., 70) = 70',
    ]
    payloads = [source.payload for source in imported(file, OPEN, *lines).sources]
    assert payloads == [None, b"a\0", b'a\n\0"\x7f2', None]


def test_a_number_is_free_from_when_close_is_entered(file: Path) -> None:
    lines = ["1 close(3</r/f> <unfinished ...>", '2 openat(AT_FDCWD</r>, "g", O_WRONLY|O_CREAT, 0) = 3</r/g>']
    more = ["1 <... close resumed>)            = 0", '2 write(3</r/g>, "x", 1) = 1']
    clone = "clone(child_stack=NULL, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD) = 2"
    assert operations(file, OPEN, clone, *lines, *more) == ["creat f", "creat g", "write g 0 1"]


def test_a_call_keeps_the_descriptor_that_it_was_entered_with(file: Path) -> None:
    clone = "clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD, exit_signal=0} => {parent_tid=[2]}, 88) = 2"
    lines = ['1 write(3</r/f>, "x", 1 <unfinished ...>', "2 close(3</r/f>) = 0", "1 <... write resumed>) = 1"]
    result = imported(file, OPEN, clone, *lines)
    assert [str(op) for op in result.workload.ops] == ["creat f", "write f 0 1"]
    assert result.overlaps == 1


@pytest.mark.parametrize("shared", [True, False])
def test_a_child_that_runs_before_clone_returns(file: Path, shared: bool) -> None:
    flags = "CLONE_FILES|CLONE_VM" if shared else "SIGCHLD"
    lines = [f"1 clone(child_stack=NULL, flags={flags}, tls=1 <unfinished ...>", "2 close(3</r/f>) = 0"]
    more = ["1 <... clone resumed>) = 2", '1 write(3</r/f>, "x", 1) = 1']
    result = imported(file, OPEN, *lines, *more)
    assert len(result.workload.ops) == (1 if shared else 2)
    assert len(result.not_mapped) == (1 if shared else 0)


def test_exec_closes_what_should_be_closed(file: Path) -> None:
    lines = ["dup3(3</r/f>, 4, O_CLOEXEC) = 4</r/f>", 'execve("/bin/x", ["x"], 0x7ff /* 3 vars */) = 0']
    assert operations(file, OPEN, *lines, 'write(3</r/f>, "x", 1) = 1') == ["creat f", "write f 0 1"]
    (found,) = not_mapped(file, OPEN, *lines, 'write(4</r/f>, "x", 1) = 1')
    assert found == "line 4: write: descriptor 4 was not seen being opened, or its opening not mapped"


def test_failed_calls_and_other_folders_do_nothing(file: Path) -> None:
    lines = [
        'mkdir("/r/d", 0777) = -1 ENOSPC (No space left on device)',
        'mkdir("/rr/d", 0777) = 0',
        'rename("/a", "/b") = 0',
    ]
    others = [
        "--- SIGCHLD {si_signo=SIGCHLD} ---",
        'stat("/r/f", {st_mode=S_IFREG|0644, ...}) = 0',
        "exit_group(0) = ?",
        "+++ exited with 0 +++",
    ]
    assert operations(file, OPEN, *lines, *others) == ["creat f"]


def untorn_call(flags: str, offset: int) -> str:
    return f'pwritev2(5</r/g>, [{{iov_base="x"..., iov_len=4096}}], 1, {offset}, {flags}) = 4096'


def untorn(file: Path, opening: str, flags: str, offset: int = 4096) -> list[str]:
    """The operations for a write of a block with these flags of pwritev2."""
    return operations(file, opening, untorn_call(flags, offset))[1:]


def test_flags_of_a_write(file: Path) -> None:
    def opened(flags: str) -> str:
        return f'open("/r/g", O_WRONLY|O_CREAT|{flags}, 0644) = 5</r/g>'

    block = 'pwrite64(5</r/g>, "x"..., 512, 512) = 512'
    assert operations(file, opened("O_SYNC"), block)[1:] == ["write-osync g 512 512"]
    assert operations(file, opened("O_DIRECT"), block)[1:] == ["dwrite g 512 512"]
    assert operations(file, opened("O_APPEND"), block)[1:] == ["append g 512"]
    synced = 'pwritev2(3</r/f>, [{iov_base="x", iov_len=1}], 1, -1, RWF_SYNC) = 1'
    assert operations(file, OPEN, synced)[1:] == ["write-osync f 0 1"]
    assert untorn(file, opened("O_DIRECT"), "RWF_ATOMIC") == ["awrite g 4096 4096"]
    assert untorn(file, opened("O_DIRECT"), "0x40 /* RWF_??? */") == ["awrite g 4096 4096"]
    assert untorn(file, opened("O_DIRECT"), "RWF_DSYNC|0x40") == ["awrite-odsync g 4096 4096"]
    assert untorn(file, opened("O_DIRECT|O_DSYNC"), "RWF_ATOMIC") == ["awrite-odsync g 4096 4096"]
    assert untorn(file, opened("O_DIRECT"), "RWF_ATOMIC", offset=512) == ["dwrite g 512 4096"]
    assert untorn(file, opened("O_TRUNC"), "RWF_ATOMIC") == ["write g 4096 4096"]
    result = imported(file, opened("O_DIRECT"), untorn_call("RWF_SYNC|RWF_ATOMIC", 4096))
    assert str(result.workload.ops[-1]) == "awrite-odsync g 4096 4096"
    assert [item.reason for item in result.not_mapped] == ["what O_SYNC promises beyond O_DSYNC; the write is mapped"]
    result = imported(file, opened("O_DSYNC"), block)
    assert str(result.workload.ops[-1]) == "write g 512 512"
    assert [item.reason for item in result.not_mapped] == ["the promise of O_DSYNC; the write is mapped"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('chmod("/r/f", 0600) = 0', "nothing like it"),
        ("fchown(3</r/f>, 1, 1) = 0", "nothing like it"),
        ('mknodat(AT_FDCWD</r>, "p", S_IFIFO|0644) = 0', "nothing like it"),
        ("ioctl(3</r/f>, FICLONE, 4</r/g>) = 0", "nothing like it"),
        ("io_uring_setup(8, {flags=0}) = 7<anon_inode:[io_uring]>", "ring"),
        ("mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 3</r/f>, 0) = 0x7f0000000000", "does not see"),
        ("fallocate(3</r/f>, FALLOC_FL_COLLAPSE_RANGE, 0, 4096) = 0", "calls with this mode are not mapped"),
        ("sync_file_range(3</r/f>, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE) = 0", "without starting"),
        ('pwrite64(3</r/f>, "x", 1, 1073741824) = 1', "it reaches to byte 1073741825"),
        ('fsetxattr(3</r/f>, "trusted.a", "x", 1, 0) = 0', "starts with user."),
        ('rename("/r/f", "/elsewhere") = 0', "outside"),
        ('unlink("/r/never") = 0', "not there, as far as the trace tells"),
        ('openat(AT_FDCWD</r>, "/r", O_RDWR|O_TMPFILE, 0600) = 9</r/#12>', "without a name"),
        ('linkat(AT_FDCWD</r>, "/proc/self/fd/9", AT_FDCWD</r>, "g", AT_SYMLINK_FOLLOW) = 0', "name for an open file"),
        ('mkdir("sub", 0777) = 0', ""),
    ],
)
def test_what_has_no_counterpart_is_reported_with_its_line(file: Path, line: str, reason: str) -> None:
    found = not_mapped(file, OPEN, line)
    if not reason:
        assert found == []
    else:
        assert [item.split(": ")[:2] for item in found] == [["line 2", line.split("(")[0]]]
        assert reason in found[0]


UNLINK = 'unlink("/r/f") = 0'
WRITE = 'write(3</r/f>(deleted), "x", 1) = 1'
CLOSE = "close(3</r/f>(deleted)) = 0"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([UNLINK, WRITE, "fsync(3</r/f>(deleted)) = 0"], ["open f", "unlink f", "write @f 0 1", "fsync @f"]),
        ([UNLINK, WRITE, CLOSE], ["open f", "unlink f", "write @f 0 1", "close @f"]),
        ([UNLINK, "dup(3</r/f>) = 4</r/f>", CLOSE, "dup2(0</t>, 4) = 4"], ["open f", "unlink f", "close @f"]),
        (["fork() = 2", UNLINK, CLOSE, "2 +++ exited with 0 +++"], ["open f", "unlink f", "close @f"]),
        (["fork() = 2", UNLINK, CLOSE, WRITE.replace("write", "2 write")], ["open f", "unlink f", "write @f 0 1"]),
        (["close(3</r/f>) = 0", UNLINK], ["unlink f"]),
        (['link("/r/f", "/r/g") = 0', UNLINK, 'write(3</r/g>, "x", 1) = 1'], ["link f g", "unlink f", "write g 0 1"]),
        (
            ['creat("/r/g", 0600) = 4</r/g>', 'rename("/r/g", "/r/f") = 0', WRITE, 'write(4</r/f>, "y", 1) = 1'],
            ["creat g", "open f", "rename g f", "write @f 0 1", "write f 0 1"],
        ),
        (
            [UNLINK, CLOSE, OPEN, UNLINK, "ftruncate(3</r/f>(deleted), 9) = 0"],
            ["open f", "unlink f", "close @f", "creat f", "open f", "unlink f", "truncate @f 9"],
        ),
    ],
)
def test_a_file_that_loses_its_last_name_while_open_is_held(file: Path, lines: list[str], expected: list[str]) -> None:
    assert operations(file, OPEN, *lines) == ["creat f", *expected]


def test_a_handle_is_not_closed_while_another_thread_is_in_a_call(file: Path) -> None:
    calls = ["clone(flags=CLONE_VM|CLONE_FILES|CLONE_THREAD, child_tidptr=0) = 2", UNLINK]
    calls += ["2 fsync(3</r/f>(deleted) <unfinished ...>", CLOSE, "2 <... fsync resumed>) = 0", "2 close(9) = 0"]
    assert operations(file, OPEN, *calls) == ["creat f", "open f", "unlink f", "fsync @f", "close @f"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([UNLINK, OPEN.replace("= 3", "= 4"), UNLINK, 'write(4</r/f>, "x", 1) = 1'], "the file has no name (any more)"),
        (["fcntl(3</r/f>, F_SETFL, O_RDWR|O_DIRECT) = 0", UNLINK, 'write(3</r/f>, "x"..., 512) = 512'], "found '@f'"),
    ],
)
def test_what_no_handle_can_do_is_reported(file: Path, lines: list[str], reason: str) -> None:
    (found,) = not_mapped(file, OPEN, *lines)
    assert reason in found


def test_a_call_that_never_returns_is_reported(file: Path) -> None:
    lines = ["fsync(3</r/f> <unfinished ...>", "+++ killed by SIGKILL +++"]
    assert not_mapped(file, OPEN, *lines) == ["line 2: fsync: it never returned"]


def test_msync_of_a_whole_mapping(file: Path) -> None:
    mapped = "mmap(NULL, 8192, PROT_READ, MAP_SHARED, 3</r/f>, 0) = 0x7f0000000000"
    synced = [
        "ftruncate(3</r/f>, 8000) = 0",
        "msync(0x7f0000000000, 8192, MS_SYNC) = 0",
        "msync(0x7f0000000000, 8192, MS_ASYNC) = 0",
    ]
    assert operations(file, OPEN, mapped, *synced)[1:] == ["truncate f 8000", "msync f"]
    part = "msync(0x7f0000000000, 4096, MS_SYNC) = 0"
    assert not_mapped(file, OPEN, mapped, synced[0], part)[0].startswith("line 4: msync: msync of a part")


def test_a_full_workload_says_so_for_each_call_that_is_left(file: Path) -> None:
    result = imported(file, OPEN, *['write(3</r/f>, "x", 1) = 1'] * 257)
    assert len(result.workload.ops) == 256
    assert [item.line for item in result.not_mapped] == [257, 258]
    assert "full" in result.not_mapped[0].reason


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("1 nonsense", "trace:2: expected a system call, found 'nonsense'"),
        ('1 write(3, "x', "trace:2: expected a closing quote"),
        ("1 write(3", "trace:2: expected a closing bracket"),
        ("1 write(3, 4)", "trace:2: expected ` = ` and a result behind the call"),
        ("1 <... write resumed>) = 1", "trace:2: expected a call of thread 1 that can be resumed, not write"),
        ("1 write(3</r/f>, 4, 5) = 5", "trace:2: expected a string in write"),
        ("1 ftruncate(3</r/f>, many) = 0", "trace:2: expected a number in ftruncate"),
        (r'1 mkdir("\xzz", 0777) = 0', "trace:2: expected two hexadecimal digits after each \\x in mkdir"),
    ],
)
def test_what_is_no_trace_is_refused_with_its_line(file: Path, line: str, expected: str) -> None:
    with pytest.raises(StraceError, match=re.escape(expected)):
        imported(file, OPEN, line)


def test_a_trace_of_something_else_is_refused(file: Path) -> None:
    with pytest.raises(StraceError, match="no call in the folder /r/ can be mapped"):
        imported(file, 'mkdir("/elsewhere", 0777) = 0')


SEEDS = [
    OPEN,
    r'pwritev2(3</r/f>, [{iov_base="\x61b", iov_len=2}, {iov_base="c"..., iov_len=9}], 2, 100, RWF_SYNC) = 11',
    'mkdir("/r/d", 0777) = 0',
    'renameat2(AT_FDCWD</r>, "f", AT_FDCWD</r>, "d/g", RENAME_NOREPLACE) = 0',
    'symlinkat("d", AT_FDCWD</r>, "s") = 0',
    'openat2(AT_FDCWD</r>, "s/h", {flags=O_RDWR|O_CREAT|O_APPEND, mode=0644, resolve=0}, 24) = 5</r/d/h>',
    "2 write(5</r/d/h>, 0x7f00, 20 <unfinished ...>",
    'write(5</r/d/h>, "abc", 3) = 3',
    "mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_SHARED, 5</r/d/h>, 0) = 0x7f0000000000",
    "msync(0x7f0000000000, 8192, MS_SYNC) = 0",
    "copy_file_range(3</r/d/g>, [0 => 10], 5</r/d/h>, NULL, 10, 0) = 10",
    "fallocate(3</r/d/g>, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 0, 4096) = 0",
    "sync_file_range(3</r/d/g>, 0, 4096, SYNC_FILE_RANGE_WRITE) = 0",
    "clone(child_stack=NULL, flags=CLONE_FILES|CLONE_VM|SIGCHLD) = 2",
    'fsetxattr(3</r/d/g>, "user.a", "\\303\\251", 2, 0) = 0',
    "dup2(3</r/d/g>, 7) = 7</r/d/g>",
    "close_range(4, 4294967295, CLOSE_RANGE_CLOEXEC) = 0",
    'chdir("d") = 0',
    'rename("/r/d", "/r/e") = 0',
    'unlinkat(AT_FDCWD</r/e>, "g", 0) = 0',
    'linkat(AT_FDCWD</r/e>, "h", AT_FDCWD</r/e>, "i", 0) = 0',
]


def mutated(source: random.Random) -> list[str]:
    lines = list(SEEDS)
    for _ in range(source.randrange(1, 6)):
        at = source.randrange(len(lines))
        line = lines[at]
        start = source.randrange(len(line))
        end = start + source.randrange(1, 8)
        junk = source.choice(
            ['"', ")", "(", "<", ">", "0", "-1", "99999999999999999999", "\\x", "|", " = ", "/", "..", "\xff", "", line]
        )
        choices = [
            line[:start] + junk + line[end:],
            line[:start] + junk + line[start:],
            source.choice(lines),
            line[:start],
        ]
        lines[at] = source.choice(choices) or "x"
        if source.random() < 0.3:
            lines.insert(at, lines.pop(source.randrange(len(lines))))
    return lines


def test_damaged_traces_are_mapped_or_refused_in_one_line(file: Path) -> None:
    assert len(imported(file, *SEEDS).workload.ops) > 10
    refusals = [refusal(file, mutated(random.Random(seed))) for seed in range(400)]
    place = re.compile(re.escape(str(file)) + r":(?: no call |[0-9]+: expected ).+")
    assert [each for each in refusals if each and not place.fullmatch(each)] == []
    assert 50 < sum(map(bool, refusals)) < 350


def refusal(file: Path, lines: list[str]) -> str:
    try:
        imported(file, *lines)
    except StraceError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("before", "opened", "told"),
    [
        ('symlink("f", "/r/s") = 0', 'open("/r/s", O_WRONLY|O_NOFOLLOW) = 5</r/s>', "'s' is a symbolic link"),
        ('symlink("f", "/r/s") = 0', 'open("/r/s", O_WRONLY|O_CREAT|O_EXCL, 0644) = 5</r/s>', "'s' is there already"),
        ('mkdir("/r/D", 0777) = 0', 'open("/r/D", O_WRONLY) = 5</r/D>', "'D' is a directory"),
        ('mkdir("/r/D", 0777) = 0', 'open("/r/D", O_RDONLY|O_CREAT, 0644) = 5</r/D>', "'D' is a directory"),
    ],
)
def test_an_opening_that_cannot_be_is_reported(file: Path, before: str, opened: str, told: str) -> None:
    """A program that is not traced has changed the name in between."""
    assert not_mapped(file, OPEN, before, opened) == [f"line 3: open: {told}, as far as the trace tells"]


@pytest.mark.parametrize(
    ("before", "opened"),
    [
        ('symlink("f", "/r/s") = 0', 'open("/r/s", O_PATH|O_NOFOLLOW) = 5</r/s>'),
        ('mkdir("/r/D", 0777) = 0', 'open("/r/D", O_RDONLY|O_DIRECTORY) = 5</r/D>'),
        ('mkdir("/r/D", 0777) = 0', 'open("/r/D", O_PATH|O_RDWR) = 5</r/D>'),
        ('mkdir("/r/D", 0777) = 0', 'open("/r/D", O_RDWR|O_TMPFILE, 0600) = 5</r/D/#1>'),
    ],
)
def test_an_opening_that_can_be_is_not(file: Path, before: str, opened: str) -> None:
    assert not any("as far as the trace tells" in line for line in not_mapped(file, OPEN, before, opened))
