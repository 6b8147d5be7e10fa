"""What calls need is made once, in order, and moved to the set-up only if no call before had to do with it."""

import pytest

from postcrash.model import simulate
from postcrash.workloads import GRAMMARS
from postcrash.workloads.needs import NeedfulFiles

FULL = GRAMMARS["full"]


class Files(NeedfulFiles):
    """Files that a test asks for as calls do."""

    def __init__(self) -> None:
        super().__init__(FULL)

    def need(self, *paths: str) -> "Files":
        for path in paths:
            self._need(path)
        return self

    def need_kind(self, path: str, kind: str) -> "Files":
        self._need_kind(path, kind)
        return self

    def fill(self, path: str) -> "Files":
        assert self._filled(path).size > 0
        return self

    def end_inside(self, path: str) -> int:
        return self._ending_inside(path)

    def remove(self, path: str) -> "Files":
        self._remove(path)
        return self

    def rename(self, old: str, new: str) -> "Files":
        self._builder.rename(old, new)
        self._move({old: new})
        return self

    def exchange(self, first: str, second: str) -> "Files":
        self._builder.exchange(first, second)
        self._move({first: second, second: first})
        return self

    def touched(self, *paths: str) -> "Files":
        """Calls had these paths."""
        self._touched.update(paths)
        return self

    @property
    def lines(self) -> list[str]:
        """The workload, which must be one that can run."""
        workload = self._builder.build("case")
        simulate(workload)
        return workload.to_text().splitlines()


def test_what_is_there_is_not_made_again() -> None:
    files = Files().need("foo", "A/foo", "foo", "A", ".")
    assert files.lines == ["creat foo", "mkdir A", "creat A/foo"]
    assert files.prerequisites == [("file", "foo"), ("folder", "A"), ("file", "A/foo")]


def test_a_path_is_a_folder_if_it_is_one_of_the_grammar() -> None:
    assert Files().need("A", "B/bar").lines == ["mkdir A", "mkdir B", "creat B/bar"]


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        *(("symlink", "symlink target foo"), ("fifo", "mknod foo fifo"), ("char", "mknod foo char")),
        *(("folder", "mkdir foo"), ("file", "creat foo")),
    ],
)
def test_what_is_of_another_kind_is_replaced(kind: str, made: str) -> None:
    other = "file" if kind != "file" else "fifo"
    files = Files().need_kind("foo", other).need_kind("foo", kind)
    assert files.lines[1:] == ["unlink foo", made]
    again = files.need_kind("foo", kind).need_kind("foo", other)
    assert again.lines[3:4] == ["rmdir foo" if kind == "folder" else "unlink foo"]


def test_a_folder_is_removed_with_all_that_is_in_it() -> None:
    files = Files().need("A/foo", "A/bar", "foo").need_kind("A/D", "folder").need("A/D/foo").remove("A")
    made, gone = files.lines[:6], files.lines[6:]
    assert made == ["mkdir A", "creat A/foo", "creat A/bar", "creat foo", "mkdir A/D", "creat A/D/foo"]
    assert sorted(gone) == ["rmdir A", "rmdir A/D", "unlink A/D/foo", "unlink A/bar", "unlink A/foo"]
    assert files.remove("A").lines == [*made, *gone]
    assert files.need("A/foo").lines[11:] == ["mkdir A", "creat A/foo"]


def test_a_file_is_filled_once_and_ends_inside_a_block_if_it_must() -> None:
    files = Files().fill("foo").fill("foo")
    assert files.lines == ["creat foo", "write foo 0 32768"]
    assert files.end_inside("foo") == files.end_inside("foo") == 32768 + 2500
    assert files.lines[2:] == ["write foo 32768 2500"]
    assert files.prerequisites == [("file", "foo"), ("contents", "foo"), ("tail", "foo")]
    assert Files().need("foo").end_inside("foo") == 2500


def test_what_is_in_a_folder_moves_with_it() -> None:
    files = Files().need("A/foo").rename("A", "B").need("B/foo").fill("B/foo").need("A/foo")
    assert files.lines == [
        *("mkdir A", "creat A/foo", "rename A B", "write B/foo 0 32768", "mkdir A", "creat A/foo"),
    ]


def test_names_that_change_places_do_so_at_once() -> None:
    files = Files().fill("A/foo").need("B/bar").exchange("A", "B").need("A/bar").fill("B/foo").need("A/foo")
    assert files.lines[5:] == ["exchange A B", "creat A/foo"]


def test_a_name_that_only_begins_like_a_folder_is_not_in_it() -> None:
    files = Files().need_kind("A", "folder").need("AB").rename("A", "B").need("AB").remove("B")
    assert files.lines == ["mkdir A", "creat AB", "rename A B", "rmdir B"]


# What the set-up can make


@pytest.mark.parametrize(
    ("touched", "path", "first"),
    [
        ("bar", "foo", [("file", "foo")]),
        ("foo", "foo", []),
        ("A", "A/foo", []),
        ("A/foo", "A/bar", []),
        ("B", "A/foo", [("folder", "A"), ("file", "A/foo")]),
        ("AB", "A/foo", [("folder", "A"), ("file", "A/foo")]),
    ],
    ids=["another", "the path", "above", "beside, in the same folder", "another folder", "a name that begins alike"],
)
def test_a_need_comes_first_if_no_call_was_at_above_or_below(
    touched: str, path: str, first: list[tuple[str, str]]
) -> None:
    assert Files().touched(touched).need(path).prerequisites == first


def test_what_rests_on_a_need_that_cannot_come_first_cannot_either() -> None:
    files = Files().need("foo").touched("bar").fill("foo").need("bar").fill("bar")
    assert files.prerequisites == [("file", "foo"), ("contents", "foo")]
    assert Files().need("A").touched("A").need("A/foo").prerequisites == [("folder", "A")]
    folder = Files().touched("A").need("A")
    folder._touched.clear()
    assert folder.need("A/foo").fill("A/foo").prerequisites == []


def test_the_set_up_makes_what_is_needed_first_and_it_is_not_made_again() -> None:
    files = Files()
    files.begin([("folder", "A"), ("file", "A/foo"), ("contents", "A/foo"), ("symlink", "bar")], is_logged=False)
    made = ["mkdir A", "creat A/foo", "write A/foo 0 32768", "symlink target bar"]
    assert files.fill("A/foo").need("foo").lines == [*made, "---", "creat foo"]


def test_a_logged_set_up_appends_to_each_file_once_it_is_durable_and_counts_that() -> None:
    files = Files()
    files.begin([("folder", "A"), ("file", "A/foo"), ("file", "foo"), ("tail", "foo")], is_logged=True)
    assert files.lines == [
        *("mkdir A", "creat A/foo", "creat foo", "write foo 0 2500", "---"),
        *("append A/foo 4096", "fsync A/foo", "append foo 4096", "fsync foo"),
    ]
    assert files.end_inside("foo") == 6596
    assert files.end_inside("A/foo") == 4096 + 2500


def test_each_kind_of_need_can_be_met_by_the_set_up() -> None:
    files = Files()
    files.begin([("file", "foo"), ("attribute", "foo"), ("fifo", "bar"), ("char", "baz")], is_logged=False)
    made = ["creat foo", "setxattr foo user.xattr1 val1", "mknod bar fifo", "mknod baz char"]
    assert files.need("foo", "A").lines == [*made, "---", "mkdir A"]
