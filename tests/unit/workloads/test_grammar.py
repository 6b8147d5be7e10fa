"""Templates give each choice of arguments once, and points stand on the paths that their scope says."""

import pytest

from postcrash.workloads.grammar import SETUPS, Call, Grammar, Point, Scope, Template

FILES = ("foo", "bar", "A/foo", "A/bar")
GRAMMAR = Grammar(
    "small",
    FILES,
    ("A", "B"),
    (Template("link", (FILES[:2], FILES[:3])), Template("falloc", (("foo",),), ("none", "keep-size"), ("append",))),
    (
        Point("fsync", "related"),
        Point("fdatasync", "used", files=True),
        Point("sync", "everything"),
        Point("", "nothing", last=False),
    ),
)


def words(calls: tuple[Call, ...]) -> list[str]:
    return list(map(str, calls))


def test_a_call_is_written_without_what_it_does_not_have() -> None:
    assert str(Call("falloc", ("foo",), "punch-hole", "append")) == "falloc foo punch-hole append"
    assert str(Call("write", ("foo",), range="append")) == "write foo append"
    assert str(Call("rename", ("foo", "bar"))) == "rename foo bar"
    assert str(Call("sync")) == "sync"


def test_a_template_has_each_choice_but_for_a_path_that_comes_twice() -> None:
    """The last argument changes first."""
    assert words(GRAMMAR.calls()) == [
        *("link foo bar", "link foo A/foo", "link bar foo", "link bar A/foo"),
        *("falloc foo none append", "falloc foo keep-size append"),
    ]
    ranges = Template("write", (("foo", "bar"),), ranges=("append", "hole")).calls()
    assert list(map(str, ranges)) == ["write foo append", "write foo hole", "write bar append", "write bar hole"]
    assert list(Template("sync", ()).calls()) == [Call("sync")]


@pytest.mark.parametrize(
    ("used", "length", "expected"),
    [
        ({"foo"}, 1, ["foo", "bar", "."]),
        ({"foo"}, 2, ["foo", "bar", "."]),
        ({"foo"}, 3, ["foo"]),
        ({"A/foo"}, 1, ["A/foo", "A/bar", "A"]),
        ({"A/foo", "bar"}, 1, ["foo", "bar", "A/foo", "A/bar", "A", "."]),
        ({"A"}, 1, ["A", "B", "."]),
        (set(), 1, []),
    ],
)
def test_related_paths_are_siblings_and_parents_in_short_workloads(
    used: set[str], length: int, expected: list[str]
) -> None:
    found = GRAMMAR.points_after(frozenset(used), length, last=False)
    assert [call.paths[0] for call in found if call.word == "fsync"] == expected


def test_a_point_for_files_leaves_out_folders_and_one_without_a_path_comes_once() -> None:
    found = GRAMMAR.points_after(frozenset({"foo", "A", "."}), 3, last=False)
    assert words(found) == ["fsync foo", "fsync A", "fsync .", "fdatasync foo", "sync", ""]


def test_something_must_make_the_last_call_durable() -> None:
    between = GRAMMAR.points_after(frozenset({"foo"}), 1, last=False)
    after = GRAMMAR.points_after(frozenset({"foo"}), 1, last=True)
    assert between == (*after, Call(""))


def test_the_root_has_no_sibling() -> None:
    grammar = Grammar("one", ("foo", "bar"), ("A",), (), (Point("fsync", "related"),))
    assert words(grammar.points_after(frozenset({"."}), 1, last=True)) == ["fsync ."]


def test_a_path_without_a_sibling_has_none() -> None:
    alone = Grammar("alone", ("foo", "A/bar"), ("A",), (), (Point("fsync", "related"),))
    assert words(alone.points_after(frozenset({"foo"}), 1, last=True)) == ["fsync foo", "fsync ."]
    assert words(alone.points_after(frozenset({"A"}), 1, last=True)) == ["fsync A", "fsync ."]


@pytest.mark.parametrize("scope", ["everything", "nothing"])
def test_other_scopes_take_no_path(scope: Scope) -> None:
    grammar = Grammar("one", ("foo",), (), (), (Point("sync", scope, files=True),))
    assert grammar.points_after(frozenset({"foo"}), 1, last=True) == (Call("sync"),)


def test_without_more_a_grammar_has_what_is_usual() -> None:
    plain = Grammar("plain", (), (), (), ())
    assert plain.reuse([Call("creat", ("foo",))])
    assert plain.setups == ("new",) and set(plain.setups) < set(SETUPS)
    assert plain.calls() == ()
