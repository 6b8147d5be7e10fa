"""What a name can stand for, compared with looking at the tree after every operation."""

from collections import defaultdict

import pytest

from postcrash.checkers.inodes import Past, pasts
from postcrash.checkers.links import Link, links
from postcrash.checkers.shifts import displaced
from postcrash.model import Entry, History, Workload
from postcrash.model.simulate import ROOT_INODE
from postcrash.workloads import GRAMMARS
from postcrash.workloads.random import Pool

NAMES_MORE = 3
"""In so many folders each path is also asked for with a name that it never had."""
FULL = GRAMMARS["full"]


def drawn(seed: int) -> list[Workload]:
    """Workloads of five to twenty operations. Bursts of files take long in the slow way, and add nothing."""
    pool = Pool(FULL, seed)
    workloads = (pool.draw(number).workload(f"drawn-{number}", FULL) for number in range(80))
    return [workload for workload in workloads if len(workload.operations) < 80]


class EveryTree:
    """The pasts that all trees show, one after the other."""

    def __init__(self, workload: Workload, started: int) -> None:
        self.made: dict[Link, set[int]] = defaultdict(set)
        self.states: dict[int, list[Entry]] = defaultdict(list)
        self.workload = workload
        for tree in History(workload, started, started).possible_trees(0):
            for link, inode in links(tree).items():
                self.made[link].add(inode)
            for entry in (*tree.values(), *tree.held.values()):
                states = self.states[entry.inode]
                if not states or states[-1] != entry:
                    states.append(entry)

    def of(self, path: str) -> dict[int, Past]:
        inodes = {ROOT_INODE}
        for name in path.split("/") if path != "." else ():
            inodes = set[int]().union(*(self.made.get(Link(directory, name), set()) for directory in inodes))
        return {inode: self._past(inode) for inode in inodes}

    def _past(self, inode: int) -> Past:
        past, states = Past(), self.states[inode]
        for entry in states:
            past.add(Past({entry.type}, entry.size, {entry.target}, set(entry.xattrs), set(entry.segments)))
        past.written |= displaced(self.workload, [entry.segments for entry in states])
        return past


@pytest.mark.parametrize("workload", drawn(11), ids=lambda workload: workload.name)
def test_every_name_is_what_all_trees_say(workload: Workload) -> None:
    count = len(workload.operations)
    trees = History(workload, count, count).trees
    paths = sorted({path for tree in trees for path in tree.paths()})
    names = {path.rpartition("/")[2] for path in paths}
    paths += [f"{path}/{name}" for path in paths[:NAMES_MORE] for name in sorted(names)]
    for started in range(count + 1):
        slow, known = EveryTree(workload, started), pasts(History(workload, started, started))
        for path in paths:
            assert known.of(path) == slow.of(path), (workload.to_text(), started, path)
            assert [*known.of(path)] == sorted(slow.of(path))


@pytest.mark.parametrize("workload", drawn(13), ids=lambda workload: workload.name)
def test_trees_differ_only_at_their_places(workload: Workload) -> None:
    trees = History(workload, 0, 0).trees[:40]
    for before in trees:
        for after in trees:
            every = {path for path in {*before.paths(), *after.paths()} if before.get(path) != after.get(path)}
            assert every <= before.places(after)
