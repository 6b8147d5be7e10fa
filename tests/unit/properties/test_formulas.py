"""Predicates and formulas agree on random trees after random crashes.

A predicate is Python over segments. A formula is z3 over single bytes and shares no code with it. A tree is put
together name by name from the states that the history had. Then it is spoilt: names are lost, sizes are cut, stretches
of bytes are from before, from later, zero or stale, and link counts, attributes and targets are of other times.
"""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from postcrash.model import Entry, History, Observation, Segment, Tree, Verdict, Workload
from postcrash.model.segments import ZERO, clipped, merged
from postcrash.properties import PROPERTIES, Property
from postcrash.properties.family import family

from .formulas import FORMULAS
from .logic import World

pytestmark = pytest.mark.slow

TREES_PER_HISTORY, TREES_IN_FULL = 4, 7
HISTORIES_MIN, HISTORIES_MAX = 16, 100
"""For one property. Beyond the minimum it goes on until some tree breaks the property and some tree does not."""

MIXED = family(
    ("mixed-1", "creat a; append a 8192", "write a 0 4096; creat b; append b 4096; rename b a; fsync a; append a 100"),
    ("mixed-2", "mkdir D; creat s", "creat D/a; append D/a 512; fsync D/a; link D/a l; unlink s; fsync D; rename l s"),
    ("mixed-3", "creat a; append a 4096", "truncate a 0; append a 4096; append a 4096; fdatasync a; creat c; syncfs"),
    ("mixed-4", "mkdir D; creat D/x; mkdir E", "rename D E/F; creat b; rename b c; symlink here E/s; sync"),
    (
        "mixed-5",
        "creat a; append a 8192; creat b; append b 100",
        "exchange a b; write-osync b 0 100; unlink a; fsync .",
    ),
    (
        "mixed-6",
        "creat a; append a 8192",
        "mmapwrite a 0 4096; msync a; dwrite a 4096 4096; setxattr a user.x y; fsync a",
    ),
    (
        "mixed-7",
        "creat a; append a 12288",
        "fallocate a punch-hole 0 4096; write a 4096 512; fdatasync a; truncate a 5000",
    ),
    ("mixed-9", "creat a; append a 8192", "fsync a; write a 200 100; fdatasync a; truncate a 5000; sync; creat b"),
    ("mixed-10", "creat s; append s 100; creat t; link t l", "unlink s; creat s; append s 10; rename t l; creat b"),
    ("mixed-11", "mkdir D; creat D/a; mkdir E; creat E/b", "exchange D E; rename E/a c; unlink D/b; creat D/b"),
    ("mixed-12", "creat a", "append a 4096; setxattr a user.x y; fsync a; rename a b; creat a; sync; append a 10"),
    (
        "mixed-13",
        "creat c",
        "creat a; rename a b; creat a; append a 4096; setxattr c user.a one; reflink a 0 b 0 4096; rename c a",
    ),
    (
        "mixed-14",
        "creat a; append a 4096; creat b; append b 4096",
        "truncate a 0; sync; append a 10; exchange a b; fsync b; setxattr b user.x y",
    ),
    (
        "mixed-15",
        "creat a; append a 4096; creat b; append b 512",
        "open a; rename b a; append @a 100; fsync @a; append a 10; fdatasync a; creat b",
    ),
    ("mixed-17", "creat b; append b 100", "append b 512; truncate b 4096; append b 4096; creat c; append b 512"),
    ("mixed-18", "mkdir D", "creat E; exchange E D; symlink b c; exchange c E; mkdir F; rename F c"),
    ("mixed-19", "creat a", "append a 4096; setxattr a user.x y; fsync .; link a b; fsync .; truncate a 10; fsync ."),
    (
        "mixed-20",
        "creat a; append a 10",
        "creat b; append b 4096; link b c; rename c a; truncate a 100; setxattr b user.x 1; fsync a; unlink b; sync",
    ),
    (
        "mixed-21",
        "creat a; append a 4096; creat b; append b 4096",
        "append a 512; fallocate a punch-hole 0 4096; commit; exchange a b; append a 10; rename b a",
    ),
    (
        "mixed-23",
        "creat a; append a 4096",
        "creat b; append b 4096; mmapwrite b 0 2048; rename b a; creat c; append c 10; mmapwrite c 0 5; rename c d",
    ),
    ("mixed-22", "creat b", "open b; link @b c; unlink b; link @b d; creat b; rename c b; fsync b"),
    ("mixed-16", "", "creat a; msync a; creat b; append b 4096; msync b; creat c; mmapwrite b 0 10; msync c"),
    (
        "mixed-8",
        "creat a; append a 4096; creat b; append b 10",
        "append a 10; append b 20; link b c; unlink b; fsync c",
    ),
)
"""Used with each property's own family: operations that interfere with each other."""


def random_tree(random: Random, history: History) -> Tree:
    """A tree that a file system with little order could leave."""
    states = history.trees[len(history.workload.setup) : history.started + 1]
    edges = sorted({edge for state in states for entry in state.values() for run in entry.segments for edge in run[:2]})
    edges.append(max(edges, default=0) + 512)
    latest = random.randrange(len(states))
    entries = {}
    for path in sorted({path for state in states for path in state}):
        chosen = random.randrange(len(states)) if random.random() < 0.4 else latest
        entry = states[chosen].get(path)
        parent = path.rpartition("/")[0] or "."
        if entry is None or (parent != path and parent not in entries) or (path != "." and random.random() < 0.05):
            continue
        former = [state[path] for state in states if path in state and state[path].type == entry.type]
        entries[path] = spoilt(random, entry, former, edges) if random.random() < 0.6 else entry
    return Tree(entries.values())


def spoilt(random: Random, entry: Entry, former: list[Entry], edges: list[int]) -> Entry:
    """The entry with parts from other times."""
    other = random.choice(former)
    kind = random.choice(["bytes", "size", "fields"])
    if entry.type == "symlink":
        return replace(entry, target=random.choice(["", "here", entry.target]))
    if entry.type != "file" or kind == "fields":
        garbled = tuple((name, "00") for name, _ in entry.xattrs)
        return replace(entry, nlink=other.nlink, xattrs=random.choice([other.xattrs, garbled]))
    if kind == "size":
        size = random.choice([0, *edges])
        stretch = (Segment(entry.size, size, random.choice(["zero", "stale"])),) if size > entry.size else ()
        return replace(entry, size=size, segments=merged((*clipped(entry.segments, 0, size), *stretch)))
    runs: list[Segment] = []
    for start, end in zip([0, *edges], edges, strict=False):
        found = clipped((random.choice([entry, entry, other])).segments, start, min(end, entry.size))
        garbage = (Segment(start, end, random.choice(["zero", "stale"])),) if start < min(end, entry.size) else ()
        runs += found if found and random.random() < 0.85 else garbage
    return replace(entry, segments=merged(runs), size=runs[-1].end if runs else 0)


def random_history(random: Random, workload: Workload) -> History:
    first, count = len(workload.setup), len(workload.operations)
    started = count if random.random() < 0.7 else random.randint(first, count)
    return History(workload, started, max(first, started - (random.random() < 0.2)))


@pytest.mark.parametrize("checked", PROPERTIES, ids=lambda checked: checked.name)
def test_the_predicate_says_what_the_formula_says(checked: Property, pytestconfig: pytest.Config) -> None:
    random = Random(checked.name)
    trees = TREES_IN_FULL if pytestconfig.option.full else TREES_PER_HISTORY
    answers: Counter[bool] = Counter()
    for number in range(HISTORIES_MAX):
        if number >= HISTORIES_MIN and answers[True] and answers[False]:
            break
        workload = random.choice(MIXED if number % 2 else checked.workloads())
        history = random_history(random, workload)
        world = World(history)
        formula = FORMULAS[checked.name](world)
        for _ in range(trees):
            tree = random_tree(random, history)
            judgement = checked.examine(history, Observation(0, tree))
            holds = judgement.verdict is Verdict.HOLDS
            assert world.holds(formula, tree) == holds, (workload.to_text(), history, tree, judgement)
            answers[holds] += judgement.relevant
    assert answers[True], "no tree puts the question and is fine"
    assert answers[False], "no tree breaks the property"


@pytest.mark.parametrize(
    ("sources", "holds"),
    [("oo", True), ("on", False), ("no", False), ("nn", True), ("zo", True), ("zz", False), ("zn", False)],
)
def test_both_say_the_same_of_a_replacement_that_is_there_in_part(sources: str, holds: bool) -> None:
    """Each half is of the old file (o), of the new one (n), or zero (z). Random trees seldom have both files."""
    setup, operations = "creat a; append a 4096; append a 4096", "creat b; append b 4096; append b 4096; rename b a"
    (workload,) = family(("replaced", setup, operations))
    count = len(workload.operations)
    history = History(workload, count, count)
    before, after = history.trees[len(workload.setup)]["a"], history.trees[-1]["a"]
    zeros = (Segment(0, 4096, ZERO), Segment(4096, 8192, ZERO))
    halves = {"o": before.segments, "n": after.segments, "z": zeros}
    found = merged([halves[source][place] for place, source in enumerate(sources)])
    tree = Tree([history.trees[-1]["."], replace(after, segments=found)])
    checked = next(each for each in PROPERTIES if each.name == "P5")
    world = World(history)
    assert (
        checked.examine(history, Observation(0, tree)).verdict is Verdict.HOLDS,
        world.holds(FORMULAS["P5"](world), tree),
    ) == (holds, holds)


def test_every_property_has_a_formula() -> None:
    assert list(FORMULAS) and set(FORMULAS) == {checked.name for checked in PROPERTIES}
