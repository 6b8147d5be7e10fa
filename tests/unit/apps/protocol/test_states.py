"""A folder after a crash has of each slot the last durable change that was made by then, and nothing of later ones."""

import pytest

from postcrash.apps.protocol.states import Slots, State
from postcrash.apps.protocol.trace import BlockSlot, Change, CutSlot, Inode, NameSlot, Protocol, SizeSlot, Slot

ROOT, FOLDER, FILE, OTHER = 1, 2, 3, 4
INODES = {
    ROOT: Inode("dir", 0o755, ""),
    FOLDER: Inode("dir", 0o700, ""),
    FILE: Inode("file", 0o644, ""),
    OTHER: Inode("symlink", 0o777, "a"),
}
BASE: dict[Slot, int | bytes] = {NameSlot(ROOT, "a"): FILE, SizeSlot(FILE): 5, BlockSlot(FILE, 0): b"hello"}


def slots(*changes: tuple[Slot, int | bytes], base: dict[Slot, int | bytes] = BASE) -> Slots:
    made = tuple(Change(index, index, slot, value) for index, (slot, value) in enumerate(changes))
    return Slots(Protocol(ROOT, base, INODES, (), made))


def state(known: Slots, *durable: int, end: int | None = None) -> State:
    """After all changes were made, unless `end` says after how many."""
    return State(known, len(known.protocol.changes) if end is None else end, frozenset(durable))


def test_the_last_durable_change_of_a_slot_wins() -> None:
    name = NameSlot(ROOT, "a")
    known = slots((name, OTHER), (name, 0), (name, FOLDER))
    found = [[*state(known, *durable).tree] for durable in ((), (0,), (0, 1), (0, 2), (1, 2), (0, 1, 2))]
    assert found == [[".", "a"], [".", "a"], ["."], [".", "a"], [".", "a"], [".", "a"]]
    assert [state(known, *durable).tree["a"].type for durable in ((), (0,), (0, 2))] == ["file", "symlink", "dir"]


def test_a_change_that_is_not_made_yet_wins_nothing() -> None:
    known = slots((SizeSlot(FILE), 2), (SizeSlot(FILE), 4))
    assert [state(known, 0, 1, end=end).tree["a"].size for end in (0, 1, 2)] == [5, 2, 4]
    assert state(known, 0, 1, end=0).winner(SizeSlot(FILE)) is None
    assert state(known, 1, end=1).winner(SizeSlot(FILE)) is None


def test_what_nothing_has_set_is_empty() -> None:
    known = slots(base={})
    assert known.value(SizeSlot(FILE), None) == known.value(NameSlot(ROOT, "a"), None) == 0
    assert known.value(BlockSlot(FILE, 0), None) == b""
    assert [*state(known).tree] == ["."]
    assert known.of(SizeSlot(FILE)) == []


@pytest.mark.parametrize(
    ("size", "expected"), [(0, b""), (3, b"hel"), (5, b"hello"), (8, b"hello\0\0\0"), (4097, b"hello" + bytes(4092))]
)
def test_a_file_is_as_long_as_its_size_says_whatever_its_blocks_hold(size: int, expected: bytes) -> None:
    known = slots((SizeSlot(FILE), size))
    assert state(known, 0).content(FILE) == expected
    assert state(known, 0).tree["a"].size == size


def test_a_block_behind_a_hole_stands_in_its_place() -> None:
    known = slots((BlockSlot(FILE, 2), b"x" * 4096), (SizeSlot(FILE), 8193))
    assert state(known, 0, 1).content(FILE) == b"hello" + bytes(8187) + b"x"
    assert state(known, 1).content(FILE) == b"hello" + bytes(8188)
    assert state(known, 0).content(FILE) == b"hello"


@pytest.mark.parametrize(
    ("size", "expected"), [(0, b""), (4095, b"a"), (4096, b"a"), (4097, b"ab"), (8192, b"ab"), (12288, b"abc")]
)
def test_a_durable_cut_empties_the_blocks_behind_its_end(size: int, expected: bytes) -> None:
    """The file has three blocks, is cut off and made as long as it was. The block where it ends has its own change."""
    base: dict[Slot, int | bytes] = {NameSlot(ROOT, "a"): FILE, SizeSlot(FILE): 12288}
    base |= {BlockSlot(FILE, block): letter * 4096 for block, letter in enumerate((b"a", b"b", b"c"))}
    known = slots((CutSlot(FILE, 0), size), (SizeSlot(FILE), size), (SizeSlot(FILE), 12288), base=base)
    content = state(known, 0, 1, 2).content(FILE)
    assert content == b"".join(bytes([byte]) * 4096 for byte in expected).ljust(12288, b"\0")
    assert state(known, 1, 2).content(FILE) == b"a" * 4096 + b"b" * 4096 + b"c" * 4096


def test_a_cut_is_of_one_file_and_comes_in_its_turn() -> None:
    block = BlockSlot(FILE, 0)
    known = slots((block, b"one"), (CutSlot(FILE, 1), 0), (block, b"two"), (CutSlot(OTHER, 3), 0))
    assert [change.index for change in known.of(block)] == [0, 1, 2]
    contents = [state(known, *durable).content(FILE) for durable in ((0,), (0, 1), (0, 1, 2), (0, 2), (0, 3))]
    assert contents == [b"one\0\0", bytes(5), b"two\0\0", b"two\0\0", b"one\0\0"]


def test_a_folder_has_what_is_in_it_and_its_inode_what_it_is() -> None:
    known = slots((NameSlot(ROOT, "d"), FOLDER), (NameSlot(FOLDER, "b"), FILE), (NameSlot(FOLDER, "s"), OTHER))
    tree = state(known, 0, 1, 2).tree
    assert [*tree] == [".", "a", "d", "d/b", "d/s"]
    assert (tree["d"].type, tree["d"].mode, tree["d/s"].target) == ("dir", 0o700, "a")
    assert tree["a"].inode == tree["d/b"].inode == FILE
    assert [*state(known, 1, 2).tree] == [".", "a"]


def test_a_folder_within_itself_is_not_followed_without_end() -> None:
    """Names are durable one by one, so that of several renames a crash may leave a circle."""
    inodes = {**INODES, OTHER: Inode("dir", 0o755, "")}
    made = [(NameSlot(ROOT, "d"), FOLDER), (NameSlot(FOLDER, "e"), OTHER), (NameSlot(OTHER, "d"), FOLDER)]
    changes = tuple(Change(index, index, slot, value) for index, (slot, value) in enumerate(made))
    known = Slots(Protocol(ROOT, BASE, inodes, (), changes))
    assert [*state(known, 0, 1, 2).tree] == [".", "a", "d", "d/e"]


def test_only_what_can_be_seen_is_seen() -> None:
    known = slots((NameSlot(FOLDER, "b"), FILE), (BlockSlot(FILE, 1), b"x"), (SizeSlot(FILE), 4097))
    assert state(known, 0, 1).seen == [NameSlot(ROOT, "a"), SizeSlot(FILE), BlockSlot(FILE, 0)]
    assert state(known, 1, 2).seen == [NameSlot(ROOT, "a"), SizeSlot(FILE), BlockSlot(FILE, 0), BlockSlot(FILE, 1)]
    full = slots((BlockSlot(FILE, 1), b"x"), (SizeSlot(FILE), 4096))
    assert state(full, 0, 1).seen == [NameSlot(ROOT, "a"), SizeSlot(FILE), BlockSlot(FILE, 0)]
    gone = slots((NameSlot(ROOT, "a"), 0))
    assert state(gone, 0).seen == [NameSlot(ROOT, "a")]


def test_lost_changes_are_those_that_no_later_durable_one_contains() -> None:
    name, size = NameSlot(ROOT, "a"), SizeSlot(FILE)
    known = slots((name, OTHER), (size, 7), (name, 0), (size, 9))
    expected = {(): [0, 1, 2, 3], (1,): [0, 2, 3], (2,): [1, 3], (1, 3): [0, 2], (0, 3): [2]}
    for durable, lost in expected.items():
        assert [change.index for change in state(known, *durable).lost] == lost
    assert [change.index for change in state(known, 3, end=2).lost] == [0, 1]
    assert state(known, 0, 1, 2, 3).lost == ()


def test_equal_states_of_one_trace_give_equal_folders() -> None:
    known = slots((BlockSlot(FILE, 0), b"HELLO"), (BlockSlot(FILE, 1), b"beyond the end"))
    assert state(known).folder == state(known, 1).folder
    assert state(known).folder != state(known, 0).folder
