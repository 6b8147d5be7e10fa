"""Trees that hold the same bytes. Some of the bytes are open."""

from collections.abc import Iterable
from itertools import product

import hypothesis.strategies as st
from hypothesis import given

from postcrash.model.agreement import is_version_of, strange_part
from postcrash.model.choices import UndecidedBytes, every_answer
from postcrash.model.segments import Segment, Segments, merged
from postcrash.model.tree import Entry, Tree

BLOCK, BLOCKS, COMPONENTS, VERSIONS = 4, 4, 3, 2
SOURCES = ("zero", "write:0", "write:1")
Block = str | tuple[int, tuple[str, ...]]
"""The source of a block, or its component with a source for each version."""

blocks = st.lists(
    st.one_of(
        st.sampled_from(SOURCES),
        st.tuples(
            st.integers(0, COMPONENTS - 1),
            st.lists(st.sampled_from(SOURCES), min_size=VERSIONS, max_size=VERSIONS).map(tuple),
        ),
    ),
    min_size=BLOCKS,
    max_size=BLOCKS,
)


def tree(content: list[Block]) -> Tree:
    """Two files, each with half of the blocks."""
    entries = []
    for inode, half in enumerate((content[: BLOCKS // 2], content[BLOCKS // 2 :])):
        settled: list[Segment] = []
        choices: list[UndecidedBytes] = []
        for number, block in enumerate(half):
            start, end = number * BLOCK, (number + 1) * BLOCK
            if isinstance(block, str):
                settled.append(Segment(start, end, block))
            else:
                versions = tuple((Segment(start, end, source),) for source in block[1])
                choices.append(UndecidedBytes(start, end, block[0], versions))
        size = len(half) * BLOCK
        entries.append(
            Entry(f"f{inode}", "file", inode=inode, size=size, segments=merged(settled), choices=tuple(choices))
        )
    return Tree(entries)


def every_version(content: list[Block]) -> set[tuple[str, ...]]:
    """All contents that the tree may have."""
    return {
        tuple(block if isinstance(block, str) else block[1][chosen[block[0]]] for block in content)
        for chosen in product(range(VERSIONS), repeat=COMPONENTS)
    }


@given(blocks, blocks)
def test_a_version_is_one_of_those_that_enumeration_finds(found: list[Block], known: list[Block]) -> None:
    mine, theirs = tree(found), tree(known)
    answers = [answer for answer, _ in every_answer(lambda: is_version_of(mine, theirs), lambda _, version: version)]
    missing = every_version(found) - every_version(known)
    assert all(answers) == (not missing)
    assert any(answers) == bool(every_version(found) & every_version(known))


def segments(*runs: tuple[int, int, str]) -> Segments:
    return tuple(Segment(*run) for run in runs)


def file(size: int, settled: Segments, choices: Iterable[UndecidedBytes] = ()) -> Tree:
    return Tree([Entry("f", "file", size=size, segments=settled, choices=tuple(choices))])


def test_runs_may_be_cut_elsewhere() -> None:
    whole = file(8, segments((0, 8, "zero")))
    cut = file(
        8, segments((0, 2, "zero")), [UndecidedBytes(2, 8, 0, (segments((2, 8, "write:0")), segments((2, 8, "zero"))))]
    )
    assert is_version_of(whole, cut)
    answers = {answer for answer, _ in every_answer(lambda: is_version_of(cut, whole), lambda _, version: version)}
    assert answers == {True, False}


def test_what_cannot_matter_is_not_asked_twice() -> None:
    """Twelve blocks that are open on both sides alike need one answer, not 4,096."""
    choices = [
        UndecidedBytes(
            n * 4, n * 4 + 4, n, (segments((n * 4, n * 4 + 4, "zero")), segments((n * 4, n * 4 + 4, "write:0")))
        )
        for n in range(12)
    ]
    both = file(48, (), choices)
    assert [answer for answer, _ in every_answer(lambda: is_version_of(both, both), lambda _, version: version)] == [
        True
    ]


def test_the_first_part_that_no_version_has_is_found() -> None:
    versions = (segments((2, 8, "write:0")), segments((2, 4, "zero"), (4, 8, "write:1")))
    known = file(8, segments((0, 2, "zero")), [UndecidedBytes(2, 8, 0, versions)])["f"]
    assert strange_part(file(8, segments((0, 4, "zero"), (4, 8, "write:1")))["f"], known) is None
    found = file(8, segments((0, 4, "zero"), (4, 8, "other")))["f"]
    assert strange_part(found, known) == Segment(4, 8, "other")
