"""A question about contents that are not settled gets every possible answer, and is asked only a few times more."""

from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postcrash.model import Entry, Segment, UndecidedBytes, all_from, any_from, every_answer, runs, source_at
from postcrash.model.choices import UndecidedContentError
from postcrash.model.units import BLOCK_BYTES


def entry(*versions: tuple[str, ...], components: tuple[int, ...] | None = None) -> Entry:
    """A file with one block for each argument: the sources of the block's versions. One version is settled."""
    numbers = components or tuple(range(len(versions)))
    segments, choices = [], []
    for i, (number, sources) in enumerate(zip(numbers, versions, strict=True)):
        start, end = i * BLOCK_BYTES, (i + 1) * BLOCK_BYTES
        if len(sources) == 1:
            segments.append(Segment(start, end, sources[0]))
        else:
            shown = tuple((Segment(start, end, source),) for source in sources)
            choices.append(UndecidedBytes(start, end, number, shown))
    return Entry("a", "file", size=len(versions) * BLOCK_BYTES, segments=tuple(segments), choices=tuple(choices))


def settled(file: Entry, chosen: dict[int, int]) -> Entry:
    """The file with the versions of `chosen`. Components that are not named have version 0."""
    extra = [run for choice in file.choices for run in choice.versions[chosen.get(choice.component, 0)]]
    return Entry("a", "file", size=file.size, segments=tuple(sorted([*file.segments, *extra])))


@given(
    st.lists(st.lists(st.sampled_from(["write:1", "zero", "stale"]), min_size=1, max_size=3).map(tuple), max_size=4),
    st.integers(0, 5),
)
def test_every_answer_is_that_of_brute_force(versions: list[tuple[str, ...]], number: int) -> None:
    file = entry(*versions)
    ranges = [range(len(choice.versions)) for choice in file.choices]
    ways = [dict(zip((c.component for c in file.choices), way, strict=True)) for way in product(*ranges)]
    brute = {ask(settled(file, way), number) for way in ways}
    lazy = list(every_answer(lambda: ask(file, number)))
    assert {answer for answer, _ in lazy} == brute
    for answer, chosen in lazy:
        assert ask(settled(file, chosen), number) == answer


@given(
    st.lists(st.lists(st.sampled_from(["write:1", "zero", "stale"]), min_size=1, max_size=3).map(tuple), max_size=4),
    st.lists(st.lists(st.integers(0, 5), min_size=2, max_size=2).map(sorted), min_size=4, max_size=4),
    st.integers(0, 5),
)
def test_each_answer_comes_first_in_its_cheapest_way(
    versions: list[tuple[str, ...]], costs: list[list[int]], number: int
) -> None:
    file = entry(*versions)

    def cost(component: int, version: int) -> int:
        return [0, *costs[component]][version]

    ranges = [range(len(choice.versions)) for choice in file.choices]
    cheapest: dict[object, int] = {}
    for way in product(*ranges):
        chosen = dict(zip((c.component for c in file.choices), way, strict=True))
        answer, total = ask(settled(file, chosen), number), sum(map(cost, chosen, chosen.values()))
        cheapest[answer] = min(total, cheapest.get(answer, total))
    lazy = [
        (answer, sum(map(cost, chosen, chosen.values())))
        for answer, chosen in every_answer(lambda: ask(file, number), cost)
    ]
    assert [total for _, total in lazy] == sorted(total for _, total in lazy)
    assert dict(reversed(lazy)) == cheapest


def ask(file: Entry, number: int) -> bool | tuple[str, ...]:
    """A question as judges ask it."""
    if number == 0:
        return all_from(file, 0, file.size, {"write:1"})
    if number == 1:
        return all_from(file, 0, file.size, {"write:1", "zero"})
    if number == 2:
        return any_from(file, {"stale"})
    if number == 3:
        return all_from(file, 0, file.size + 1, {"write:1"})
    if number == 4:
        return source_at(file, 0) == "write:1"
    return tuple(run.source for run in runs(file, 0, file.size))


@pytest.mark.parametrize(
    ("question", "answers_max"),
    [
        (lambda file: all_from(file, 0, file.size, {"write:1"}), 201),
        (lambda file: any_from(file, {"other"}), 1),
        (lambda file: any_from(file, {"stale"}), 201),
        (lambda file: (source_at(file, 0), source_at(file, 7 * BLOCK_BYTES)), 4),
    ],
)
def test_two_hundred_blocks_are_no_product(question: Callable[[Entry], object], answers_max: int) -> None:
    file = entry(*[("write:1", "stale")] * 200)
    assert 1 <= len(list(every_answer(lambda: question(file)))) <= answers_max


def test_a_component_in_two_places_has_one_version() -> None:
    file = entry(("write:1", "stale"), ("write:1", "stale"), components=(5, 5))
    answers = {answer for answer, _ in every_answer(lambda: (source_at(file, 0), source_at(file, BLOCK_BYTES)))}
    assert answers == {("write:1", "write:1"), ("stale", "stale")}


def test_contents_that_are_not_settled_cannot_be_looked_at_by_chance() -> None:
    with pytest.raises(UndecidedContentError, match="bytes 0 to 1 "):
        source_at(entry(("write:1", "stale")), 0)
