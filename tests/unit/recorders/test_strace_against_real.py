"""A random program leaves on this machine what its trace, simulated as a workload, leaves: names, links, bytes."""

import os
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from postcrash.model import Entry, Tree, simulate
from postcrash.recorders.strace import ImportedTrace, import_strace, prepare
from postcrash.recorders.strace.arguments import descriptor
from postcrash.recorders.strace.reader import read_calls

pytestmark = pytest.mark.slow

Trace = Callable[..., Path]
PROGRAM = Path(__file__).with_name("strace_program.py")
STEPS = 200


def imported(trace: Path, root: Path, before: Path | None = None) -> ImportedTrace:
    return import_strace(trace, prepare(root, before), "program")


def written_bytes(imported: ImportedTrace, trees: list[Tree], entry: Entry) -> list[int | None]:
    """The bytes of a simulated file as the program wrote them. None for bytes that the trace does not have."""
    found: list[int | None] = [0] * entry.size
    operations = imported.workload.operations
    for start, end, source in ((each.start, each.end, each.source) for each in entry.segments):
        if source == "zero":
            continue
        index = next(index for index, operation in enumerate(operations) if f"write:{operation.tag}" == source)
        operation = operations[index]
        first = trees[index][operation.path].size if operation.offset is None else operation.offset
        payload = imported.sources[index - len(imported.workload.setup)].payload
        found[start:end] = [None] * (end - start) if payload is None else payload[start - first : end - first]
    return found


def assert_same_file(path: Path, entry: Entry, content: list[int | None]) -> None:
    status = path.stat()
    assert (status.st_size, status.st_nlink) == (entry.size, entry.nlink)
    attributes = {name: os.getxattr(path, name).hex() for name in os.listxattr(path) if name.startswith("user.")}
    assert attributes == dict(entry.xattrs)
    real = path.read_bytes()
    assert [None if byte is None else there for byte, there in zip(content, real, strict=True)] == content


def assert_same_tree(root: Path, imported: ImportedTrace) -> int:
    """Compare the folder with the simulated workload. Returns how many bytes were compared."""
    trees = simulate(imported.workload)
    paths = {str(path.relative_to(root)): path for path in root.rglob("*")}
    assert set(paths) == set(trees[-1]) - {"."}
    compared = 0
    for name, path in paths.items():
        entry = trees[-1][name]
        if path.is_symlink():
            assert (entry.type, entry.target) == ("symlink", os.readlink(path))
        elif path.is_dir():
            assert entry.type == "dir"
        else:
            content = written_bytes(imported, trees, entry)
            assert_same_file(path, entry, content)
            compared += sum(byte is not None for byte in content)
    return compared


def nameless_sizes(trace: Path, root: Path) -> set[int]:
    """The sizes of the nameless files that the program has open at its end, as the program itself asks for them."""
    sizes = set()
    for call in read_calls(trace):
        size = re.search(r">\(deleted\).*st_size=([0-9]+)", call.arguments)
        opened = descriptor(call.split()[0]) if size and call.name == "newfstatat" else None
        if size and opened and opened.path.startswith(str(root)):
            sizes.add(int(size[1]))
    return sizes


def assert_same_held(trace: Path, root: Path, imported: ImportedTrace) -> int:
    """Compare the nameless files that are open when the program exits. Returns how many operations act on handles."""
    trees, operations = simulate(imported.workload), imported.workload.operations
    last = max(call.line for call in read_calls(trace))
    exits = [number for number, source in enumerate(imported.sources) if source.line == last]
    held = {trees[number].held[operations[number].path].size for number in exits}
    assert held == nameless_sizes(trace, root)
    return sum(operation.is_held for operation in operations)


def test_random_programs(tmp_path: Path, trace: Trace) -> None:
    compared = held = 0
    for seed in (3, 6, 9, 21):
        root = tmp_path / f"root{seed}"
        root.mkdir()
        output = trace(PROGRAM, root, str(seed), str(STEPS))
        result = imported(output, root)
        compared += assert_same_tree(root, result)
        held += assert_same_held(output, root, result)
    assert compared > 50_000
    assert held > 20


def test_what_stood_there_before_becomes_the_set_up(tmp_path: Path, trace: Trace) -> None:
    root, before = tmp_path / "root", tmp_path / "before"
    root.mkdir()
    trace(PROGRAM, root, "9", str(STEPS))
    subprocess.run(["cp", "-a", root, before], check=True)
    output = trace(PROGRAM, root, "10", str(STEPS))
    result = imported(output, root, before)
    assert result.workload.setup
    unknown = [entry for entry in simulate(result.workload)[-1].values() if entry.type == "file"]
    assert {entry.path: entry.size for entry in unknown} == {
        str(path.relative_to(root)): path.stat().st_size
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


THREADS = """
import os, sys, threading
def work(name):
    file = os.open(name, os.O_CREAT | os.O_WRONLY)
    for i in range(10):
        os.write(file, name.encode() * 100)
        os.fsync(file)
    os.close(file)
    os.rename(name, name + '-done')
os.chdir(sys.argv[1])
threads = [threading.Thread(target=work, args=(name,)) for name in 'ab']
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_come_apart(tmp_path: Path, trace: Trace) -> None:
    root = tmp_path / "root"
    root.mkdir()
    result = imported(trace(THREADS, root), root)
    assert result.not_mapped == ()
    assert assert_same_tree(root, result) == 2000
    for name in "ab":
        own = [str(op) for op in result.workload.ops if op.path == name]
        steps = [line for i in range(10) for line in (f"write {name} {i * 100} 100", f"fsync {name}")]
        assert own == [f"creat {name}", *steps, f"rename {name} {name}-done"]


def test_as_many_calls_as_strace_counts(tmp_path: Path, trace: Trace) -> None:
    (tmp_path / "root").mkdir()
    calls = [call for call in read_calls(trace(PROGRAM, tmp_path / "root", "6", "100")) if call.word == "returned"]
    (tmp_path / "again").mkdir()
    summary = trace(PROGRAM, tmp_path / "again", "6", "100", options=("-f", "-c")).read_text()
    row = re.compile(r"^ *[0-9.]+ +[0-9.]+ +[0-9]+ +([0-9]+) +(?:[0-9]+ +)?(\w+)$", re.MULTILINE)
    counted = {name: int(count) for count, name in row.findall(summary)}
    found = Counter(call.name for call in calls)
    names = ["openat", "close", "write", "writev", "pwrite64", "pwritev2", "pwritev", "lseek", "ftruncate", "truncate"]
    names += ["rename", "renameat", "renameat2", "link", "linkat", "unlink", "mkdir", "rmdir", "fsync", "fdatasync"]
    assert {name: found[name] for name in names} == {name: counted.get(name, 0) for name in names}
    assert sum(found[name] for name in names) > 60


SQLITE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1] + '/my.db')
connection.execute('create table t (x)')
for value in (1, 2):
    connection.execute('insert into t values (?)', (value,))
    connection.commit()
"""


def test_sqlite_s_rollback_journal(tmp_path: Path, trace: Trace) -> None:
    """As in "Atomic Commit In SQLite": the journal is written and synced, then the database; last the journal goes."""
    root = tmp_path / "root"
    root.mkdir()
    result = imported(trace(SQLITE, root), root)
    assert assert_same_tree(root, result) == 8192
    words = "".join(_LETTERS[op.word, op.path] for op in result.workload.ops)
    assert re.fullmatch("d(?:cj+s[.]?(?:j+s)?[.]?d+Du){3}", words.replace("o", "d", 1)), words
    assert {item.call for item in result.not_mapped} <= {"fchown", "chown", "fchmod", "chmod"}


_LETTERS = {
    ("creat", "my.db"): "o",
    ("creat", "my.db-journal"): "c",
    ("write", "my.db-journal"): "j",
    ("fsync", "my.db-journal"): "s",
    ("fdatasync", "my.db-journal"): "s",
    ("fsync", "."): ".",
    ("fdatasync", "."): ".",
    ("write", "my.db"): "d",
    ("fsync", "my.db"): "D",
    ("fdatasync", "my.db"): "D",
    ("unlink", "my.db-journal"): "u",
}


@pytest.mark.parametrize("root_is_link", [False, True])
def test_the_folder_may_be_named_through_a_link(tmp_path: Path, trace: Trace, root_is_link: bool) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "link").symlink_to("root")
    root = tmp_path / ("link" if root_is_link else "root")
    program = f"import os; os.chdir({str(root)!r}); os.mkdir('a'); os.mkdir({str(root)!r} + '/b')"
    result = imported(trace(program), root)
    assert [str(op) for op in result.workload.ops] == ["mkdir a", "mkdir b"]
