"""What an operation changes, and what a tree shows of it when later operations have changed more."""

from postcrash.model import Entry, History, Tree, parse_workload
from postcrash.properties.changes import ChangeState, changes


def shown(operations: str, started: int, operation: int, *entries: Entry) -> set[ChangeState]:
    """What a tree of these entries shows of all changes of the operation (from 0) when so many have started."""
    workload = parse_workload(operations, "w")
    tree = Tree([Entry(".", "dir"), *entries])
    return {change.shown(tree) for change in changes(History(workload, started, started - 1), operation)}


REPLACED = "symlink foo bar\ncreat foo\nrename foo bar\n"


def test_a_name_is_there_before_and_after_another_operation_gives_it_to_another_file() -> None:
    link = Entry("bar", "symlink", target="foo")
    file, source = Entry("bar", "file", inode=1), Entry("foo", "file", inode=1)
    assert shown(REPLACED, 3, 0, link, source) == {ChangeState.NEW}, "the rename has begun, and is not there"
    assert shown(REPLACED, 3, 0, file) == {ChangeState.NEW}
    assert shown(REPLACED, 3, 0, source) == {ChangeState.OLD}
    assert shown(REPLACED, 3, 0, Entry("bar", "fifo"), source) == {ChangeState.OTHER}
    assert shown(REPLACED, 3, 0, Entry("bar", "symlink", target="elsewhere")) == {ChangeState.OTHER}


def test_without_the_other_operation_the_name_stands_for_one_thing() -> None:
    assert shown(REPLACED, 2, 0, Entry("bar", "file")) == {ChangeState.OTHER}
    assert shown(REPLACED, 2, 0, Entry("bar", "symlink", target="foo")) == {ChangeState.NEW}
