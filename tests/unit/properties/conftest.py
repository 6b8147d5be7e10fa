"""A litmus row is a workload, how many of its recorded operations had started and returned, and a tree.

The tree is written with one word for each name: `a`, `D/` for a directory, `a=` for an empty file (the same as `a`),
and `b=w0:4096+zero:100` for runs of bytes. A run is wN for bytes of tag N, zero, stale, other, or eN for bytes that
cannot be read with errno N. A symbolic link is `s>target`. `a*2=w0:100` has two links, and `a@user.x:61` has an
attribute with its value in hexadecimal.
"""

from collections.abc import Callable

import pytest

from postcrash.model import Entry, History, Observation, Segment, Tree
from postcrash.model.judge import Opinion
from postcrash.properties import Property
from postcrash.properties.family import family

Judge = Callable[[Property, str, str, str], Opinion]


def tree_of(text: str) -> Tree:
    entries = [Entry(".", "dir")]
    for word in text.split():
        if ">" in word:
            path, _, target = word.partition(">")
            entries.append(Entry(path, "symlink", nlink=1, target=target))
            continue
        start, _, content = word.partition("=")
        start, _, attribute = start.partition("@")
        path, _, links = start.partition("*")
        if path.endswith("/"):
            entries.append(Entry(path[:-1], "dir"))
            continue
        segments: list[Segment] = []
        for run in filter(None, content.split("+")):
            source, _, length = run.partition(":")
            begin = segments[-1].end if segments else 0
            segments.append(Segment(begin, begin + int(length), source_of(source)))
        size = segments[-1].end if segments else 0
        name, _, value = attribute.partition(":")
        xattrs = ((name, value),) if attribute else ()
        entries.append(Entry(path, "file", nlink=int(links or 1), size=size, segments=tuple(segments), xattrs=xattrs))
    return Tree(entries)


def source_of(short: str) -> str:
    if short in ("zero", "stale", "other"):
        return short
    return f"{'write' if short[0] == 'w' else 'error'}:{short[1:]}"


@pytest.fixture(scope="session")
def judge() -> Judge:
    """Judge `tree` after a crash when all operations of `set-up --- operations` had returned."""

    def judged(checked: Property, setup: str, operations: str, tree: str) -> Opinion:
        (workload,) = family(("litmus", setup, operations))
        count = len(workload.operations)
        return checked.examine(History(workload, count, count), Observation(0, tree_of(tree)))

    return judged
