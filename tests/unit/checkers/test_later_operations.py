"""What a crash leaves cannot depend on operations that had not started: no checker may look at them."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postcrash.checkers import CHECKERS, PRACTICE, Checker
from postcrash.model import Entry, History, Observation, Tree, Verdict, Workload, parse_workload
from postcrash.model.observation import FsckResult, Usage
from postcrash.model.tree import ROOT_PATH

from .test_depends_on import answer
from .test_no_false_alarms import workloads

pytestmark = pytest.mark.slow


def observed(tree: Tree) -> Observation:
    return Observation(0, tree, klog_whole=True, fsck=FsckResult(0, ""), used=Usage("", 0))


def cut(history: History) -> History:
    """The same history of a workload that ends with the last operation that had started."""
    workload = history.workload
    first = len(workload.setup)
    operations = workload.operations[first : history.started]
    return History(Workload(workload.name, workload.setup, operations), history.started, history.returned)


@st.composite
def crashes(draw: st.DrawFn) -> tuple[History, Tree]:
    """An instant of a workload, and a tree with names that are missing or were there at another time."""
    workload = draw(workloads())
    started = draw(st.integers(len(workload.setup), len(workload.operations)))
    history = History(workload, started, draw(st.integers(max(started - 1, len(workload.setup)), started)))
    found = dict(history.trees[draw(st.integers(0, started))].items())
    for _ in range(draw(st.integers(0, 2))):
        names, others = sorted(found.keys() - {ROOT_PATH}), list(_others(history, found))
        is_lost = draw(st.booleans())
        if names and is_lost:
            gone = draw(st.sampled_from(names))
            found = {path: entry for path, entry in found.items() if path != gone and not path.startswith(f"{gone}/")}
        elif others:
            path, entry = draw(st.sampled_from(others))
            found[path] = entry
    return history, Tree(found.values())


def _others(history: History, found: dict[str, Entry]) -> Iterator[tuple[str, Entry]]:
    """Names of other times whose directory is there."""
    for tree in history.trees[: history.started + 1]:
        for path, entry in tree.items():
            above = found.get(path.rpartition("/")[0] or ROOT_PATH)
            if path not in found and above is not None and above.type == "dir":
                yield path, entry


@pytest.mark.parametrize("checker", [*CHECKERS, *PRACTICE], ids=lambda checker: checker.name)
@settings(max_examples=100, deadline=None)
@given(crashes())
def test_what_had_not_started_makes_no_difference(checker: Checker, crash: tuple[History, Tree]) -> None:
    history, tree = crash
    assert answer(checker, history, observed(tree)) == answer(checker, cut(history), observed(tree))


MOVED_LATER = "mkdir B; rename A B"


@pytest.mark.parametrize(
    ("checker", "operations", "later", "names"),
    [
        ("fsync-names", "---; mkdir A; creat A/foo; fsync A/foo", MOVED_LATER, {"A": "A"}),
        ("fsync-names", "---; mkdir A; creat A/foo; fsync A/foo", "rename A B", {}),
        (
            "removed-names",
            "---; mkdir A; creat A/foo; link A/foo A/bar; unlink A/foo; fsync A/bar",
            MOVED_LATER,
            {"A": "A", "A/foo": "A/bar", "A/bar": "A/bar"},
        ),
        (
            "one-name",
            "---; mkdir A; creat A/foo; append A/foo 4096; fsync A/foo; rename A/foo A/bar",
            MOVED_LATER,
            {"A": "A"},
        ),
        (
            "one-name",
            "creat bar; append bar 4096; creat x; ---; link x y; rename bar baz",
            "unlink baz; rename y baz",
            {"bar": "baz", "baz": "baz"},
        ),
    ],
)
def test_a_judge_is_not_silent_because_of_what_comes_later(
    checker: str, operations: str, later: str, names: dict[str, str]
) -> None:
    """`names` are those that were found, each with the name in the last tree of what stands there."""
    (asked,) = [each for each in PRACTICE if each.name == checker]
    for text in (operations, f"{operations}; {later}"):
        count = len(parse_workload(operations.replace("; ", "\n"), "w").operations)
        history = History(parse_workload(text.replace("; ", "\n"), "w"), count, count)
        last = history.trees[count]
        entries = [_renamed(last[name], path) for path, name in {ROOT_PATH: ROOT_PATH, **names}.items()]
        assert asked.examine(history, observed(Tree(entries))).verdict is Verdict.VIOLATED


def _renamed(entry: Entry, path: str) -> Entry:
    return Entry(path, entry.type, entry.mode, inode=entry.inode, size=entry.size, segments=entry.segments)
