import os
import subprocess
import sys
from itertools import islice, pairwise
from math import fsum

from hypothesis import given
from hypothesis import strategies as st

from postcrash.corpus import of_fstests
from postcrash.model import parse_workload
from postcrash.workloads import GRAMMARS, SETUPS, Call, WorkloadSpace
from postcrash.workloads.interactions import cover, interactions, interactions_of, weights

POINTS = frozenset(point.word for point in GRAMMARS["full"].points)


def test_a_call_interacts_with_its_set_up_and_with_what_makes_it_durable() -> None:
    calls = (Call("rename", ("A/foo", "bar")), Call("fsync", ("A",)))
    assert interactions(calls, "synced", POINTS) == {
        ("synced",),
        ("rename",),
        ("rename", "synced"),
        ("rename", "across", ""),
        ("fsync parent",),
        ("fsync parent", "synced"),
        ("rename", "fsync parent"),
        ("rename", "fsync parent", "synced"),
    }


def test_a_workload_that_no_grammar_made_has_the_same_interactions() -> None:
    workload = parse_workload("mkdir A\ncreat A/foo\n---\nrename A/foo bar\nfsync A\n", "own")
    calls = (Call("rename", ("A/foo", "bar")), Call("fsync", ("A",)))
    assert interactions_of(workload) == interactions(calls, "synced", POINTS)


def test_a_long_workload_has_the_interactions_of_its_first_operations() -> None:
    long = parse_workload("".join(f"creat f{number}\n" for number in range(2000)) + "mkdir A\n", "long")
    assert ("creat",) in interactions_of(long)
    assert ("mkdir",) not in interactions_of(long)


def test_calls_interact_with_each_other() -> None:
    calls = (Call("creat", ("foo",)), Call("sync"), Call("link", ("foo", "bar")), Call("fsync", ("bar",)))
    found = interactions(calls, "new", POINTS)
    assert ("creat", "first other", "link") in found
    assert {("creat", "sync all"), ("creat", "fsync other"), ("link", "fsync second")} <= found
    assert ("link", "sync all") not in found


def test_the_mode_is_part_of_the_call_and_the_range_is_not() -> None:
    calls = (Call("falloc", ("foo",), "punch-hole", "append"), Call("fsync", ("foo",)))
    found = interactions(calls, "new", POINTS)
    assert ("falloc punch-hole", "root", "append") in found
    assert ("falloc punch-hole", "append", "fsync") in found
    assert ("falloc punch-hole", "fsync first") in found


PARTS = st.frozensets(st.sampled_from([(letter,) for letter in "abcdef"]))


@given(st.lists(PARTS, max_size=12), st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 10)))
def test_each_next_workload_has_the_largest_gain(
    workloads: list[frozenset[tuple[str]]], weigh: dict[str, float]
) -> None:
    weight: dict[tuple[str, ...], float] = {(letter,): each for letter, each in weigh.items()}
    left, met = list(range(len(workloads))), dict[tuple[str, ...], int]()

    def gain(number: int) -> float:
        parts = workloads[number]
        return fsum(weight.get(part, 1.0) * 0.5 ** met.get(part, 0) for part in parts) / max(len(parts), 1)

    for number in cover(dict(enumerate(workloads)), weight):
        assert gain(number) >= max(map(gain, left)) - 1e-9
        left.remove(number)
        for part in workloads[number]:
            met[part] = met.get(part, 0) + 1
    assert left == []


def test_each_call_comes_early_with_what_is_learned() -> None:
    """The weights must not push a call behind hundreds of workloads."""
    space = WorkloadSpace(GRAMMARS["full"], 1, tuple(SETUPS))
    of = {n: interactions(space.calls(n), space.setups[n % len(space.setups)], POINTS) for n in range(len(space))}
    first = list(islice(cover(of, weights()["walk"]), 200))
    words = {(call.word, call.mode) for call in GRAMMARS["full"].calls()}
    assert {(call.word, call.mode) for number in first for call in space.calls(number)[:1]} == words


def test_weights_are_of_interactions_that_there_are() -> None:
    space, pairs = WorkloadSpace(GRAMMARS["full"], 1, tuple(SETUPS)), WorkloadSpace(GRAMMARS["ace"], 2)
    known = set[tuple[str, ...]]()
    for each in (space, pairs):
        numbers = range(0, len(each), 1 if each is space else 97)
        known |= {
            part for n in numbers for part in interactions(each.calls(n), each.setups[n % len(each.setups)], POINTS)
        }
    for workload in of_fstests():
        known |= interactions_of(workload)
    assert set(weights()) == {"walk", "fsck", "crash"}
    assert set(weights()["walk"]) | set(weights()["fsck"]) | set(weights()["crash"]) <= known


def test_the_order_is_the_same_each_time() -> None:
    of = {n: frozenset([(str(n % 3),), (str(n % 5), "x")]) for n in range(60)}
    first, second = (list(cover(of, {("1",): 4.0})) for _ in range(2))
    assert first == second
    assert first[0] % 3 == 1
    assert any(a > b for a, b in pairwise(first))


PRINT_ORDER = """
from postcrash.harness.hunting.default_hunt import DefaultSpace
from postcrash.harness.hunting.probes import Probe
from postcrash.targets import target_named
space = DefaultSpace(target_named("ext4-current"), tuple(Probe))
print(*(f"{probe.value} {workload.name}" for probe, workload in space.in_order()), sep="\\n")
"""


def test_all_processes_have_the_same_order() -> None:
    """Shards are processes of their own. The order of a set of texts differs between them."""
    orders = {
        subprocess.run(
            [sys.executable, "-c", PRINT_ORDER],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(orders) == 1
