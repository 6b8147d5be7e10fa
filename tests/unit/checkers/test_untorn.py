"""Writes with RWF_ATOMIC that are there in part."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postcrash.checkers.untorn import Untorn
from postcrash.model import (
    Entry,
    History,
    Observation,
    Operation,
    Segment,
    Tree,
    UndecidedBytes,
    Verdict,
    Workload,
    every_answer,
    parse_workload,
    simulate,
)
from postcrash.model.judge import Opinion

from ..properties.conftest import tree_of

LONG = "creat a; append a 16384; ---; "
"""The bytes of the set-up's write are w0."""


def opinion(operations: str, found: str, started: int | None = None) -> Opinion:
    """The opinion on a tree when the last operation is running, or the one before which `started` had started."""
    workload = parse_workload(operations.replace("; ", "\n"), "case")
    count = len(workload.operations) if started is None else started
    return Untorn().check(History(workload, count, count - 1), Observation(0, tree_of(found)))


def is_torn(operations: str, found: str) -> bool:
    said = opinion(operations, found)
    assert said.verdict is not Verdict.UNDECIDED, said.message
    assert said.relevant or said.verdict is Verdict.HOLDS
    return said.verdict is Verdict.VIOLATED


ONE = LONG + "awrite a 4096 4096"
TWO = LONG + "awrite a 0 8192"


@pytest.mark.parametrize(
    ("operations", "found"),
    [
        (TWO, "a=w1:4096+w0:12288"),
        (TWO, "a=w0:4096+w1:4096+w0:8192"),
        (TWO, "a=w1:512+w0:15872"),
        (TWO, "a=w0:7680+w1:512+w0:8192"),
        (TWO, "a=w1:4096+zero:4096+w0:8192"),
        (TWO, "a=w1:4096+stale:4096+w0:8192"),
        (TWO.replace("awrite", "awrite-odsync"), "a=w1:4096+w0:12288"),
        (ONE, "a=w0:4096+w1:3584+w0:8704"),
        ("creat a; truncate a 8192; ---; awrite a 0 8192", "a=w0:4096+zero:4096"),
        ("creat a; write a 0 4096; truncate a 8192; ---; awrite a 0 8192", "a=w0:4096+w1:4096"),
        ("creat a; ---; awrite a 0 8192", "a=w0:4096"),
        ("creat a; ---; awrite a 0 8192", "a=zero:4096+w0:4096"),
        ("creat a; append a 8192; creat b; reflink a 0 b 0 8192; ---; awrite a 0 8192", "a=w1:4096+w0:4096 b=w0:8192"),
        (TWO + "; rename a b", "b=w1:4096+w0:12288"),
        ("creat b; append b 8192; ---; creat a; awrite a 0 8192; rename a b", "b=w1:4096+zero:4096"),
        (TWO + "; awrite a 0 8192", "a=w2:4096+w1:4096+w0:8192"),
        (TWO + "; awrite a 0 8192", "a=w0:4096+w1:4096+w0:8192"),
        (TWO + "; dwrite a 0 4096", "a=w2:4096+w1:512+w0:11776"),
        (TWO + "; dwrite a 0 4096", "a=w0:4096+w1:4096+w0:8192"),
        (TWO + "; truncate a 4096", "a=w1:512+w0:15872"),
    ],
)
def test_a_part_of_a_write_is_missing(operations: str, found: str) -> None:
    assert is_torn(operations, found)


@pytest.mark.parametrize(
    ("operations", "found"),
    [
        (TWO, "a=w1:8192+w0:8192"),
        (TWO, "a=w0:16384"),
        (TWO, "a=stale:16384"),
        (TWO, ""),
        ("creat a; truncate a 8192; ---; awrite a 0 8192", "a=zero:8192"),
        ("creat a; ---; awrite a 0 8192", "a=w0:8192"),
        ("creat a; ---; awrite a 0 8192", "a"),
        ("creat a; ---; awrite a 8192 8192", "a=zero:16384"),
        (TWO + "; dwrite a 0 4096", "a=w2:4096+w1:4096+w0:8192"),
        (TWO + "; dwrite a 0 4096", "a=w2:512+w1:7680+w0:8192"),
        (TWO + "; dwrite a 0 4096", "a=w2:512+w0:15872"),
        (TWO + "; awrite a 0 8192", "a=w2:8192+w0:8192"),
        (TWO + "; fallocate a punch-hole 0 4096", "a=zero:4096+w1:4096+w0:8192"),
        (TWO + "; fallocate a punch-hole 0 4096", "a=w1:8192+w0:8192"),
        (TWO + "; truncate a 4096", "a=w1:4096"),
        (TWO + "; truncate a 5000", "a=w1:5000+zero:3192+w0:8192"),
        (TWO + "; fallocate a collapse-range 0 4096", "a=w1-4096:4096+w0-4096:8192"),
        (TWO + "; creat b; reflink a 0 b 0 8192", "a=w1:8192+w0:8192 b=w1:4096"),
    ],
)
def test_a_write_that_is_whole_or_changed_later_is_not_torn(operations: str, found: str) -> None:
    assert not is_torn(operations, found)


def test_other_writes_may_be_torn() -> None:
    for word in ("dwrite", "write", "write-osync"):
        said = opinion(f"{LONG}{word} a 0 8192", "a=w1:4096+w0:12288")
        assert (said.verdict, said.relevant) == (Verdict.HOLDS, False)


def test_the_premise_is_that_a_byte_of_the_write_is_there() -> None:
    assert opinion(TWO, "a=w1:8192+w0:8192").relevant
    assert not opinion(TWO, "a=w0:16384").relevant
    assert not opinion(TWO, "").relevant
    assert not opinion("creat a; awrite a 0 8192; ---; fsync a", "a=w0:8192").relevant, "the set-up is durable"


def test_a_later_operation_is_an_excuse_only_once_it_has_started() -> None:
    operations, found = f"{TWO}; dwrite a 0 4096", "a=w2:4096+w1:4096+w0:8192"
    assert opinion(operations, found).verdict is Verdict.HOLDS
    assert opinion(operations, found, started=3).verdict is Verdict.VIOLATED


def test_a_name_of_two_files_with_the_same_bytes_is_not_looked_at() -> None:
    shared = "creat a; append a 8192; creat b; ---; awrite a 0 8192; reflink a 0 b 0 8192; rename b a"
    assert opinion(shared, "a=w1:4096").verdict is Verdict.HOLDS
    assert opinion(shared.replace("reflink a 0 b 0 8192", "fsync a"), "a=w1:4096").verdict is Verdict.VIOLATED


def test_what_cannot_be_read_is_undecided() -> None:
    assert opinion(TWO, "a=w1:4096+e5:4096+w0:8192").verdict is Verdict.UNDECIDED
    assert opinion(TWO, "a=w1:512+w0:3584+e5:4096+w0:8192").verdict is Verdict.UNDECIDED


def test_each_version_of_undecided_bytes_counts() -> None:
    """Two blocks, each of which is old or new: two of the four contents are torn."""
    workload = parse_workload(TWO.replace("; ", "\n"), "case")
    blocks = tuple(
        UndecidedBytes(
            start,
            start + 4096,
            component,
            tuple((Segment(start, start + 4096, source),) for source in ("write:0", "write:1")),
        )
        for component, start in enumerate((0, 4096))
    )
    file = Entry("a", "file", inode=2, size=16384, segments=(Segment(8192, 16384, "write:0"),), choices=blocks)
    tree = Tree([Entry(".", "dir", inode=1), file])
    answers = list(every_answer(lambda: Untorn().examine(History(workload, 3, 2), Observation(0, tree))))
    torn = [versions for answer, versions in answers if answer.verdict is Verdict.VIOLATED]
    assert torn == [{0: 1, 1: 0}, {0: 0, 1: 1}] or torn == [{0: 0, 1: 1}, {0: 1, 1: 0}]
    assert len(answers) == 4


def test_the_message_says_which_write_and_what_is_found() -> None:
    said = opinion(TWO, "a=w1:4096+w0:12288")
    assert said.path == "a"
    assert said.message == (
        "awrite a 0 8192 (operation 3) is there in part: a is 16384 bytes long; of its bytes, "
        "0 to 4096 are those of awrite a 0 8192, 4096 to 8192 are those of append a 16384"
    )


LINES = [
    *(f"awrite a {start}K {length}K" for start, length in ((0, 4), (4, 4), (8, 4), (0, 8), (8, 8), (0, 16), (16, 16))),
    *("write a 1000 6000", "write a 8K 100", "dwrite a 4K 8K", "append a 5000", "truncate a 0", "truncate a 5000"),
    *("truncate a 12K", "truncate a 40K", "fallocate a punch-hole 2K 8K", "fallocate a zero-range 4K 16K"),
]


def left_by(workload: Workload, kept: tuple[Operation, ...]) -> Opinion:
    """The opinion on what is there if only these of the recorded operations are, when all had started."""
    count = len(workload.operations)
    tree = Tree(simulate(Workload("kept", workload.setup, kept))[-1].values())
    return Untorn().check(History(workload, count, count - 1), Observation(0, tree))


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Writes over each other in one file, the last of them with RWF_ATOMIC."""
    lines = draw(st.lists(st.sampled_from(LINES), max_size=6))
    last = draw(st.sampled_from([line for line in LINES if line.startswith("awrite")]))
    return parse_workload("\n".join(["creat a", "append a 16K", "---", *lines, last]), "case")


@settings(max_examples=300, derandomize=True, deadline=None)
@given(workload=workloads(), data=st.data())
def test_operations_may_be_lost_and_others_cut_short(workload: Workload, data: st.DataObject) -> None:
    kept: list[Operation] = []
    for operation in workload.ops:
        if data.draw(st.booleans(), f"keep `{operation}`"):
            length = operation.length or 0
            if operation.form.data and not operation.form.untorn:
                length = min(length, data.draw(st.sampled_from([length, 1, 512, 4096])))
            kept.append(replace(operation, length=length))
    assert left_by(workload, tuple(kept)).verdict is Verdict.HOLDS


@settings(max_examples=300, derandomize=True, deadline=None)
@given(workload=workloads(), data=st.data())
def test_the_last_write_is_not_cut_short_unseen(workload: Workload, data: st.DataObject) -> None:
    kept = [operation for operation in workload.ops[:-1] if data.draw(st.booleans(), f"keep `{operation}`")]
    last = workload.ops[-1]
    assert last.offset is not None and last.length is not None
    half = replace(last, word="dwrite", length=last.length // 2)
    behind = replace(half, offset=last.offset + last.length // 2)
    torn = data.draw(st.sampled_from([half, behind]))
    assert left_by(workload, (*kept, torn)).verdict is Verdict.VIOLATED
    assert left_by(workload, (*kept, last)).verdict is Verdict.HOLDS
