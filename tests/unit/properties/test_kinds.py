"""Judging takes no longer than it must: what depends on the workload alone is found once."""

from typing import Any

import pytest

from postcrash.model import History, Observation, Tree, Workload, parse_workload
from postcrash.properties import PROPERTIES, Property


def long_workload() -> Workload:
    operations = [
        f"{word} {file}" for number in range(20) for file in (f"A/{number}", f"B/{number}") for word in _WORDS
    ]
    return parse_workload("\n".join(["mkdir A", "mkdir B", *operations, "sync"]), "long.ops")


_WORDS = ("creat", "fsync", "unlink")


@pytest.mark.parametrize("judged", PROPERTIES, ids=lambda judged: judged.name)
def test_a_workload_is_simulated_once(judged: Property, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for each pair of its operations: the corpus has workloads of hundreds, which would take hours."""
    count, changed = 0, Tree.changed

    def counting(tree: Tree, changes: Any) -> Tree:
        nonlocal count
        count += 1
        return changed(tree, changes)

    monkeypatch.setattr(Tree, "changed", counting)
    workload = long_workload()
    last = len(workload.operations)
    for started in (last // 2, last):
        known = History(workload, started, started)
        judged.examine(known, Observation(0, known.trees[started]))
    assert count <= last
