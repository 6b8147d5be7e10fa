"""What an operation changes, and what a tree shows of it when later operations have changed more."""

import random
from collections.abc import Iterator

import pytest

from postcrash.model import Entry, History, Segment, Tree, Workload, parse_workload
from postcrash.properties.effects import Effect, EffectState, _Finder, effects
from postcrash.workloads import GRAMMARS, WorkloadSpace
from postcrash.workloads.random import Pool


def shown(operations: str, started: int, operation: int, *entries: Entry) -> set[EffectState]:
    """What a tree of these entries shows of all effects of the operation (from 0) when so many have started."""
    workload = parse_workload(operations, "w")
    tree = Tree([Entry(".", "dir"), *entries])
    return {effect.shown(tree) for effect in effects(History(workload, started, started - 1), operation)}


REPLACED = "symlink foo bar\ncreat foo\nrename foo bar\n"


def test_a_name_is_there_before_and_after_another_operation_gives_it_to_another_file() -> None:
    link = Entry("bar", "symlink", target="foo")
    file, source = Entry("bar", "file", inode=1), Entry("foo", "file", inode=1)
    assert shown(REPLACED, 3, 0, link, source) == {EffectState.NEW}, "the rename has begun, and is not there"
    assert shown(REPLACED, 3, 0, file) == {EffectState.NEW}
    assert shown(REPLACED, 3, 0, source) == {EffectState.OLD}
    assert shown(REPLACED, 3, 0, Entry("bar", "fifo"), source) == {EffectState.OTHER}
    assert shown(REPLACED, 3, 0, Entry("bar", "symlink", target="elsewhere")) == {EffectState.OTHER}


def test_without_the_other_operation_the_name_stands_for_one_thing() -> None:
    assert shown(REPLACED, 2, 0, Entry("bar", "file")) == {EffectState.OTHER}
    assert shown(REPLACED, 2, 0, Entry("bar", "symlink", target="foo")) == {EffectState.NEW}


def filled(path: str, source: str, size: int = 4096) -> Entry:
    """A file of which all bytes come from one source."""
    return Entry(path, "file", size=size, segments=(Segment(0, size, source),))


REFLINK = "creat c\n---\ncreat a\nrename a b\ncreat a\nappend a 4096\nreflink a 0 b 0 4096\n"


def test_bytes_that_two_files_share_tell_nothing_under_a_name_that_both_have() -> None:
    source = filled("a", "write:0")
    assert shown(REFLINK, 6, 5, source, Entry("b", "file"), Entry("c", "file")) == {EffectState.OLD}, "only a has them"
    assert shown(REFLINK, 6, 5, source, filled("b", "write:0"), Entry("c", "file")) == {EffectState.NEW}
    assert shown(REFLINK, 6, 5, source, Entry("c", "file")) == {EffectState.UNKNOWN}, "a may be the file that became b"


EMPTIED = "creat a\nappend a 4096\ncreat b\nappend b 4096\n---\ntruncate a 0\nsync\nappend a 10\nexchange a b\n"


def test_a_file_that_was_emptied_is_not_taken_for_the_other_one() -> None:
    other, emptied = filled("b", "write:1"), Entry("a", "file")
    assert shown(EMPTIED, 8, 7, emptied, other) == {EffectState.UNKNOWN, EffectState.OLD}, (
        "not exchanged, or the data lost"
    )
    assert shown(EMPTIED, 8, 7, filled("a", "write:1"), filled("b", "write:2", 10)) == {EffectState.NEW}
    assert shown(EMPTIED, 8, 7, filled("a", "write:1"), other) == {EffectState.NEW, EffectState.OLD}, "half of it"


def test_a_file_that_always_has_bytes_of_its_own_is_missed() -> None:
    grown = "creat a\nappend a 4096\ncreat b\n---\nappend a 10\nappend b 10\nrename b a\n"
    assert shown(grown, 6, 5, Entry("a", "file")) == {EffectState.NEW}, "what is empty cannot be the old file"


def test_a_file_that_lost_its_bytes_to_a_later_operation_is_not_taken_for_the_new_one() -> None:
    """The hole is there and the append before it is not: no byte is left that only the old file has."""
    punched = (
        "creat a\nappend a 4096\ncreat b\n---\nappend b 100\nappend a 512\nfallocate a punch-hole 0 4096\nrename b a\n"
    )
    holed, new = Entry("a", "file", size=4096, segments=(Segment(0, 4096, "zero"),)), filled("b", "write:1", 100)
    assert shown(punched, 7, 6, holed, new) == {EffectState.UNKNOWN, EffectState.OLD}


THROUGH_HANDLE = "creat a\nappend a 4096\ncreat b\nappend b 512\n---\nopen a\nrename b a\nwrite @a 0 4096\n"


def test_a_file_that_only_a_handle_holds_may_still_be_changed() -> None:
    assert shown(THROUGH_HANDLE, 7, 5, filled("a", "write:0"), filled("b", "write:1", 512)) == {EffectState.OLD}
    assert shown(THROUGH_HANDLE, 7, 5, filled("a", "write:2"), filled("b", "write:1", 512)) == {EffectState.OLD}, (
        "the rename is lost and the later write is not"
    )


def effects_in_all_trees(workload: Workload, started: int, group: tuple[int, ...]) -> tuple[Effect, ...]:
    """What `effects` says if it looks at the tree after every operation."""
    first = len(workload.setup)
    trees = History(workload, started, started).trees[first : started + 1]
    return tuple(_Finder(trees, frozenset(index - first for index in group)).find())


HELD = (
    "creat a; append a 4096; creat b; append b 512; ---; open a; rename b a; write @a 0 4096; writeback @a; close @a",
    "creat a; append a 4096; ---; tmpfile t; append @t 4096; link @t b; rename b a",
)
"""Workloads in which a file that only a handle holds is written to."""


def drawn_workloads() -> Iterator[Workload]:
    """Of two operations, and of five to twenty."""
    full = GRAMMARS["full"]
    space, pool = WorkloadSpace(full, 2, ("new", "synced", "logged")), Pool(full, 7)
    yield from (parse_workload(text.replace("; ", "\n"), "w") for text in HELD)
    yield from map(space.whole, random.Random(7).sample(range(len(space)), 40))
    drafts = (pool.draw(number).workload("w", full) for number in range(60))
    yield from (workload for workload in drafts if len(workload.operations) < 60)


@pytest.mark.slow
def test_operations_that_have_to_do_with_nothing_of_a_group_make_no_difference_to_it() -> None:
    compared = 0
    for workload in drawn_workloads():
        first = len(workload.setup)
        for started in {first + 1, (first + len(workload.operations)) // 2, len(workload.operations)}:
            groups = [(index,) for index in range(first, started)] + [(first, started - 1)]
            for group in groups + [(index, index + 1) for index in range(first, started - 1)]:
                found = effects(History(workload, started, started), *group)
                assert found == effects_in_all_trees(workload, started, group), (workload.to_text(), started, group)
                compared += bool(found)
    assert compared > 1000
