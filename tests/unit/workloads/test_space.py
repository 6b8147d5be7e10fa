"""How many workloads there are, and that each is numbered, differs from the others and can run."""

import random
from pathlib import Path

import pytest

from postcrash.model import FORMS, simulate
from postcrash.workloads import GRAMMARS, SETUPS, Grammar, WorkloadSpace

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
FULL = {1: 1508, 2: 3_022_020}
ACE = {1: 328, 2: 241_720, 3: 7_478_858}
SPACES = [WorkloadSpace(grammar, length) for grammar in GRAMMARS.values() for length in (1, 2)]


@pytest.mark.parametrize(("length", "count"), ACE.items())
def test_ace_has_as_many_as_its_paper_says(length: int, count: int) -> None:
    assert len(WorkloadSpace(GRAMMARS["ace"], length)) == count


@pytest.mark.parametrize(("length", "count"), FULL.items())
def test_full_has_as_many_as_its_documentation_says(length: int, count: int) -> None:
    assert len(WorkloadSpace(GRAMMARS["full"], length)) == count
    assert f" {count:,}; " in (ROOT / "docs/hunting.md").read_text(encoding="utf-8")


def numbers(space: WorkloadSpace, count: int = 1500) -> list[int]:
    return random.Random(1).sample(range(len(space)), min(count, len(space)))


@pytest.mark.parametrize("space", SPACES, ids=lambda space: f"{space.grammar.name}-{space.length}")
def test_every_workload_can_run_and_ends_durably(space: WorkloadSpace) -> None:
    for number in numbers(space):
        workload = space[number]
        simulate(workload)
        assert workload.operations[-1].form.persistence, workload.to_text()
        assert not workload.setup


@pytest.mark.parametrize("grammar", GRAMMARS.values(), ids=lambda grammar: grammar.name)
@pytest.mark.parametrize("length", [1, 2])
def test_every_workload_comes_with_each_set_up(grammar: Grammar, length: int) -> None:
    alone, space = WorkloadSpace(grammar, length), WorkloadSpace(grammar, length, tuple(SETUPS))
    assert len(space) == 3 * len(alone)
    for number in numbers(alone, 400):
        new, synced, logged = (space[3 * number + i] for i in range(3))
        assert new == alone[number]
        simulate(synced)
        simulate(logged)
        assert len({workload.name for workload in (new, synced, logged)}) == 3
        if synced.setup:
            assert sorted(map(str, synced.operations)) == sorted(map(str, new.operations))
            assert synced.setup == logged.setup
        else:
            assert new.ops == synced.ops == logged.ops


def test_three_operations_can_run() -> None:
    space = WorkloadSpace(GRAMMARS["ace"], 3)
    for number in [0, len(space) - 1, *numbers(space, 500)]:
        simulate(space[number])


@pytest.mark.parametrize("space", SPACES, ids=lambda space: f"{space.grammar.name}-{space.length}")
def test_numbers_give_different_calls_and_always_the_same(space: WorkloadSpace) -> None:
    drawn = numbers(space)
    calls = {number: space.calls(number) for number in drawn}
    again = WorkloadSpace(space.grammar, space.length)
    assert all(again.calls(number) == calls[number] for number in drawn[:100])
    assert len({space[number].name for number in drawn}) == len(drawn)
    # Several numbers stand for the same calls only after calls that make themselves durable.
    plain = [found for found in calls.values() if not {call.word for call in found} & set(space.grammar.durable)]
    assert len(set(plain)) == len(plain)


def test_iterating_gives_what_numbers_give() -> None:
    space = WorkloadSpace(GRAMMARS["ace"], 1)
    assert list(space) == [space[number] for number in range(len(space))]


@pytest.mark.parametrize("number", [-1, 328])
def test_there_is_no_other_number(number: int) -> None:
    with pytest.raises(IndexError, match=f"{number}: there are 328 workloads"):
        WorkloadSpace(GRAMMARS["ace"], 1)[number]


@pytest.mark.parametrize("length", [0, 4])
def test_lengths_are_bounded(length: int) -> None:
    with pytest.raises(ValueError, match=f"{length} operations: there are workloads of 1 to 3"):
        WorkloadSpace(GRAMMARS["ace"], length)


def test_the_full_grammar_has_every_operation_of_the_language() -> None:
    # The nearest relatives of append, dedupe and tmpfile are there. drop-caches would double what
    # follows each call, and sleep would cost its time. Nearly all file systems lack awrite.
    space = WorkloadSpace(GRAMMARS["full"], 2)
    words = {operation.word for number in numbers(space, 4000) for operation in space[number].operations}
    left_out = {"append", "dedupe", "tmpfile", "drop-caches", "sleep", "awrite", "awrite-odsync"}
    assert words == set(FORMS) - left_out


def test_ace_is_part_of_full() -> None:
    assert set(GRAMMARS["ace"].calls()) <= set(GRAMMARS["full"].calls())
