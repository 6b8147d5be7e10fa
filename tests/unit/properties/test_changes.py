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


EXCHANGED = "append foo 8192\nappend bar 4096\n---\nfallocate foo collapse-range 0 4096\nsync\nexchange foo bar\n"


def test_bytes_that_only_one_of_two_files_has_tell_which_of_them_a_name_means() -> None:
    workload = parse_workload(f"creat foo\ncreat bar\n{EXCHANGED}", "w")
    before, after = (History(workload, 7, 7).trees[count] for count in (6, 7))
    history = History(workload, 7, 6)
    assert {change.shown(before) for change in changes(history, 6)} == {ChangeState.OLD}
    assert {change.shown(after) for change in changes(history, 6)} == {ChangeState.NEW}


def test_an_empty_file_does_not_tell_which_of_two_it_is() -> None:
    text = "creat a\nappend a 10\ncreat b\nappend b 10\n---\ntruncate a 0\nappend a 5\nexchange a b\n"
    history = History(parse_workload(text, "w"), 7, 6)
    emptied = history.trees[5]
    assert (emptied["a"].size, emptied["b"].size) == (0, 10)
    assert {change.shown(emptied) for change in changes(history, 6)} == {ChangeState.OLD, ChangeState.UNTOLD}
