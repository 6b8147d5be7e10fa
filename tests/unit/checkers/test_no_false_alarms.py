"""Checkers against a file system that keeps its promises and nothing more.

After a crash this file system has what persistence operations promised. Of everything else it has any part, in any
order: operations are lost one by one, and later writes are cut short. Operations act on inodes and directory entries,
not on paths, so a file made in a renamed directory is there even if the rename is lost. The checkers durability,
never-written and foreign-bytes must accept whatever such a crash leaves.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postcrash.checkers.durability import Durability
from postcrash.checkers.foreign_bytes import ForeignBytes
from postcrash.checkers.links import Link, link_of
from postcrash.checkers.never_written import NeverWritten
from postcrash.model import History, Observation, Operation, Segment, SimulationError, Tree, Verdict, Workload, simulate
from postcrash.model.segments import clipped

pytestmark = pytest.mark.slow

PATHS = ["a", "b", "D", "E", "D/a", "D/b", "E/a"]
HELD = ("write", "mmapwrite", "truncate", "fsync", "fdatasync", "msync")
"""Operations that are also done through handles."""
CONTENT = ("write", "mmapwrite", "write-osync", "write-odsync", "truncate")
NAMES = ("creat", "mkdir", "unlink", "rmdir", "rename", "link", "exchange")

WORDS = [
    *("creat", "creat", "mkdir", "unlink", "rmdir", "rename", "rename", "rename", "link", "exchange"),
    *("write", "write", "mmapwrite", "write-osync", "write-odsync", "truncate", "open", "close"),
    *("fsync", "fsync", "fsync", "fsync", "fdatasync", "msync", "sync"),
]


def some_operation(draw: st.DrawFn, tree: Tree, tag: int) -> Operation:
    """An operation that probably succeeds on `tree`."""
    word = draw(st.sampled_from(WORDS))
    new = [path for path in PATHS if path not in tree]
    files = [path for path in PATHS if path in tree and tree[path].type == "file"]
    directories = [path for path in PATHS if path in tree and tree[path].type == "dir"]
    targets = {"creat": new, "mkdir": new, "rmdir": directories, "fsync": [*files, *directories, "."]}
    if word in ("rename", "exchange"):
        targets[word] = files + directories
    targets["close"] = [*tree.held]
    if word in HELD and tree.held and draw(st.booleans()):
        targets[word] = [*tree.held]
    path = draw(st.sampled_from(targets.get(word, files) or PATHS))
    if word in ("rename", "link", "exchange"):
        return Operation(word, path, draw(st.sampled_from(PATHS)))
    if word == "truncate":
        return Operation(word, path, length=draw(st.sampled_from([0, 50, 5000])))
    if word in CONTENT:
        offset, length = draw(st.sampled_from([(0, 100), (0, 8192), (50, 100), (4096, 4096)]))
        return Operation(word, path, offset=offset, length=length, tag=tag)
    return Operation(word, "" if word == "sync" else path)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Workloads that run. Operations that would fail are left out."""
    operations: list[Operation] = []
    tree = simulate(Workload("random", (), ()))[0]
    for tag in range(draw(st.integers(8, 30))):
        operation = some_operation(draw, tree, tag)
        try:
            tree = simulate(Workload("random", (), (*operations, operation)))[-1]
        except SimulationError:
            continue
        operations.append(operation)
    operations.append(Operation("commit"))
    split = draw(st.integers(0, len(operations) // 2))
    return Workload("random", tuple(operations[:split]), tuple(operations[split:]))


# Which operations a crash must keep


def links_touched(before: Tree, after: Tree) -> set[Link]:
    """The directory entries that differ between two trees."""
    paths = {path for path in {*before, *after} if path != "."}
    return {
        link_of(tree, path)
        for path in paths
        for tree in (before, after)
        if path in tree and (path not in before or path not in after or before[path].inode != after[path].inode)
    }


def inodes_of(tree: Tree) -> set[int]:
    return {entry.inode for entry in tree.values()}


def ends_in(tree: Tree, path: str, wanted: set[Link]) -> bool:
    return path != "." and link_of(tree, path) in wanted


@dataclass
class KeptOperations:
    """The operations that a crash at `history` keeps for certain."""

    history: History
    indices: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        first = len(self.history.workload.setup)
        self.indices.update(range(first))
        for index in range(first, self.history.returned):
            self._keep_for(index, self.history.workload.operations[index])

    def _keep_for(self, index: int, operation: Operation) -> None:
        if operation.word == "sync":
            self.indices.update(range(index))
        elif operation.word in ("fsync", "fdatasync", "msync"):
            entry = self.history.trees[index][operation.path]
            if entry.type == "dir":
                self._keep_names(index, entry.inode)
            else:
                self.indices.update(self._content(index, entry.inode))
        elif operation.word in ("write-osync", "write-odsync"):
            self.indices.update(self._content(index + 1, self.history.trees[index][operation.path].inode))

    def _content(self, end: int, inode: int) -> Iterator[int]:
        for index, operation in enumerate(self.history.workload.operations[:end]):
            if operation.word in CONTENT and self.history.trees[index][operation.path].inode == inode:
                yield index

    def _keep_names(self, end: int, directory: int) -> None:
        """Keep the name operations before `end` that touch an entry of the directory, and those on which they depend.

        An entry depends on the operation that made its inode. Removing a directory depends on all operations that
        emptied it.
        """
        links: set[Link] = set()
        directories, inodes = {directory}, set[int]()
        for index in reversed(range(end)):
            before, after = self.history.trees[index : index + 2]
            touched = links_touched(before, after)
            old, new = inodes_of(before), inodes_of(after)
            is_wanted = index in self.indices or any(link.directory in directories for link in touched)
            if touched and (is_wanted or touched & links or (new - old) & inodes):
                links |= touched
                directories |= old - new
                inodes |= {
                    tree[path].inode for tree in (before, after) for path in tree if ends_in(tree, path, touched)
                }
                self.indices.add(index)


# What a crash leaves


@dataclass
class Remains:
    """A tree that grows by the operations that a crash keeps. `inodes` maps the history's inodes to this tree's."""

    history: History
    operations: list[Operation] = field(default_factory=list)
    tree: Tree = field(default_factory=lambda: simulate(Workload("none", (), ()))[0])
    inodes: dict[int, int] = field(default_factory=lambda: {1: 1})

    def apply(self, index: int, length_max: int | None) -> None:
        """Do the operation at `index` to the same inodes and entries. If they are not there, nothing happens."""
        operation = self.history.workload.operations[index]
        translated = self._translated(index, operation)
        if translated is None:
            return
        if length_max is not None and operation.form.data:
            translated = replace(translated, length=min(length_max, translated.length or 0))
        try:
            tree = simulate(Workload("remains", (), (*self.operations, translated)))[-1]
        except SimulationError:
            return
        self.operations.append(translated)
        self.tree = tree
        if operation.word in ("creat", "mkdir"):
            self.inodes[self.history.trees[index + 1][operation.path].inode] = tree[translated.path].inode

    def _translated(self, index: int, operation: Operation) -> Operation | None:
        before = self.history.trees[index]
        if operation.word in CONTENT:
            path = self._path_of(before[operation.path].inode)
            return replace(operation, path=path) if path else None
        path = self._entry(index, operation.path)
        to = self._entry(index, operation.to) if operation.to else ""
        return None if path is None or to is None else replace(operation, path=path, to=to)

    def _path_of(self, inode: int) -> str | None:
        """A path of the inode that has this number in the history."""
        names = self.tree.names(self.inodes[inode]) if inode in self.inodes else []
        return names[0] if names else None

    def _entry(self, index: int, path: str) -> str | None:
        """This tree's path of the entry that the operation at `index` calls `path`. None if the entry is another's."""
        before, after = self.history.trees[index : index + 2]
        directory, name = link_of(before if path in before else after, path)
        parent = self._path_of(directory)
        if parent is None:
            return None
        found = name if parent == "." else f"{parent}/{name}"
        meant = self.inodes.get(before[path].inode) if path in before else None
        here = self.tree[found].inode if found in self.tree else None
        return found if meant == here else None


def test_what_was_not_promised_may_be_lost(pytestconfig: pytest.Config) -> None:
    settings(max_examples=400 if pytestconfig.option.full else 150, derandomize=True)(may_be_lost)()


@given(data=st.data(), workload=workloads())
def may_be_lost(data: st.DataObject, workload: Workload) -> None:
    first, count = len(workload.setup), len(workload.operations)
    returned = data.draw(st.integers(first, count), "returned")
    started = data.draw(st.integers(returned, min(returned + 1, count)), "started")
    history = History(workload, started, returned)
    kept = KeptOperations(history).indices
    remains = Remains(history)
    for index in range(started):
        operation = workload.operations[index]
        if operation.word not in CONTENT + NAMES:
            continue
        if index in kept:
            remains.apply(index, None)
        elif data.draw(st.booleans(), f"keep `{operation}`"):
            remains.apply(index, data.draw(st.sampled_from([None, 1, 4096])))
    observation = Observation(0, Tree(remains.tree.values()))
    for checker in (Durability(), NeverWritten(), ForeignBytes()):
        assert checker.examine(history, observation).verdict is Verdict.HOLDS


@pytest.mark.parametrize("returned", range(3, 6))
def test_the_lossy_file_system_loses_what_it_may(returned: int) -> None:
    """If it did not, the test above would accept everything."""
    written: dict[str, Any] = {"offset": 0, "length": 10, "tag": 0}
    names = ("creat a", "write a", "fsync a", "creat b", "fsync .")
    workload = Workload(
        "lossy",
        (),
        tuple(
            Operation(word, path, **(written if word == "write" else {}))
            for word, path in (name.split() for name in names)
        ),
    )
    history = History(workload, returned, returned)
    assert KeptOperations(history).indices == ({0, 1, 3} if returned == 5 else {1})


# What a crash must not leave


@dataclass
class Spoiling:
    """Ways to break a tree that a crash at `history` may leave, if all that was there after `since` is durable."""

    history: History
    since: int

    def __post_init__(self) -> None:
        self.trees = self.history.possible_trees(self.since)
        later = self.history.workload.operations[self.since : self.history.started]
        directories = [{entry.inode for entry in tree.values() if entry.type == "dir"} for tree in self.trees]
        self.keeps_directories = all(old <= new for old, new in pairwise(directories))
        self.moves_directories = any(
            operation.word in ("rename", "exchange") and any(entry.type == "dir" for entry in named)
            for operation, tree in zip(later, self.trees, strict=False)
            for named in [[tree[path] for path in (operation.path, operation.to) if path in tree]]
        )
        self.syncs_directories = any(
            operation.word == "fsync" and tree[operation.path].type == "dir"
            for operation, tree in zip(later, self.trees, strict=False)
        )

    def without(self, tree: Tree) -> Iterator[Tree]:
        """Each durable thing that later operations did not touch, or only renamed, is gone with everything below it."""
        for inode in sorted({entry.inode for entry in self.trees[0].values()} - {1}):
            names = [set(each.names(inode)) for each in self.trees]
            is_kept = all(new - old or old <= new for old, new in pairwise(names))
            if is_kept and self.keeps_directories and not self.syncs_directories:
                gone = {p for p in tree for name in tree.names(inode) if p == name or p.startswith(f"{name}/")}
                worse = Tree(entry for path, entry in tree.items() if path not in gone)
                # Another file with one of its names could be mistaken for it.
                if not set(worse) & set().union(*names):
                    yield worse

    def spoilt(self, tree: Tree) -> Iterator[Tree]:
        """Each durable file that is not written to later is cut, emptied of its bytes, or as it was before."""
        for path, durable in self.trees[0].items():
            states = [each[name] for each in self.trees for name in each.names(durable.inode)]
            is_steady = durable.type == "file" and len({entry.segments for entry in states}) == 1
            is_alone = all(
                p not in t or t[p].inode == durable.inode for t in self.trees for p in tree.names(durable.inode)
            )
            if not is_steady or not is_alone or self.moves_directories:
                continue
            zeros = (Segment(0, durable.size, "zero"),) if durable.size else ()
            former = [before[path].segments for before in self.history.trees if path in before]
            for segments in {clipped(durable.segments, 0, durable.size // 2), zeros, *former} - {durable.segments}:
                size = segments[-1].end if segments else 0
                changed = [replace(tree[p], segments=segments, size=size) for p in tree.names(durable.inode)]
                if changed:
                    yield tree.changed({entry.path: entry for entry in changed})

    def with_removed(self, tree: Tree) -> Iterator[Tree]:
        """Each name that had been removed before, and has not been made since, is back."""
        for before in self.history.trees[: self.since]:
            for path, entry in before.items():
                above = path.rpartition("/")[0] or "."
                is_free = all(path not in each for each in self.trees) and above in tree
                if is_free and not self.moves_directories and tree[above].inode == before[above].inode:
                    yield tree.changed({path: entry})


def durability_of(history: History, tree: Tree) -> Verdict:
    return Durability().examine(history, Observation(0, Tree(tree.values()))).verdict


def test_what_was_promised_must_not_be_lost(pytestconfig: pytest.Config) -> None:
    """The reverse of the test above: a legal tree, broken in one place, is found under all later operations."""
    broken: Counter[str] = Counter()

    @settings(max_examples=1000 if pytestconfig.option.full else 400, derandomize=True)
    @given(data=st.data(), workload=workloads())
    def spoil(data: st.DataObject, workload: Workload) -> None:
        first, count = len(workload.setup), len(workload.operations)
        returned = data.draw(st.integers(first, count), "returned")
        history = History(workload, data.draw(st.integers(returned, min(returned + 1, count)), "started"), returned)
        done = list(enumerate(workload.operations[:returned], 1))[first:]
        since = max([first, *(number for number, operation in done if operation.word == "sync")])
        latest = max([first, *(number for number, operation in done if operation.form.persistence)])
        spoiling, tree = Spoiling(history, since), data.draw(st.sampled_from(history.possible_trees(latest)), "tree")
        assert durability_of(history, tree) is Verdict.HOLDS
        for kind in (spoiling.without, spoiling.spoilt, spoiling.with_removed):
            for worse in kind(tree):
                assert durability_of(history, worse) is Verdict.VIOLATED, (kind.__name__, worse)
                broken[kind.__name__] += 1

    spoil()
    assert min(broken[name] for name in ("without", "spoilt", "with_removed")) > 50, broken
