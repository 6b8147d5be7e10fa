"""The abstract file system agrees with this machine's own, operation by operation."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from postcrash.model import SimulationError, Tree, WorkloadBuilder, simulate

NAMES = st.sampled_from(["a", "b", "d", "d/a", "d/b", "e", "e/a", "d/e", "e/d"])
Step = tuple[str, str, str]
Seen = dict[str, tuple[int, int] | None]
"""Size and link count of files, by path. Directories have None."""


def create(file: Path) -> None:
    os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY))


def append(file: Path) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND)
    os.write(descriptor, b"xxxxx")
    os.close(descriptor)


REAL: dict[str, Callable[[Path, Path], object]] = {
    "mkdir": lambda a, _: a.mkdir(),
    "creat": lambda a, _: create(a),
    "rmdir": lambda a, _: a.rmdir(),
    "unlink": lambda a, _: a.unlink(),
    "rename": lambda a, b: a.rename(b),
    "link": os.link,
    "append": lambda a, _: append(a),
    "truncate": lambda a, _: os.truncate(a, 3),
}

SIMULATED: dict[str, Callable[[WorkloadBuilder, str, str], object]] = {
    "mkdir": lambda builder, a, _: builder.mkdir(a),
    "creat": lambda builder, a, _: builder.creat(a),
    "rmdir": lambda builder, a, _: builder.rmdir(a),
    "unlink": lambda builder, a, _: builder.unlink(a),
    "rename": lambda builder, a, b: builder.rename(a, b),
    "link": lambda builder, a, b: builder.link(a, b),
    "append": lambda builder, a, _: builder.append(a, 5),
    "truncate": lambda builder, a, _: builder.truncate(a, 3),
}


def simulated(steps: list[Step]) -> Tree:
    builder = WorkloadBuilder().sync()
    for word, first, second in steps:
        SIMULATED[word](builder, first, second)
    return simulate(builder.build("w"))[-1]


def seen_in(root: Path) -> Seen:
    paths = {str(path.relative_to(root)): path for path in root.rglob("*")}
    return {
        name: None if path.is_dir() else (path.stat().st_size, path.stat().st_nlink) for name, path in paths.items()
    }


def seen_in_tree(tree: Tree) -> Seen:
    names = [name for name in tree if name != "."]
    return {name: None if tree[name].type == "dir" else (tree[name].size, tree[name].nlink or 0) for name in names}


def real_refusal(root: Path, step: Step) -> str | None:
    """Do the step. Returns the name of the errno if it fails."""
    word, first, second = step
    try:
        REAL[word](root / first, root / second)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return None


@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from(sorted(REAL)), NAMES, NAMES), max_size=25))
@example([("creat", "a", ""), ("link", "a", "b"), ("rename", "a", "b"), ("append", "b", ""), ("rename", "b", "b")])
@example([("mkdir", "d", ""), ("creat", "a", ""), ("link", "a", "d/a"), ("rename", "d/a", "a"), ("unlink", "a", "")])
def test_same_refusals_and_same_tree(tmp_path_factory: pytest.TempPathFactory, steps: list[Step]) -> None:
    root = tmp_path_factory.mktemp("real")
    done: list[Step] = []
    for step in steps:
        refused = real_refusal(root, step)
        if refused is None:
            done.append(step)
            continue
        with pytest.raises(SimulationError) as refusal:
            simulated([*done, step])
        assert refusal.value.errno_name == refused, step
    assert seen_in_tree(simulated(done)) == seen_in(root)
