"""Checks what every property must do, in one function for the properties' tests.

A property that always holds is useless, and so is one that never holds. The check finds both without any knowledge of
what the property says: it must accept the trees without a crash, and it must refuse some of these trees with one thing
spoilt.
"""

from collections.abc import Iterator
from dataclasses import replace

from postcrash.model import Entry, History, Observation, Segment, Tree, Verdict, Workload
from postcrash.model.judge import Opinion
from postcrash.model.segments import ZERO
from postcrash.model.tree import ROOT_PATH
from postcrash.model.units import BLOCK_BYTES
from postcrash.properties.property import Property

OPERATIONS_MAX = 8
"""Recorded operations of one workload. Each further one adds crash states."""
BLOCKS_MAX = 3
"""Data blocks of one file that a recorded operation writes. Each further one doubles the crash states."""


def check_property(checked: Property) -> None:
    """Raise `AssertionError` unless `checked` is a sound `Property`.

    - It has its texts, and its family consists of small workloads with different names that run.
    - It holds for every tree of a run without a crash, whether the last operation had returned or not.
    - Its premise is true at least once in each workload, so that no workload is run for nothing.
    - It is broken for some tree in which one name is missing or one file has lost content.
    """
    texts = (checked.name, checked.title, checked.statement, checked.source)
    assert all(texts), f"{checked.name}: name, title, statement and source must say something"
    workloads = checked.workloads()
    names = [workload.name for workload in workloads]
    assert names, f"{checked.name} has no workloads"
    assert len(set(names)) == len(names), f"{checked.name} uses a name twice: {names}"
    for workload in workloads:
        _check_small(workload)
        _check_crash_free(checked, workload)
    assert any(_refuses_something(checked, workload) for workload in workloads), f"{checked.name} refuses nothing"


def crash_free(workload: Workload) -> Iterator[tuple[History, Tree]]:
    """Each instant of `workload` once recording has begun, with the correct tree of this instant."""
    trees = History(workload, 0, 0).trees
    for count in range(len(workload.setup), len(trees)):
        yield History(workload, count, count), trees[count]
        if count + 1 < len(trees):
            yield History(workload, count + 1, count), trees[count]
            yield History(workload, count + 1, count), trees[count + 1]


def spoilt(tree: Tree) -> Iterator[Tree]:
    """`tree` with one thing wrong at a time: a name missing, a file emptied, a run of bytes zero or stale, a symbolic
    link without its target, an attribute without its value."""
    for path, entry in tree.items():
        if path != ROOT_PATH:
            below = [other for other in tree if other.startswith(f"{path}/")]
            yield tree.changed(dict.fromkeys([path, *below]))
        if entry.target:
            yield tree.changed({path: replace(entry, target="")})
        if entry.xattrs:
            yield tree.changed({path: replace(entry, xattrs=tuple((name, "") for name, _ in entry.xattrs))})
        if entry.segments:
            yield tree.changed({path: replace(entry, size=0, segments=())})
        for place, segment in enumerate(entry.segments):
            for source in (ZERO, "stale"):
                yield tree.changed({path: _with_run(entry, place, Segment(segment.start, segment.end, source))})


def _with_run(entry: Entry, place: int, run: Segment) -> Entry:
    return replace(entry, segments=(*entry.segments[:place], run, *entry.segments[place + 1 :]))


def _check_small(workload: Workload) -> None:
    count = len(workload.ops)
    assert count <= OPERATIONS_MAX, f"{workload.name} has {count} recorded operations, more than {OPERATIONS_MAX}"
    for operation in workload.ops:
        length = operation.length if operation.form.data else None
        assert (length or 0) <= BLOCKS_MAX * BLOCK_BYTES, f"{workload.name}: `{operation}` writes too much"


def _check_crash_free(checked: Property, workload: Workload) -> None:
    for each in (workload, workload.with_tail()):
        judgements = []
        for history, tree in crash_free(each):
            judgement = checked.examine(history, Observation(0, tree))
            place = f"{checked.name}, {workload.name}, started {history.started}, returned {history.returned}"
            assert judgement.verdict is Verdict.HOLDS, f"{place}: broken without a crash: {judgement.message}"
            judgements.append(judgement)
        assert any(_says_something(judgement) for judgement in judgements), f"{checked.name}: {each.name} is vacuous"


def _says_something(judgement: Opinion) -> bool:
    return judgement.relevant and judgement.message != ""


def _refuses_something(checked: Property, workload: Workload) -> bool:
    history, tree = list(crash_free(workload))[-1]
    judgements = [checked.examine(history, Observation(0, bad)) for bad in spoilt(tree)]
    for judgement in judgements:
        assert judgement.verdict is Verdict.HOLDS or judgement.message, (
            f"{checked.name}: a judgement on {workload.name} says nothing"
        )
    return not all(judgement.verdict is Verdict.HOLDS for judgement in judgements)
