"""What was made durable of an inode, whatever name it is found under: the size, each byte, attributes, the target."""

import pytest

from postcrash.checkers.bindings import Bindings
from postcrash.checkers.obligations import Attribute, Contents, FileContent, LinkTarget, SourceRun
from postcrash.model import Entry, History, Segment, parse_workload

from .test_durability import entry_of


def promised(operations: str, *, is_last_running: bool = False) -> Contents:
    """What was promised when all operations had returned, unless the last one is running."""
    workload = parse_workload(operations.replace("; ", "\n"), "case")
    count = len(workload.operations)
    return Contents(Bindings(History(workload, count, count - is_last_running)))


def broken(operations: str, found: str, *, is_last_running: bool = False) -> tuple[int, str] | None:
    entry = entry_of(found)
    return promised(operations, is_last_running=is_last_running).broken(entry.path, entry)


# Which promise is broken


def test_of_several_broken_promises_the_first_is_told() -> None:
    twice = "creat a; append a 10; fsync a; append a 10; fsync a"
    assert broken(twice, "a=w0:5") == (
        3,
        "fsync a (operation 3) had returned, but a is 5 bytes long; it promised 10 to 20",
    )
    assert broken(twice, "a=w0:10") == (5, "fsync a (operation 5) had returned, but a is 10 bytes long; it promised 20")
    assert broken(twice, "a=w0:10+w1:10") is None
    assert broken(twice, "a=w0:10", is_last_running=True) is None


def test_the_set_up_promises_everything_that_it_made() -> None:
    assert broken("creat a; append a 10; ---; creat b", "a=zero:10") == (
        2,
        "the set-up was durable, but a is 10 bytes long; of its bytes, 0 to 10 are zero; "
        "it promised bytes 0 to 10 that are those of append a 10",
    )


@pytest.mark.parametrize(
    "operations",
    [
        "creat a; append a 10",
        "creat a; append a 10; writeback a; commit; checkpoint",
        "creat a; append a 10; creat b; fsync b; fsync .",
        "creat a; open a; unlink a; write @a 0 10; fsync @a",
    ],
    ids=["nothing", "by itself", "another file and the directory", "no name"],
)
def test_what_nothing_made_durable_may_be_anything(operations: str) -> None:
    assert broken(operations, "a=stale:7") is None


def test_a_promise_is_of_the_inode_under_each_name_that_it_can_have() -> None:
    operations = "creat a; append a 10; fsync a; rename a b; link b c"
    assert [broken(operations, f"{name}=w0:9") is None for name in "abcd"] == [False, False, False, True]


REPLACED = "creat a; append a 10; fsync a; creat b; append b 20; fsync b; rename b a"


def test_a_file_that_can_be_two_inodes_must_break_the_promises_of_both() -> None:
    assert broken(REPLACED, "a=w0:10") is None
    assert broken(REPLACED, "a=w1:20") is None
    assert broken(REPLACED, "a=w0:5") == (
        3,
        "fsync a (operation 3) had returned, but a is 5 bytes long; it promised 10; and if it is another file, "
        "fsync b (operation 6) had returned, but a is 5 bytes long; it promised 20",
    )
    assert broken(REPLACED.replace("; fsync b", ""), "a=w0:5") is None


def test_the_same_message_for_two_inodes_is_told_once() -> None:
    operations = "creat a; append a 10; creat b; append b 10; ---; rename b a"
    assert broken(operations, "a=w0:5") == (4, "the set-up was durable, but a is 5 bytes long; it promised 10")


def test_what_is_found_can_only_be_an_inode_of_its_type() -> None:
    operations = "creat a; append a 10; sync; unlink a; mkdir a"
    known = promised(operations)
    assert known.could_be(2, entry_of("a=w0:10"))
    assert not known.could_be(2, entry_of("a=w0:9"))
    assert not known.could_be(2, entry_of("a/"))
    assert known.could_be(6, entry_of("a/"))
    assert broken(operations, "a/") is None
    assert broken(operations, "a=w0:9") is not None


def test_entries_that_promises_concern() -> None:
    known = promised("creat a; append a 10; fsync a; creat b; mkdir D")
    assert known.concern("a", entry_of("a"))
    assert not known.concern("a", entry_of("a/"))
    assert not known.concern("b", entry_of("b"))
    assert not known.concern("c", entry_of("c"))
    assert known.is_any
    assert not promised("creat a; append a 10").is_any
    assert not promised("creat a; append a 10; fsync .").is_any
    assert promised("creat a; sync").is_any


# Sizes and bytes


SIZED = "creat a; append a 10; fsync a; append a 10; truncate a 4; append a 1"


@pytest.mark.parametrize(
    ("found", "is_fine"),
    [
        *(("a=w0:3", False), ("a=w0:4", True), ("a=w0:5", True), ("a=w0:10+w1:10", True)),
        *(("a=w0:10+w1:11", False), ("a", False), ("a=w0:4+zero:6", True), ("a=w0:3+zero:1", False)),
    ],
)
def test_a_size_lies_between_those_of_the_later_states(found: str, is_fine: bool) -> None:
    assert (broken(SIZED, found) is None) == is_fine


@pytest.mark.parametrize(
    ("found", "is_fine"),
    [
        *(("a=w0:4096+w0:4096", True), ("a=w1:100+w0:8092", True), ("a=w0:50+w1:50+w0:8092", True)),
        *(("a=w1:101+w0:8091", False), ("a=zero:100+w0:8092", False), ("a=w0:8191+stale:1", False)),
        *(("a=w0:8191", False), ("a=w0:8192+w0:1", False), ("a=other:8192", False)),
    ],
)
def test_a_byte_that_a_later_write_changes_is_the_old_or_the_new_one(found: str, is_fine: bool) -> None:
    assert (broken("creat a; append a 8192; fsync a; write a 0 100", found) is None) == is_fine


def test_what_is_behind_the_promised_end_is_not_asked_for() -> None:
    operations = "creat a; append a 10; fsync a; append a 10"
    assert broken(operations, "a=w0:10+stale:10") is None
    assert broken(operations, "a=w0:9+stale:11") is not None


def test_a_hole_that_is_filled_may_show_anything_old_in_its_block_and_not_behind_it() -> None:
    operations = "creat a; truncate a 8192; fsync a; write a 0 100"
    assert broken(operations, "a=stale:4096+zero:4096") is None
    assert broken(operations, "a=zero:4096+stale:4096") is not None
    assert broken(operations, "a=w0:200+zero:7992") is not None
    assert broken("creat a; truncate a 8192; fsync a", "a=stale:4096+zero:4096") is not None


def test_the_rest_of_a_cut_block_may_be_zero_and_no_whole_block_may() -> None:
    operations = "creat a; append a 12288; fsync a; truncate a 5000; append a 100"
    assert broken(operations, "a=w0:5000+zero:3192+w0:4096") is None
    assert broken(operations, "a=w0:4999+zero:7289") is not None
    assert broken("creat a; append a 8192; fsync a; truncate a 4096", "a=w0:4096+zero:4096") is not None


def test_bytes_that_are_moved_may_leave_a_hole_and_others_may_not() -> None:
    operations = "creat a; append a 12288; fsync a; fallocate a collapse-range 4096 4096"
    assert broken(operations, "a=w0:4096+zero:4096+w0:4096") is None
    assert broken(operations, "a=w0:4096+w0-4096:4096") is None
    assert broken(operations, "a=zero:4096+w0:8192") is not None
    assert broken(operations, "a=w0:4096+stale:4096+w0:4096") is not None


# Promises of a part


@pytest.mark.parametrize("word", ["write-osync", "write-odsync"])
def test_a_synchronous_write_promises_its_own_bytes_and_that_the_file_reaches_them(word: str) -> None:
    operations = f"creat a; append a 100; {word} a 50 20"
    assert broken(operations, "a=stale:50+w1:20") is None
    assert broken(operations, "a=stale:50+w1:20+stale:500") is None
    assert broken(operations, "a=w0:50+w1:19+zero:1") is not None
    said = broken(operations, "a=w0:50+w1:19")
    assert said == (3, f"{word} a 50 20 (operation 3) had returned, but a is 69 bytes long; it promised at least 70")


def test_msync_promises_what_was_stored_through_the_mapping_in_its_range() -> None:
    operations = "creat a; append a 8192; mmapwrite a 0 100; mmapwrite a 4096 100; msync a 0 4096"
    assert broken(operations, "a=w1:100+stale:8092") is None
    assert broken(operations, "a=w1:99+w0:1") is not None
    whole = operations.replace(" 0 4096", "")
    assert broken(whole, "a=w1:100+stale:8092") is not None
    assert broken(whole, "a=w1:100+stale:3996+w2:100") is None


def test_a_later_promise_of_a_part_leaves_the_earlier_ones() -> None:
    """The whole file reaches as far as the part does, and still it is asked for."""
    operations = "creat a; append a 100; fsync a; write-odsync a 50 50"
    assert broken(operations, "a=w0:50+w1:50") is None
    assert broken(operations, "a=zero:50+w1:50") is not None
    assert broken(operations, "a=w0:100") is not None
    beyond = "creat a; append a 100; write-odsync a 500 50; write-odsync a 200 50; fsync a; write-odsync a 0 9"
    assert broken(beyond, "a=w3:9+w0:91+zero:100+w2:50+zero:250+w1:50") is None
    assert broken(beyond, "a=w3:9+w0:91+zero:100+w2:50+zero:250+w1:49") is not None


def test_a_part_that_reaches_further_back_than_a_later_cut_is_gone_with_it() -> None:
    operations = "creat a; write-odsync a 0 100; truncate a 10"
    assert broken(operations, "a=w0:10") is None
    assert broken(operations, "a=w0:9") is not None


# Attributes and targets


@pytest.mark.parametrize(
    ("operations", "found", "message"),
    [
        ("setxattr a user.x 1; fsync a", "a", "attribute user.x of a is missing; it promised b'1'"),
        ("setxattr a user.x 1; fsync a", "a@user.x:31", ""),
        ("setxattr a user.x 1; fsync a", "a@user.x:32", "attribute user.x of a is b'2'; it promised b'1'"),
        ("setxattr a user.x 1; fdatasync a", "a", ""),
        ("setxattr a user.x 1", "a", ""),
        ("setxattr a user.x 1; fsync a; setxattr a user.x 2", "a@user.x:32", ""),
        (
            "setxattr a user.x 1; fsync a; setxattr a user.x 2",
            "a",
            "attribute user.x of a is missing; it promised b'1' or b'2'",
        ),
        ("setxattr a user.x 1; fsync a; removexattr a user.x", "a", ""),
        ("setxattr a user.x 1; fsync a; removexattr a user.x", "a@user.x:31", ""),
        (
            "setxattr a user.x 1; removexattr a user.x; fsync a",
            "a@user.x:31",
            "attribute user.x of a is b'1'; it promised missing",
        ),
        ("fsync a", "a@user.x:31", ""),
        ("fsync a; setxattr a user.x 1", "a@user.x:31", ""),
    ],
)
def test_an_attribute_has_a_value_that_it_had_since_the_promise(operations: str, found: str, message: str) -> None:
    said = broken(f"creat a; {operations}", found)
    assert (said[1].partition(", but ")[2] if said else "") == message


def test_an_attribute_is_promised_by_the_fsync_and_not_by_the_fdatasync_before_it() -> None:
    said = broken("creat a; setxattr a user.x 1; fdatasync a; write-odsync a 0 1; fsync a", "a=w0:1")
    assert said == (5, "fsync a (operation 5) had returned, but attribute user.x of a is missing; it promised b'1'")


def test_a_symbolic_link_that_is_durable_keeps_its_target() -> None:
    assert broken("symlink to s; fsync .", "s->other") is None
    said = broken("symlink to s; sync", "s->other")
    assert said == (2, "sync (operation 2) had returned, but s points to 'other'; it promised 'to'")


def test_what_cannot_be_read_breaks_the_promise_of_contents_alone() -> None:
    known, unread = promised("creat a; setxattr a user.x 1; fsync a"), Entry("a", "file", error=5)
    assert known.broken("a", unread) == (
        3,
        "fsync a (operation 3) had returned, but a cannot be read (errno 5)",
    )
    assert Attribute("user.x", frozenset({"31"})).broken_by(unread) == ""
    assert LinkTarget("to").broken_by(Entry("s", "symlink", error=5)) == ""
    assert LinkTarget("1:3").broken_by(Entry("c", "char", target="1:3")) == ""
    assert LinkTarget("1:3").broken_by(Entry("c", "char", target="1:5")) == "c is the device '1:5'; it promised '1:3'"


def test_a_run_is_asked_for_as_far_as_the_file_reaches() -> None:
    workload = parse_workload("creat a\nappend a 10", "case")
    content = FileContent(workload, 4, 10, (SourceRun(0, 10, frozenset({"write:0"})),), 10)
    assert content.broken_by(Entry("a", "file", size=4, segments=(Segment(0, 4, "write:0"),))) == ""
    assert content.broken_by(Entry("a", "file", size=4, segments=(Segment(0, 4, "zero"),))).startswith(
        "a is 4 bytes long; of its bytes, 0 to 4 are zero; it promised bytes 0 to 10"
    )
    assert content.broken_by(Entry("a", "file", size=3)) == "a is 3 bytes long; it promised 4 to 10"
    assert content.broken_by(Entry("a", "file", size=11)) == "a is 11 bytes long; it promised 4 to 10"
