"""The abstract file system, with one row for each case."""

import time

import pytest

from postcrash.model import FORMS, SimulationError, Tree, WorkloadBuilder, parse_workload, simulate
from postcrash.model.simulate import _HANDLERS


def show(tree: Tree) -> str:
    """The tree in one line: names with type marks, and contents as SOURCE*LENGTH."""
    shown = []
    for path, entry in tree.items():
        runs = "+".join(f"{s.source.removeprefix('write:')}*{s.end - s.start}" for s in entry.segments)
        marks = {"dir": "/", "file": f"={runs}", "symlink": f"@{entry.target}"}
        mark = marks.get(entry.type, f":{entry.type} {entry.target}")
        attributes = "".join(f" {name}:{value}" for name, value in entry.xattrs)
        shown.append(path + mark + attributes)
    return ", ".join(shown[1:])


def run(lines: str) -> Tree:
    return simulate(parse_workload(lines.replace("; ", "\n"), "w"))[-1]


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        ("mkdir d; creat d/a", "d/, d/a="),
        ("mkdir d; rmdir d", ""),
        ("creat a; write a 2 3", "a=zero*2+0*3"),
        ("creat a; append a 2; append a 3", "a=0*2+1*3"),
        ("creat a; append a 9; write a 3 2", "a=0*3+1*2+0*4"),
        ("creat a; dwrite a 512 512", "a=zero*512+0*512"),
        ("creat a; awrite a 8192 8192", "a=zero*8192+0*8192"),
        ("creat a; awrite-odsync a 512 512", "a=zero*512+0*512"),
        ("creat a; append a 2; mmapwrite a 1 4", "a=0*1+1*4"),
        ("creat a; write-osync a 0 1", "a=0*1"),
        ("creat a; dwrite-osync a 0 512", "a=0*512"),
        ("creat a; append a 8; truncate a 3", "a=0*3"),
        ("creat a; append a 8; truncate a 3; truncate a 5", "a=0*3+zero*2"),
        ("creat a; append a 4; fallocate a none 0 9", "a=0*4+zero*5"),
        ("creat a; append a 4; fallocate a none 0 2", "a=0*4"),
        ("creat a; append a 4; fallocate a keep-size 2 9", "a=0*4"),
        ("creat a; append a 4; fallocate a zero-range 2 4", "a=0*2+zero*4"),
        ("creat a; append a 4; fallocate a zero-range-keep-size 2 4", "a=0*2+zero*2"),
        ("creat a; append a 4; fallocate a zero-range-keep-size 8 4", "a=0*4"),
        ("creat a; append a 4; fallocate a punch-hole 1 2", "a=0*1+zero*2+0*1"),
        ("creat a; append a 4; fallocate a punch-hole 3 9", "a=0*3+zero*1"),
        ("creat a; append a 8K; fallocate a collapse-range 0 4096", "a=0-4096*4096"),
        ("creat a; append a 10K; fallocate a collapse-range 4096 4096", "a=0*4096+0-4096*2048"),
        ("creat a; append a 5000; fallocate a insert-range 4096 8192", "a=0*4096+zero*8192+0+8192*904"),
        ("creat a; append a 8K; fallocate a insert-range 0 4096; fallocate a collapse-range 0 4096", "a=0*8192"),
        ("creat a; append a 8K; creat b; reflink a 4096 b 8192 4096", "a=0*8192, b=zero*8192+0+4096*4096"),
        ("creat a; append a 8K; creat b; append b 12K; reflink a 0 b 0 4K", "a=0*8192, b=0*4096+1*8192"),
        ("creat a; append a 5000; creat b; reflink a 4096 b 0 904", "a=0*5000, b=0-4096*904"),
        ("creat a; append a 5000; reflink a 0 a 8192 5000", "a=0*5000+zero*3192+0+8192*5000"),
        ("creat a; append a 5000; creat b; reflink a 0 b 0 5000; dedupe a 0 b 0 5000", "a=0*5000, b=0*5000"),
        ("tmpfile a; append @a 2; link @a b; append @a 1", "b=0*2+1*1"),
        ("mkdir d; tmpfile d/a; append @d/a 2; close @d/a; sync; drop-caches", "d/"),
        ("mknod p fifo; mknod c char; mknod s socket; rename p q", "c:char 1:3, q:fifo , s:socket "),
        ("creat a; link a b; append b 2", "a=0*2, b=0*2"),
        ("creat a; link a b; unlink a; append b 2", "b=0*2"),
        ("creat a; unlink a; creat a", "a="),
        ("symlink /x/.. s", "s@/x/.."),
        ("symlink x s; link s t; rename s u", "t@x, u@x"),
        ("creat a; rename a b", "b="),
        ("creat a; append a 1; creat b; rename a b", "b=0*1"),
        ("creat a; link a b; rename a b", "a=, b="),
        ("creat a; rename a a", "a="),
        ("mkdir d; mkdir d/e; creat d/e/f; mkdir g; rename d g", "g/, g/e/, g/e/f="),
        ("mkdir d; creat d/f; creat d-x; rename d e", "d-x=, e/, e/f="),
        ("mkdir d; creat d/f; creat a; append a 1; exchange d a", "a/, a/f=, d=0*1"),
        ("mkdir d; creat d/f; mkdir e; creat e/g; exchange d e", "d/, d/g=, e/, e/f="),
        ("creat a; exchange a a", "a="),
        ("creat a; setxattr a user.b v; setxattr a user.a é", "a= user.a:c3a9 user.b:76"),
        ("creat a; setxattr a user.b v; setxattr a user.b w; link a c", "a= user.b:77, c= user.b:77"),
        ("mkdir d; setxattr d user.b v; removexattr d user.b", "d/"),
        ("creat a; open a; rename a b; append @a 1; close @a", "b=0*1"),
        ("creat a; open a; unlink a; creat a; append @a 1; append a 2", "a=1*2"),
        ("creat a; open a; creat b; rename b a; append @a 1; fsync @a", "a="),
        ("creat a; open a; link a b; append @a 1; unlink a", "b=0*1"),
        ("creat a; open a; append a 1; unlink a; append @a 1; setxattr @a user.b v; truncate @a 5", ""),
        ("creat a; append a 1; fsync .; fsync a; fdatasync a; msync a; writeback a; commit; sync; syncfs", "a=0*1"),
        ("creat a; append a 1; checkpoint", "a=0*1"),
    ],
)
def test_effects(lines: str, shown: str) -> None:
    assert show(run(lines)) == shown


@pytest.mark.parametrize(
    ("lines", "errno_name"),
    [
        ("creat d/a", "ENOENT"),
        ("creat a; creat a/b", "ENOTDIR"),
        ("symlink d s; creat s/a", "ELOOP"),
        ("creat a; creat a", "EEXIST"),
        ("mkdir a; mkdir a", "EEXIST"),
        ("creat a; symlink x a", "EEXIST"),
        ("rmdir a", "ENOENT"),
        ("creat a; rmdir a", "ENOTDIR"),
        ("mkdir d; creat d/a; rmdir d", "ENOTEMPTY"),
        ("write a 0 1", "ENOENT"),
        ("mkdir a; write a 0 1", "EISDIR"),
        ("symlink x a; write a 0 1", "ELOOP"),
        ("mkdir a; truncate a 0", "EISDIR"),
        ("unlink a", "ENOENT"),
        ("mkdir a; unlink a", "EISDIR"),
        ("link a b", "ENOENT"),
        ("mkdir a; link a b", "EPERM"),
        ("creat a; creat b; link a b", "EEXIST"),
        ("rename a b", "ENOENT"),
        ("creat a; rename a d/b", "ENOENT"),
        ("creat a; mkdir b; rename a b", "EISDIR"),
        ("mkdir a; creat b; rename a b", "ENOTDIR"),
        ("mkdir a; mkdir b; creat b/c; rename a b", "ENOTEMPTY"),
        ("mkdir a; rename a a/b", "EINVAL"),
        ("mkdir a; creat a/b; rename a/b a", "ENOTEMPTY"),
        ("creat a; exchange a b", "ENOENT"),
        ("mkdir a; creat a/b; exchange a a/b", "EINVAL"),
        ("setxattr a user.a v", "ENOENT"),
        ("symlink x a; setxattr a user.a v", "ELOOP"),
        ("creat a; removexattr a user.a", "ENODATA"),
        ("fsync a", "ENOENT"),
        ("fdatasync a", "ENOENT"),
        ("mkdir a; msync a", "EISDIR"),
        ("mkdir a; writeback a", "EISDIR"),
        ("open a", "ENOENT"),
        ("mkdir a; open a", "EISDIR"),
    ],
)
def test_refusals(lines: str, errno_name: str) -> None:
    with pytest.raises(SimulationError) as caught:
        run(lines)
    assert caught.value.errno_name == errno_name
    operation = caught.value.operation
    assert operation.line == lines.count(";") + 1
    assert str(caught.value) == f"line {operation.line}: `{operation}` would fail with {errno_name}"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("creat a; write @a 0 1", "line 2: `write @a 0 1` would fail with EBADF: @a is not open"),
        ("creat a; open a; close @a; fsync @a", "line 4: `fsync @a` would fail with EBADF: @a is not open"),
        ("creat a; open a; close @a; close @a", "line 4: `close @a` would fail with EBADF: @a is not open"),
        ("creat a; open a; rename a b; creat a; open a", "line 5: `open a` would fail with EEXIST: @a is open already"),
        (
            "creat a; open a; unlink a; link @a b",
            "line 4: `link @a b` would fail with ENOENT: the file has lost its last name",
        ),
        (
            "tmpfile a; link @a b; unlink b; link @a c",
            "line 4: `link @a c` would fail with ENOENT: the file has lost its last name",
        ),
        ("tmpfile a; tmpfile a", "line 2: `tmpfile a` would fail with EEXIST: @a is open already"),
        ("mknod p fifo; fsync p", "line 2: `fsync p` would fail with EPERM: special files are not opened"),
    ],
)
def test_handles_that_are_not_open_or_are_already(lines: str, message: str) -> None:
    with pytest.raises(SimulationError) as caught:
        run(lines)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("fallocate a collapse-range 0 100", "the range is not one of whole blocks of 4096 bytes"),
        ("fallocate a collapse-range 4096 8192", "the range reaches the end of the file"),
        ("fallocate a insert-range 12288 4096", "the range reaches the end of the file"),
        ("reflink a 8192 b 0 8192", "the range reaches beyond the end of a"),
        ("reflink a 0 b 0 5000", "neither whole blocks of 4096 bytes nor up to both files' ends"),
        ("reflink a 8192 b 0 4000", "neither whole blocks of 4096 bytes nor up to both files' ends"),
        ("reflink a 0 a 4096 8192", "the ranges overlap"),
        ("dedupe a 0 b 0 4096", "the bytes differ"),
        ("reflink a 12284 b 0 4", "fewer than 8 bytes of a write in a sector, moved, are not known again"),
    ],
)
def test_what_cannot_be_shared_or_moved(line: str, reason: str) -> None:
    setup = "creat a; append a 12288; creat b; append b 8192; "
    if "12284" in line:
        setup, line = "creat a; append a 4; creat b; ", "reflink a 0 b 4096 4"
    with pytest.raises(SimulationError, match=f"would fail with EINVAL: {reason}$"):
        run(setup + line)


@pytest.mark.parametrize("word", ["awrite", "awrite-odsync"])
@pytest.mark.parametrize("place", ["0 1536", "4096 8192", "512 1024"])
def test_an_untorn_write_is_aligned_to_its_length(word: str, place: str) -> None:
    reason = "LENGTH is no power of two, or OFFSET is no multiple of LENGTH"
    with pytest.raises(SimulationError, match=f"would fail with EINVAL: {reason}$"):
        run(f"creat a; {word} a {place}")


@pytest.mark.parametrize("line", ["write a 1024M 1", "write a 64M 1", "truncate a 65M", "fallocate a none 1024M 1"])
def test_files_are_no_longer_than_what_is_read_of_them(line: str) -> None:
    reason = "no more than 67108864 bytes of a file are read after a crash"
    with pytest.raises(SimulationError, match=f"would fail with EFBIG: {reason}$"):
        run(f"creat a; {line}")
    run("creat a; truncate a 64M; fallocate a keep-size 1024M 1")


def test_a_file_without_a_name_is_there_while_it_is_open() -> None:
    workload = parse_workload("creat a\nlink a b\nopen a\nunlink a\nunlink b\nappend @a 9\nclose @a", "w")
    trees = simulate(workload)
    assert [(tree["@a"].nlink, tree["@a"].size) for tree in trees[3:-1]] == [(2, 0), (1, 0), (0, 0), (0, 9)]
    assert "@a" not in trees[-1]
    assert [list(tree) for tree in trees[5:]] == [["."]] * 3


def test_every_operation_is_simulated() -> None:
    assert set(_HANDLERS) == set(FORMS)


def test_a_tree_for_each_operation() -> None:
    trees = simulate(parse_workload("creat a\n---\nappend a 1\nfsync a\nunlink a", "w"))
    assert [show(tree) for tree in trees] == ["", "a=", "a=0*1", "a=0*1", ""]
    assert trees[2] is trees[3]


def test_inodes_and_link_counts() -> None:
    lines = "creat a; link a b; creat c; rename c b; unlink a; creat a; link a d; link d e; rename b d; unlink e"
    trees = simulate(parse_workload(lines.replace("; ", "\n"), "w"))
    shown = [{path: (e.inode, e.nlink) for path, e in tree.items() if path != "."} for tree in trees]
    assert shown[2] == {"a": (2, 2), "b": (2, 2)}
    assert shown[4] == {"a": (2, 1), "b": (4, 1)}
    assert shown[5] == {"b": (4, 1)}
    assert shown[8] == {"a": (7, 3), "d": (7, 3), "e": (7, 3), "b": (4, 1)}
    assert shown[9] == {"a": (7, 2), "d": (4, 1), "e": (7, 2)}
    assert shown[10] == {"a": (7, 1), "d": (4, 1)}


def test_modes() -> None:
    tree = run("mkdir d; creat a; symlink x s")
    assert {path: entry.mode for path, entry in tree.items()} == {".": 0o755, "a": 0o644, "d": 0o755, "s": 0o777}
    assert tree["."].nlink is None


def test_many_operations_stay_affordable() -> None:
    builder = WorkloadBuilder()
    for i in range(9_999):
        builder.creat(f"file-{i}")
    workload = builder.build("many")
    start = time.process_time()
    trees = simulate(workload)
    assert time.process_time() - start < 5
    assert [len(trees[i]) for i in (0, 1, 5_000, 9_999)] == [1, 2, 5_001, 10_000]
