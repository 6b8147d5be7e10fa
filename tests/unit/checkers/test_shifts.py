"""Where a later write shows if the shift before it is lost: compared with a disk of blocks that is played."""

import random

import pytest

from postcrash.checkers.foreign_bytes import ForeignBytes
from postcrash.checkers.shifts import displaced
from postcrash.model import Entry, History, Observation, Segment, Tree, Verdict, parse_workload
from postcrash.properties.family import family

BLOCK = 4096


def found(operations: str) -> frozenset[Segment]:
    workload = parse_workload(operations, "w")
    trees = History(workload, len(workload.operations), len(workload.operations)).trees
    return displaced(workload, [tree["a"].segments for tree in trees if "a" in tree])


def test_without_a_shift_or_a_later_write_nothing_is_displaced() -> None:
    assert found("creat a\nwrite a 0 8192\nwrite a 0 512\n") == frozenset()
    assert found("creat a\nwrite a 0 8192\nwrite a 0 512\nfallocate a collapse-range 0 4096\n") == frozenset()


def test_a_write_behind_a_shift_is_where_its_block_was() -> None:
    late = found("creat a\nwrite a 0 8192\nfallocate a collapse-range 0 4096\nwrite a 0 512\n")
    assert late == {Segment(4096, 4608, "write:1+4096")}


def test_of_two_shifts_the_later_one_or_both_may_be_lost() -> None:
    shifts = "fallocate a insert-range 0 4096\nfallocate a insert-range 0 8192\n"
    late = found(f"creat a\nwrite a 0 8192\n{shifts}write a 12288 512\n")
    assert late == {Segment(4096, 4608, "write:1-8192"), Segment(0, 512, "write:1-12288")}


@pytest.mark.parametrize("seed", range(200))
def test_what_a_disk_of_blocks_shows_is_displaced(seed: int) -> None:
    """One shift and then writes of whole blocks in place. A crash keeps the blocks' old order, and some writes."""
    choice = random.Random(seed)
    blocks = choice.randrange(2, 7)
    place = choice.randrange(blocks - 1)
    count = choice.randrange(1, blocks - place)
    mode = choice.choice(("collapse-range", "insert-range"))
    lines = ["creat a", f"write a 0 {blocks * BLOCK}", f"fallocate a {mode} {place * BLOCK} {count * BLOCK}"]
    # By the new place of each block: its old one. A hole has none.
    olds: list[int | None] = [*range(blocks)]
    olds[place : place + (count if mode == "collapse-range" else 0)] = [None] * count * (mode == "insert-range")
    expected: dict[int, set[str]] = {}
    for tag in range(1, choice.randrange(2, 4)):
        at = choice.randrange(len(olds))
        lines.append(f"write a {at * BLOCK} {BLOCK}")
        old = olds[at]
        if old is not None and old != at:  # otherwise the block stands where it stood, or there was none
            distance = (old - at) * BLOCK
            expected.setdefault(old, set()).add(f"write:{tag}{distance:+}")
    late = found("".join(f"{line}\n" for line in lines))
    shown = {(each.start // BLOCK, each.source) for each in late}
    assert all(each.end - each.start == BLOCK for each in late)
    assert shown == {(old, source) for old, sources in expected.items() for source in sources}, lines


def test_foreign_bytes_knows_them() -> None:
    def objection(operations: str) -> bool:
        (workload,) = family(("w", "creat a; append a 8192", operations))
        count = len(workload.operations)
        segments = (Segment(0, 4096, "write:0"), Segment(4096, 4608, "write:1+4096"), Segment(4608, 8192, "write:0"))
        tree = Tree([Entry(".", "dir"), Entry("a", "file", nlink=1, size=8192, segments=segments)])
        return ForeignBytes().examine(History(workload, count, count), Observation(0, tree)).verdict is Verdict.VIOLATED

    assert not objection("fallocate a collapse-range 0 4096; write a 0 512")
    assert objection("write a 0 512; fallocate a punch-hole 4096 4096")
