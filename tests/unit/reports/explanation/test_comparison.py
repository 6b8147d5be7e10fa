"""What was found next to what is allowed: where the two differ, and how contents are put into words."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from postcrash.model import Entry, History, Segment, Tree, parse_workload
from postcrash.model.choices import UndecidedBytes
from postcrash.reports.explanation.comparison import LINES_MAX, PATHS_MAX, compare
from postcrash.store.explanation_data import PathComparison

WORKLOAD = parse_workload('mkdir d\n---\ncreat d/a\nappend d/a 4096\nlink d/a b\nsetxattr b user.x "1 2"', "litmus")
Change = Callable[[Entry], Entry | None]


def history(returned: int, started: int | None = None) -> History:
    return History(WORKLOAD, returned if started is None else started, returned)


def compared(found: Tree, past: History) -> dict[str, PathComparison]:
    comparison, omitted = compare(past, found)
    assert omitted == 0
    return {one.path: one for one in comparison}


def without(path: str) -> Tree:
    return history(5).trees[5].changed({path: None})


def with_b(**changes: Any) -> Tree:
    tree = history(5).trees[5]
    return tree.changed({"b": replace(tree["b"], **changes)})


def test_what_all_operations_leave_differs_nowhere() -> None:
    found = compared(history(5).trees[5], history(5))
    assert list(found) == [".", "b", "d", "d/a"]
    assert not any(one.differs for one in found.values())
    assert found["d"].found == ("directory",)
    assert found["b"].found == (
        "file, 4096 bytes, 2 links, the same as d/a",
        "bytes 0 to 4096: those of append d/a 4096",
        'user.x = "1 2"',
    )


def test_what_is_missing_differs() -> None:
    missing = compared(without("b"), history(5))["b"]
    assert missing.differs
    assert missing.found == ("not there",)


def test_what_should_be_gone_differs() -> None:
    extra = compared(history(5).trees[5], history(3))["b"]
    assert extra.differs
    assert extra.allowed == ("not there",)


@pytest.mark.parametrize("done", [3, 4])
def test_the_operation_in_progress_may_be_done_or_not(done: int) -> None:
    found = compared(history(5).trees[done], history(3, 4))
    assert not any(one.differs for one in found.values())
    assert found["b"].allowed == ("not there",)
    assert found["b"].in_progress[0] == "file, 4096 bytes, 2 links, the same as d/a"
    assert found["d"].in_progress == ()


@pytest.mark.parametrize(
    ("segments", "words"),
    [
        ([Segment(0, 4096, "zero")], "bytes 0 to 4096: zeros"),
        ([Segment(0, 4096, "stale")], "bytes 0 to 4096: stale garbage from free space"),
        ([Segment(0, 4096, "other")], "bytes 0 to 4096: of unknown origin"),
        ([Segment(0, 4096, "error:5")], "bytes 0 to 4096: not readable (errno 5)"),
        ([Segment(0, 4096, "write:9")], "bytes 0 to 4096: those of a write (tag 9) that is not in the workload"),
    ],
)
def test_contents_in_words(segments: list[Segment], words: str) -> None:
    one = compared(with_b(segments=tuple(segments)), history(5))["b"]
    assert one.differs
    assert one.found[1] == words


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        (Entry("b", "file", error=5), "file, cannot be read: EIO (Input/output error)"),
        (Entry("b", "symlink", nlink=1, target="x y"), "symbolic link to x y"),
        (Entry("b", "other", nlink=1), "other"),
        (Entry("b", "dir"), "directory"),
        (Entry("b", "file", nlink=0, inode=99), "file, 0 bytes, 0 links"),
    ],
)
def test_kinds_of_entries(entry: Entry, line: str) -> None:
    assert compared(history(5).trees[5].changed({"b": entry}), history(5))["b"].found == (line,)


def test_lost_and_found_is_the_file_systems_own() -> None:
    found = history(5).trees[5].changed({"lost+found": Entry("lost+found", "dir")})
    assert "lost+found" not in compared(found, history(5))


def test_long_contents_are_cut_but_compared_whole() -> None:
    runs = tuple(Segment(i, i + 1, "zero" if i % 2 else "other") for i in range(4095))
    found = with_b(segments=(*runs, Segment(4095, 4096, "zero")), xattrs=())
    one = compared(found, history(5))["b"]
    assert len(one.found) == LINES_MAX + 1
    assert one.found[-1] == f"{4097 - LINES_MAX} more lines"


def test_of_many_paths_those_that_differ_are_shown() -> None:
    lines = [f"creat f{i:03}" for i in range(PATHS_MAX + 10)]
    past = History(parse_workload("\n".join(lines), "many"), len(lines), len(lines))
    comparison, omitted = compare(past, past.trees[-1].changed({"f069": None}))
    assert len(comparison) == PATHS_MAX
    assert omitted == 11
    assert [one.path for one in comparison if one.differs] == ["f069"]


def beside(found: Tree, reference: Tree) -> dict[str, PathComparison]:
    return {one.path: one for one in compare(history(5), found, reference)[0]}


def test_what_is_as_the_reference_shows_it_does_not_differ() -> None:
    """Even if the operations leave something else."""
    one = beside(without("b"), without("b"))["b"]
    assert (one.differs, one.reference, one.allowed[0][:4]) == (False, ("not there",), "file")


def test_what_the_reference_shows_stands_beside_what_was_found() -> None:
    whole = history(5).trees[5]
    one = beside(without("b"), whole)["b"]
    assert one.differs and one.reference[0] == "file, 4096 bytes, 2 links, the same as d/a"
    extra = Entry("new", "fifo", mode=0o644, nlink=1, inode=9)
    one = beside(whole, whole.changed({"new": extra}))["new"]
    assert (one.differs, one.found, one.reference) == (True, ("not there",), ("fifo",))


@pytest.mark.parametrize(
    ("change", "mine", "theirs"),
    [
        ({"mode": 0o600}, "mode 600", "mode 644"),
        ({"size": 0, "segments": ()}, "file, 0 bytes, 2 links, the same as d/a", "bytes 0 to 4096: those of append"),
        ({"inode": 99}, "file, 4096 bytes, 2 links", "file, 4096 bytes, 2 links, the same as d/a"),
        ({"segments": (Segment(0, 4096, "zero"),)}, "bytes 0 to 4096: zeros", "bytes 0 to 4096: those of append"),
    ],
)
def test_each_field_in_which_the_two_differ_is_told(change: dict[str, Any], mine: str, theirs: str) -> None:
    one = beside(with_b(**change), history(5).trees[5])["b"]
    assert one.differs and mine in one.found
    assert any(line.startswith(theirs) for line in one.reference)


@pytest.mark.parametrize(("source", "differs"), [("zero", False), ("write:0", False), ("stale", True)])
def test_contents_that_the_reference_left_open_are_each_told(source: str, differs: bool) -> None:
    """They are compared in each version."""
    versions = ((Segment(0, 4096, "zero"),), (Segment(0, 4096, "write:0"),))
    open_ = with_b(segments=(), choices=(UndecidedBytes(0, 4096, 7, versions),))
    one = beside(with_b(segments=(Segment(0, 4096, source),)), open_)["b"]
    assert one.differs is differs
    assert one.reference[1] == "bytes 0 to 4096: zeros, or those of append d/a 4096"
