"""Each property as a formula over a history and the tree after a crash (logic.py).

Each formula states the property's prose independently, and no predicate is made from it. i and j are numbers of
operations: i is before j if i < j.
"""

from collections.abc import Callable, Iterator
from posixpath import basename, dirname, normpath

import z3

from postcrash.model import Naming, Persistence, Route, words_where

from .formula_p1 import p1
from .logic import Formula, Thing, World, exists, forall

Groups = Callable[[World], list[tuple[int, ...]]]

SECTOR, BLOCK = 512, 4096
UNNAMED = {"dwrite-osync"}
"""Words to which no formula applies, although they write (selection.py)."""
NAMING = {*words_where(lambda form: form.naming and form.naming is not Naming.SWAP)}
WRITE_CALLS = {*words_where(lambda form: form.data is Route.CACHE)}
WRITING = {*words_where(lambda form: form.data)} - UNNAMED
UNMAPPED = WRITING - {*words_where(lambda form: form.data is Route.MAPPING)}
RESHAPING = {*words_where(lambda form: form.content)} - UNNAMED
CHANGING = {*words_where(lambda form: form.changes_tree)} - UNNAMED

# Which operations


def words(*wanted: str) -> Groups:
    """Operations with one of these words, each as a group of its own. Operations on a handle are left out."""
    return lambda w: [(i,) for i in w.operations if w.operation(i).word in wanted and not w.operation(i).is_held]


def start(w: World, i: int) -> int:
    """Where the bytes of a write begin."""
    offset = w.operation(i).offset
    return w.before(i)[w.operation(i).path].size if offset is None else offset


def end(w: World, i: int) -> int:
    """Where the bytes of a write end."""
    return start(w, i) + (w.operation(i).length or 0)


def size(w: World, i: int) -> int:
    """The size of the file before a write to it."""
    return w.before(i)[w.operation(i).path].size


def those(groups: Groups, *conditions: Callable[[World, int], bool]) -> Groups:
    """Single operations that meet all `conditions`."""
    return lambda w: [(i,) for (i,) in groups(w) if all(condition(w, i) for condition in conditions)]


def overwrites(w: World, i: int) -> bool:
    """All its bytes replace other bytes."""
    return end(w, i) <= size(w, i)


def appends(w: World, i: int) -> bool:
    """Its bytes begin at the end of the file."""
    return start(w, i) == size(w, i)


def in_one(unit: int) -> Callable[[World, int], bool]:
    """All its bytes are in one unit."""
    return lambda w, i: start(w, i) // unit == (end(w, i) - 1) // unit


def in_several(unit: int) -> Callable[[World, int], bool]:
    """Its bytes are in several units."""
    return lambda w, i: not in_one(unit)(w, i)


def is_unit(unit: int) -> Callable[[World, int], bool]:
    """Its bytes are exactly one unit."""
    return lambda w, i: w.operation(i).length == unit and start(w, i) % unit == 0


def mode(*modes: str) -> Callable[[World, int], bool]:
    """The mode of a fallocate is one of these."""
    return lambda w, i: w.operation(i).mode in modes


def followed(first: Groups, second: Groups) -> Groups:
    """Each of `first`, together with the next of `second` that is about the same file."""

    def both(w: World) -> Iterator[tuple[int, ...]]:
        for (i,) in first(w):
            later = [k for (k,) in second(w) if k > i and same_file(w, i, k)]
            yield from [(i, later[0])] if later else []

    return lambda w: list(both(w))


# The three kinds


def atomic(groups: Groups) -> Callable[[World], Formula]:
    """Each group is there as a whole, or not at all."""
    return lambda w: forall(groups(w), lambda g: z3.Or(w.whole(*g), w.untouched(*g)))


ANY = words(*CHANGING)


def ordered(
    groups: Groups,
    later: Groups = ANY,
    related: Callable[[World, int, int], bool] = lambda w, i, j: True,
    seen: Callable[[World, int], Formula] = lambda w, j: w.visible(j),
) -> Callable[[World], Formula]:
    """If i is before j and j is visible, i is whole."""
    return lambda w: forall(
        [(g, j) for g in groups(w) for (j,) in later(w) if g[-1] < j and related(w, g[-1], j)],
        lambda pair: z3.Implies(seen(w, pair[1]), w.whole(*pair[0])),
    )


def visible_by_name(w: World, j: int) -> Formula:
    """The operation is visible, and the name that it gives is there."""
    return z3.And(w.visible(j), w.there(w.operation(j).to))


def durable(groups: Groups, *barriers: str, of: str = "") -> Callable[[World], Formula]:
    """If i is before a returned barrier j, all that i changes and j covers is as after i, if it can be found.

    With `of`, only barriers of a directory ("dir"), or of something else ("file"), count.
    """

    def says(w: World) -> Formula:
        promised = [
            thing
            for (i,) in groups(w)
            for j in w.operations
            if w.returned(j) and (i < j and w.operation(j).word in barriers if barriers else i == j)
            if not of or (w.before(j)[w.operation(j).path].type == "dir") is (of == "dir")
            for thing in w.of(i)
            if not barriers or covers(w, j, thing)
        ]
        return forall(promised, lambda thing: z3.Implies(thing.is_told, z3.Or(thing.as_after, is_nameless(w, thing))))

    return says


def is_nameless(w: World, thing: Thing) -> Formula:
    """The thing is part of what a file holds, and the file cannot be found."""
    return forall(thing.names, lambda name: z3.Not(w.there(name))) if thing.names else z3.BoolVal(False)


def covers(w: World, j: int, thing: Thing) -> bool:
    """sync and syncfs cover everything, fsync of a directory the names in it, and other barriers their file.

    A name is not covered if a directory on the way to it is ever another one, or ever has another path.
    """
    if w.operation(j).form.persistence is Persistence.EVERYTHING:
        return True
    above = [thing.path[:at] for at, letter in enumerate(thing.path) if letter == "/"]
    if not thing.is_content and not all(is_still(w, directory) for directory in above):
        return False
    meant = w.before(j)[w.operation(j).path]
    if meant.type == "dir":
        return meant.path == (dirname(thing.path) or ".") and not thing.is_content
    return meant.inode == thing.inode


def meant_by(w: World, i: int) -> int | None:
    """The number of the file that the operation's path names."""
    path = w.operation(i).path
    return next((tree[path].inode for tree in (w.before(i), w.after(i)) if path in tree), None)


def same_file(w: World, i: int, j: int) -> bool:
    """Both operations are about the same file."""
    return meant_by(w, i) == meant_by(w, j)


def other_file(w: World, i: int, j: int) -> bool:
    """The operations are about different files."""
    return not same_file(w, i, j)


def changed_directories(w: World, i: int) -> set[int]:
    """The directories that have other names in them after the operation."""
    before, after = ({(path, tree[path].inode) for path in tree} for tree in (w.before(i), w.after(i)))
    operation = w.operation(i)
    paths = {path for path, _ in before ^ after} & {operation.path, operation.to}
    return {tree[dirname(path) or "."].inode for tree in (w.before(i),) for path in paths}


def other_directory(w: World, i: int, j: int) -> bool:
    """The operations change names in different directories only."""
    return changed_directories(w, i).isdisjoint(changed_directories(w, j))


def bystanders(w: World) -> Formula:
    """If there is a write to a file, what no operation has changed in the file is as it was."""

    def says(path: str) -> Formula:
        entries = [tree.get(path) for tree in w.trees]
        if any(e is None or e.type != "file" or e.inode != w.trees[0][path].inode for e in entries):
            return z3.BoolVal(True)
        if not any(w.operation(i).path == path and w.operation(i).tag is not None for i in w.operations):
            return z3.BoolVal(True)
        steady = [(x, w.known_byte(w.trees[0], path, x)) for x in w.places(0, w.trees[0][path].size)]
        steady = [(x, s) for x, s in steady if all(w.known_byte(tree, path, x) == s for tree in w.trees)]
        kept = forall(steady, lambda pair: w.byte(path, pair[0]) == w.code(pair[1]))
        return z3.Implies(w.there(path), kept)

    return forall(w.trees[0], says)


# HotDep'13


def is_still(w: World, directory: str, *, to_the_end: bool = False) -> bool:
    """The path is one directory's, and this has no other path, in what had started or in all of the recorded part."""
    trees = w.history.trees[w.first :] if to_the_end else w.trees
    meant = next(tree[directory].inode for tree in trees if directory in tree)
    paths = {path for tree in trees for path in tree if tree[path].inode == meant}
    return paths == {directory} and all(tree[directory].inode == meant for tree in trees if directory in tree)


def own_names(w: World, inode: int) -> list[str]:
    """The names that can only be the inode's. No other inode has them, and no directory above them is ever moved."""
    trees = w.history.trees[w.first :]

    def is_own(name: str) -> bool:
        return all(tree[name].inode == inode for tree in trees if name in tree)

    names = sorted({path for tree in trees for path in tree if tree[path].inode == inode})
    above = {name: [name[:at] for at, letter in enumerate(name) if letter == "/"] for name in names}
    return [name for name in names if is_own(name) and all(is_still(w, each, to_the_end=True) for each in above[name])]


def lone_appends(w: World, wanted: set[str]) -> dict[int, list[str]]:
    """Appends to files that nothing else changes, even those that have not begun, with the names of each file."""
    workload, trees = w.history.workload, w.history.trees
    recorded = range(w.first, len(workload.operations))
    writers = [k for k in recorded if workload.operations[k].word in RESHAPING]
    written = {k: trees[k][workload.operations[k].changed_file or ""].inode for k in writers}
    named = [i for i in writers if w.operation(i).word in wanted and not w.operation(i).is_held and appends(w, i)]
    found = {i: own_names(w, written[i]) for i in named if list(written.values()).count(written[i]) == 1}
    return {i: names for i, names in found.items() if w.operation(i).path in names}


def shows(w: World, i: int, until: int, names: list[str]) -> Formula:
    """The bytes of a write are there, up to `until`, under one of these names."""
    source = w.code(w.source(i))
    return exists(names, lambda name: forall(w.places(start(w, i), until), lambda x: w.byte(name, x) == source))


def p2(w: World) -> Formula:
    """If the file has grown, it has grown by no more than was appended, and the new bytes are those appended."""

    def says(pair: tuple[int, str]) -> Formula:
        i, path = pair
        source = w.code(w.source(i))
        has_grown = z3.And(w.is_file(path), w.size(path) > start(w, i))
        appended = forall(
            w.places(start(w, i), end(w, i)),
            lambda x: z3.Implies(x < w.size(path), w.byte(path, x) == source),
        )
        return z3.Implies(has_grown, z3.And(w.size(path) <= end(w, i), appended))

    found = lone_appends(w, UNMAPPED)
    return forall([(i, name) for i, names in found.items() for name in names], says)


def p2_null(w: World) -> Formula:
    """The same as `p2`, but from some place on there may be zeros."""

    def says(pair: tuple[int, str]) -> Formula:
        i, path = pair
        source = w.code(w.source(i))
        has_grown = z3.And(w.is_file(path), w.size(path) > start(w, i))
        places = w.places(start(w, i), end(w, i))

        def until(cut: int) -> Formula:
            return forall(
                places,
                lambda x: z3.Implies(x < w.size(path), w.byte(path, x) == (source if x < cut else w.code("zero"))),
            )

        return z3.Implies(has_grown, z3.And(w.size(path) <= end(w, i), exists([*places, end(w, i)], until)))

    found = lone_appends(w, UNMAPPED)
    return forall([(i, name) for i, names in found.items() for name in names], says)


def p3(w: World) -> Formula:
    """For appends i before j to two files: if the first byte of j is there, all of i is there."""
    trees, names = w.history.trees, lone_appends(w, WRITING)
    appending = [i for i in names if all(w.operation(i).path in tree for tree in trees[i:])]

    def says(pair: tuple[int, int]) -> Formula:
        i, j = pair
        return z3.Implies(shows(w, j, start(w, j) + 1, names[j]), shows(w, i, end(w, i), names[i]))

    return forall([(i, j) for i in appending for j in appending if i < j and other_file(w, i, j)], says)


def p4(w: World) -> Formula:
    """If creation i and a later flush j of the file have returned, the name is there unless something takes it.

    msync of a file without bytes is no call.
    """
    flushes = [j for (j,) in words("fsync", "fdatasync", "msync")(w) if w.returned(j)]
    promised = []
    for (i,) in words("creat")(w):
        path = w.operation(i).path
        inode = w.after(i)[path].inode
        for j in flushes:
            trees = w.history.trees[j : w.history.started + 1]
            flushed = w.before(j)[w.operation(j).path]
            is_called = w.operation(j).word != "msync" or flushed.size > (w.operation(j).offset or 0)
            if i < j and flushed.inode == inode and is_called:
                stays = all(path in tree and tree[path].inode == inode for tree in trees)
                promised += [(path, j)] if stays else []

    def says(promise: tuple[str, int]) -> Formula:
        path, j = promise
        directory = w.before(j)[dirname(path) or "."].inode
        known = w.history.trees[: w.history.started + 1]
        places = {name for tree in known for name in tree if tree[name].inode == directory}
        return exists(places, lambda place: w.is_file(normpath(f"{place}/{basename(path)}")))

    return forall(promised, says)


def p5(w: World) -> Formula:
    """If the new name of rename i has a byte that only the new file has, or no byte of the old one, it has all data."""

    def says(i: int) -> Formula:
        name = w.operation(i).to
        old, new = w.before(i)[name], w.after(i)[name]
        old_sources = {run.source for run in old.segments if run.source.startswith("write:")}
        new_sources = {run.source for run in new.segments if run.source.startswith("write:")} - old_sources
        length = max(entry.size for tree in w.trees for entry in tree.values())

        def shows(sources: set[str]) -> Formula:
            return exists(w.places(0, length), lambda x: exists(sources, lambda s: w.byte(name, x) == w.code(s)))

        is_old = z3.And(shows(old_sources), z3.Not(shows(new_sources)))
        has_new = forall(
            [run for run in new.segments if run.source.startswith("write:") and run.source not in stored(w)],
            lambda run: forall(w.places(run.start, run.end), lambda x: w.byte(name, x) == w.code(run.source)),
        )
        return z3.Or(z3.And(w.there(name), is_old), z3.And(w.there(name), has_new))

    return forall([i for (i,) in words("rename")(w) if _replaces_data(w, i)], says)


def stored(w: World) -> set[str]:
    """The sources of bytes that were stored through a mapping, in the set-up too."""
    every = w.history.workload.operations
    return {f"write:{each.tag}" for each in every if each.word == "mmapwrite"}


def _replaces_data(w: World, i: int) -> bool:
    """A new file with data gets the name of an old file with data, and neither is changed under that name."""
    name = w.operation(i).to
    if name not in w.before(i):
        return False
    old, new = w.before(i)[name], w.before(i)[w.operation(i).path]
    before = [tree.get(name) for tree in w.history.trees[w.first : i + 1]]
    after = [tree.get(name) for tree in w.history.trees[i + 1 : w.history.started + 1]]
    old_data, new_data = ({r.source for r in entry.segments if r.source.startswith("write:")} for entry in (old, new))
    has_data = bool(old_data) and bool(new_data - stored(w))
    is_new = all(entry.inode != new.inode for entry in w.trees[0].values())
    return (
        has_data
        and is_new
        and all(
            entry is not None and (entry.inode, entry.segments) == (meant.inode, meant.segments)
            for entries, meant in ((before, old), (after, new))
            for entry in entries
        )
    )


# The catalogue

_WRITES = words(*WRITE_CALLS)
_TO_ZERO = those(words("truncate"), lambda w, i: w.operation(i).length == 0)
_APPENDS = those(_WRITES, appends)
_ATTRIBUTES = words(*words_where(lambda form: form.attributes))
_DIRECTORY = words(*NAMING)
_NEW_NAME = those(words("rename"), lambda w, i: w.operation(i).to not in w.before(i))

FORMULAS: dict[str, Callable[[World], Formula]] = {
    "P1": p1,
    "P2": p2,
    "P2-null": p2_null,
    "P3": p3,
    "P4": p4,
    "P5": p5,
    "O-sector-overwrite": atomic(those(_WRITES, overwrites, in_one(SECTOR))),
    "O-sector-append": atomic(those(_WRITES, appends, in_one(SECTOR))),
    "O-block-overwrite": atomic(those(_WRITES, overwrites, in_one(BLOCK))),
    "O-block-append": atomic(those(_WRITES, appends, in_one(BLOCK))),
    "O-blocks": atomic(those(_WRITES, in_several(BLOCK))),
    "O-prefix-append": p2,
    "O-dir": atomic(_DIRECTORY),
    "O-overwrite-any": ordered(those(_WRITES, overwrites)),
    "O-append-rename-any": ordered(followed(_APPENDS, words("rename"))),
    "O-trunc-append-any": ordered(followed(_TO_ZERO, _APPENDS)),
    "O-append-append": ordered(_APPENDS, _APPENDS, same_file),
    "O-append-any": ordered(_APPENDS),
    "O-dir-any": ordered(_DIRECTORY),
    "S-safe-append": p2,
    "S-powersafe-overwrite": bystanders,
    "S-atomic-512": atomic(those(_WRITES, is_unit(SECTOR))),
    "S-atomic-4k": atomic(those(_WRITES, is_unit(BLOCK))),
    "S-atomic": atomic(_WRITES),
    "S-sequential": ordered(_WRITES, _WRITES),
    "S-sync-dir": durable(_DIRECTORY),
    "A-rename": atomic(words("rename")),
    "A-exchange": atomic(words("exchange")),
    "A-link": atomic(words("link")),
    "A-unlink": atomic(words("unlink")),
    "A-symlink": atomic(words("symlink")),
    "A-truncate": atomic(words("truncate")),
    "A-fallocate": atomic(those(words("fallocate"), mode("none", "keep-size"))),
    "A-punch": atomic(those(words("fallocate"), mode("punch-hole"))),
    "A-zero-range": atomic(those(words("fallocate"), mode("zero-range", "zero-range-keep-size"))),
    "A-mmap": atomic(those(words("mmapwrite"), overwrites, in_one(BLOCK))),
    "A-direct": atomic(those(words("dwrite"), in_one(BLOCK))),
    "A-untorn": atomic(those(words("awrite", "awrite-odsync"), overwrites)),
    "A-xattr": atomic(_ATTRIBUTES),
    "R-rename-new": ordered(words(*UNMAPPED), _NEW_NAME, same_file, visible_by_name),
    "R-same-file": ordered(_WRITES, _WRITES, same_file),
    "R-two-files": ordered(_WRITES, _WRITES, other_file),
    "R-two-dirs": ordered(_DIRECTORY, _DIRECTORY, other_directory),
    "R-append-dir": ordered(_APPENDS, _DIRECTORY),
    "R-dir-append": ordered(_DIRECTORY, _APPENDS),
    "R-truncate-any": ordered(words("truncate")),
    "R-fallocate-any": ordered(words("fallocate")),
    "R-mmap-any": ordered(words("mmapwrite")),
    "R-direct-any": ordered(words("dwrite")),
    "R-xattr-any": ordered(_ATTRIBUTES),
    "D-msync-data": durable(words("mmapwrite"), "msync"),
    "D-osync-data": durable(words("write-osync")),
    "D-odsync-data": durable(words("write-odsync")),
}

_THINGS = {
    "data": words(*WRITING),
    "size": words("truncate"),
    "name": words("creat"),
    "rename": words("rename"),
    "link": words("link"),
    "xattr": _ATTRIBUTES,
    "hole": those(words("fallocate"), mode("punch-hole")),
}
_BARRIERS = {
    "return": ((), ""),
    "fsync": (("fsync",), "file"),
    "fdatasync": (("fdatasync",), "file"),
    "dir": (("fsync",), "dir"),
    "fdatasync-dir": (("fdatasync",), "dir"),
    "syncfs": (("syncfs",), ""),
    "sync": (("sync",), ""),
}
FORMULAS.update(
    {
        f"D-{way}-{thing}": durable(groups, *barriers, of=of)
        for way, (barriers, of) in _BARRIERS.items()
        for thing, groups in _THINGS.items()
        if of != "dir" or thing in ("name", "rename", "link")
    }
)
FORMULAS["D-return-data"] = durable(words(*UNMAPPED))
"""The formula of each property, by its name."""
