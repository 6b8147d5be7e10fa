"""Workloads are reduced as far as possible, and in the same way each time."""

from collections.abc import Callable
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postcrash.harness.findings.reduction import SIMPLER_WORDS, minimal, possible, simplifications
from postcrash.model import FORMS, Workload, parse_workload, simulate

NEEDLESS = """\
mkdir dir
creat dir/old
append dir/old 8192
creat other
---
creat dir/new
fsync other
write-osync other 100 20
setxattr other user.x hello
write dir/new 0 20000
creat third
link third fourth
exchange third other
rename dir/new dir/old
unlink fourth
"""


def workload(text: str) -> Workload:
    return parse_workload(text, "needless")


def replaces(candidate: Workload) -> bool:
    """A file with bytes of its own is renamed over a file that has bytes, as in P5."""
    trees = simulate(candidate)
    for operation, before in zip(candidate.ops, trees[len(candidate.setup) :], strict=False):
        if operation.word == "rename" and operation.to in before:
            return all(before[path].type == "file" and before[path].size for path in (operation.path, operation.to))
    return False


def test_the_known_minimum_is_reached() -> None:
    found = minimal(workload(NEEDLESS), replaces)
    assert found.to_text() == "creat a\nappend a 1\n---\ncreat b\nappend b 1\nrename b a\n"


def orphan_is_written(candidate: Workload) -> bool:
    """A file without a name is written to."""
    trees = simulate(candidate)
    return any(
        operation.word in ("write", "append") and before[operation.path].nlink == 0
        for operation, before in zip(candidate.operations, trees, strict=False)
    )


def test_handles_stay_where_they_are_needed_only() -> None:
    setup = "mkdir d\ncreat d/x\ncreat d/y\nopen d/y\n"
    text = f"{setup}---\nopen d/x\nappend @d/y 9\nunlink d/x\nwrite @d/x 8 9\nclose @d/x\n"
    assert minimal(workload(text), orphan_is_written).to_text() == "creat a\n---\nopen a\nunlink a\nappend @a 1\n"
    named = minimal(workload(text), lambda each: any(op.word in ("write", "append") for op in each.operations))
    assert named.to_text() == "creat a\n---\nappend a 1\n"


def test_no_subset_of_its_operations_fails() -> None:
    found = minimal(workload(NEEDLESS), replaces)
    count = len(found.operations)
    for size in range(1, count):
        for dropped in combinations(range(count), size):
            rest = possible(found, [None if i in dropped else op for i, op in enumerate(found.operations)])
            assert rest is None or not replaces(rest)
    assert not any(map(replaces, simplifications(found)))


def noting(tried: list[Workload]) -> Callable[[Workload], bool]:
    """Asks `replaces` and notes what it is asked about."""

    def asked(candidate: Workload) -> bool:
        tried.append(candidate)
        return replaces(candidate)

    return asked


def test_the_same_workloads_are_tried_in_the_same_order_and_once() -> None:
    runs = []
    for _ in range(2):
        candidates: list[Workload] = []
        minimal(workload(NEEDLESS), noting(candidates))
        tried = [candidate.to_text() for candidate in candidates]
        assert len(tried) == len(set(tried))
        runs.append(tried)
    assert runs[0] == runs[1]


def test_every_workload_that_is_tried_can_succeed() -> None:
    tried: list[Workload] = []
    minimal(workload(NEEDLESS), noting(tried))
    assert len(tried) > 20
    for candidate in tried:
        simulate(candidate)


def test_a_judge_that_always_fails_leaves_one_operation() -> None:
    assert minimal(workload(NEEDLESS), lambda _: True).to_text() == "creat a\n"


def test_what_cannot_be_made_smaller_stays() -> None:
    only = workload(NEEDLESS)
    assert minimal(only, lambda candidate: candidate == only) == only


@settings(max_examples=60)
@given(st.sets(st.integers(0, 11), min_size=1, max_size=5))
def test_any_set_of_needed_operations_is_found(needed: set[int]) -> None:
    lines = [f"creat {chr(ord('a') + number)}" for number in range(12)]
    wanted = {lines[number] for number in needed}
    found = minimal(workload("\n".join(lines)), lambda candidate: wanted <= set(candidate.to_text().splitlines()))
    assert set(found.to_text().splitlines()) == wanted


def test_what_depends_on_an_operation_goes_with_it() -> None:
    chain = workload("creat a\n---\nappend a 10\nrename a b\nappend b 5\ncreat c\n")
    rest = possible(chain, [None, *chain.operations[1:]])
    assert rest is not None
    assert rest.to_text() == "creat c\n"
    assert possible(chain, [*chain.setup, None, None, None, None]) is None


def test_tags_of_what_is_left_are_those_of_a_workload_read_from_a_file() -> None:
    written = workload("creat a\nappend a 1\nappend a 2\n")
    rest = possible(written, [written.operations[0], None, written.operations[2]])
    assert rest == workload("creat a\nappend a 2\n")


@pytest.mark.parametrize(
    ("text", "simpler"),
    [
        ("mkdir d\ncreat d/a\n", "creat a\n"),
        ("creat a\nwrite a 0 10\n", "creat a\nappend a 10\n"),
        ("creat a\ndwrite a 0 1024\n", "creat a\nwrite a 0 1024\n"),
        ("creat a\ndwrite a 0 1024\n", "creat a\ndwrite a 0 512\n"),
        ("creat a\nawrite-odsync a 0 8192\n", "creat a\nawrite a 0 8192\n"),
        ("creat a\nawrite a 4096 4096\n", "creat a\ndwrite a 4096 4096\n"),
        ("creat a\nawrite a 8192 8192\n", "creat a\nawrite a 8192 4096\n"),
        ("creat a\nwrite a 9000 10\n", "creat a\nwrite a 4096 10\n"),
        ("creat a\nappend a 9000\n", "creat a\nappend a 1\n"),
        ("creat a\nwriteback a 0 10\n", "creat a\nwriteback a\n"),
        ("creat a\nfallocate a zero-range 0 10\n", "creat a\nfallocate a none 0 10\n"),
        ("creat a\nsetxattr a user.x long\n", 'creat a\nsetxattr a user.x ""\n'),
        ("creat a\ncreat b\nexchange a b\n", "creat a\ncreat b\nrename a b\n"),
        ("mknod a block\n", "mknod a fifo\n"),
        (
            "creat a\nwrite a 0 8192\ncreat b\nreflink a 0 b 4096 4096\n",
            "creat a\nwrite a 0 8192\ncreat b\nreflink a 0 b 0 4096\n",
        ),
        ("creat long\nlink long other\n", "creat a\nlink a b\n"),
    ],
)
def test_operations_are_made_simpler(text: str, simpler: str) -> None:
    assert simpler in [candidate.to_text() for candidate in simplifications(workload(text))]


def test_words_are_simpler_by_the_language() -> None:
    assert set(SIMPLER_WORDS) | set(SIMPLER_WORDS.values()) <= set(FORMS)
    for word in SIMPLER_WORDS:
        seen = {word}
        while (word := SIMPLER_WORDS.get(word, "")) != "":
            assert word not in seen
            seen.add(word)


@pytest.mark.parametrize(
    ("text", "shorter"),
    [
        ("creat a\ncommit\nsync\ncheckpoint\n", "creat a\n"),
        ("creat a\ncommit\nsync\n", "creat a\n"),
        ("creat a\nsync\ncheckpoint\n", "creat a\nsync\n"),
        ("creat a\nsync\ncommit\nsync\ncheckpoint\n", "creat a\nsync\ncommit\nsync\n"),
        ("commit\nsync\ncheckpoint\n", "commit\nsync\n"),
        ("creat a\ncheckpoint\n", "creat a\ncheckpoint\n"),
    ],
)
def test_the_tail_that_was_added_is_taken_off(text: str, shorter: str) -> None:
    assert workload(text).without_tail() == workload(shorter)
    whole = workload(text)
    assert whole.without_tail().with_tail(checkpoint=whole.ends_in_checkpoint) == whole


def test_sleep_is_made_shorter() -> None:
    found = minimal(
        workload("creat a\nsleep 3000\n"), lambda candidate: any(op.word == "sleep" for op in candidate.ops)
    )
    assert found.to_text() == "sleep 1\n"
