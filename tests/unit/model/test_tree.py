"""Trees behave as immutable mappings, however they were made."""

from hypothesis import given
from hypothesis import strategies as st

from postcrash.model import Entry, Segment, Tree, source_at, sources
from postcrash.model.tree import is_below, parent

PATHS = st.sampled_from([f"{i}" for i in range(100)])
CHANGES = st.dictionaries(PATHS, st.none() | st.integers(0, 3), max_size=30)


@given(st.lists(CHANGES, max_size=20))
def test_changed_as_a_dict(steps: list[dict[str, int | None]]) -> None:
    plain: dict[str, Entry] = {}
    tree = Tree()
    for step in steps:
        before, copy = tree, dict(tree)
        changes = {path: None if n is None else Entry(path, "file", inode=n) for path, n in step.items()}
        tree = tree.changed(changes)
        plain = {path: entry for path, entry in {**plain, **changes}.items() if entry is not None}
        for inode in range(4):
            assert tree.names(inode) == sorted(path for path in plain if plain[path].inode == inode)
        assert dict(before) == copy
        assert dict(tree) == plain
        assert len(tree) == len(plain)
        assert list(tree) == sorted(plain)
        assert tree == Tree(plain.values())
        assert hash(tree) == hash(Tree(plain.values()))


def test_directories_come_before_what_they_hold() -> None:
    tree = Tree(Entry(path, "dir") for path in ["a/b", "-", "a-", "a", ".", "a/b/c"])
    assert list(tree) == [".", "-", "a", "a/b", "a/b/c", "a-"]


def test_what_is_above_and_below_a_path() -> None:
    assert [parent(path) for path in ("a/b/c", "a", ".")] == ["a/b", ".", "."]
    assert [is_below(path, "a") for path in ("a/b/c", "a/b", "a", "ab")] == [True, True, False, False]


def test_get_and_names() -> None:
    tree = Tree([Entry("a", "file", inode=5), Entry("b", "file", inode=5), Entry("c", "file", inode=6)])
    assert tree.names(5) == ["a", "b"]
    assert tree.get("x") is None
    assert "a" not in tree.changed({"a": None})
    assert tree.changed({"a": None}).get("a") is None
    assert tree.changed({}) is tree


def test_sources() -> None:
    entry = Entry("a", "file", size=8, segments=(Segment(0, 4, "zero"), Segment(4, 8, "write:3")))
    assert [source_at(entry, offset) for offset in (0, 3, 4, 7, 8)] == ["zero", "zero", "write:3", "write:3", None]
    assert sources(entry, 4, 8) == {"write:3"}
    assert sources(entry, 3, 5) == {"zero", "write:3"}
    assert sources(entry, 4, 9) == {"write:3", None}
    assert sources(entry, 4, 4) == frozenset()


def test_trees_differ_at_their_places_also_when_one_has_a_base_of_its_own() -> None:
    """So many changes are more than a tree keeps beside its base."""
    first = Tree([Entry(".", "dir"), Entry("gone", "file"), Entry("kept", "file")])
    near = first.changed({"gone": None, "new": Entry("new", "file")})
    far = near.changed({f"n{number}": Entry(f"n{number}", "file") for number in range(100)})
    assert first.places(near) == near.places(first) == {"gone", "new"}
    for tree in (first, near):
        differing = {path for path in {*tree.paths(), *far.paths()} if tree.get(path) != far.get(path)}
        assert len(differing) >= 100
        assert differing <= tree.places(far) == far.places(tree)
