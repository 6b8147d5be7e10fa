"""P1 as a formula: the courses that the directory operations can have taken, and which of them fit the tree.

It is independent of the predicate in p1_ordered_directory_operations.py, as all formulas are (formulas.py).
"""

from collections.abc import Iterator
from posixpath import dirname
from typing import NamedTuple

import z3

from postcrash.model import Naming

from .logic import Formula, World, exists, forall

Named = frozenset[tuple[str, int]]
"""Names and the inodes that they stand for."""


class Course(NamedTuple):
    """A possible outcome of the directory operations: how many are half done, whether they are in order, the names."""

    halves: int
    in_order: bool
    names: Named


def p1(w: World) -> Formula:
    """A course that is in order fits the tree, and no course with fewer halves fits it.

    A course fits if the tree has its names and each name's file can be the course's file. If no course fits so, it is
    enough that the tree has the same names.
    """
    acting = [i for i in w.operations if w.operation(i).form.naming]
    if not acting:
        return z3.BoolVal(True)
    touched = [path for path in {p for t in w.trees for p in t} if any(path in names_of(w, i) for i in acting)]
    courses = set(_courses(w, acting, frozenset((path, entry.inode) for path, entry in w.trees[0].items())))

    def says(fits: dict[Course, Formula]) -> Formula:
        def is_simplest(course: Course) -> Formula:
            return forall([c for c in courses if c.halves < course.halves], lambda c: z3.Not(fits[c]))

        return exists([c for c in courses if c.in_order], lambda c: z3.And(fits[c], is_simplest(c)))

    def fit(path: str, inode: int | None, is_told: bool) -> Formula:
        if inode is None:
            return z3.Not(w.there(path))
        return can_be(w, path, inode) if is_told else w.there(path)

    by_files, by_names = (
        {c: forall(touched, lambda path: fit(path, dict(c.names).get(path), told)) for c in courses}  # noqa: B023
        for told in (True, False)
    )
    return z3.If(exists(courses, lambda c: by_files[c]), says(by_files), says(by_names))


def can_be(w: World, path: str, inode: int) -> Formula:
    """What is found has the inode's type and target, and no byte that was written only to other files."""
    trees = w.history.trees
    states = [e for tree in trees for e in (*tree.values(), *tree.held.values()) if e.inode == inode]
    every = {run.source for tree in trees for e in (*tree.values(), *tree.held.values()) for run in e.segments}
    foreign = [s for s in every - {run.source for e in states for run in e.segments} if s.startswith("write:")]
    length = max([0, *(run.end for tree in trees for e in tree.values() for run in e.segments)])
    is_alike = z3.And(
        w.shows("type", path) == w.code(states[0].type), w.shows("target", path) == w.code(states[0].target)
    )
    is_foreign = exists(w.places(0, length), lambda x: exists(foreign, lambda s: w.byte(path, x) == w.code(s)))
    return z3.And(is_alike, z3.Not(is_foreign))


def names_of(w: World, i: int) -> set[str]:
    """The names that an operation can make or take away."""
    operation = w.operation(i)
    naming, path, to = operation.form.naming, operation.path, operation.to
    moves = naming in (Naming.MOVE, Naming.SWAP)
    roots = [path, to] if moves else [to if naming is Naming.LINK else path]
    ever = {path for tree in w.history.trees for path in tree}
    return {*roots, *(path for path in ever for root in roots if moves and path.startswith(f"{root}/"))}


def _courses(w: World, acting: list[int], names: Named) -> Iterator[Course]:
    """Each operation is not there, is wholly there, or (a rename, an exchange) is half there."""

    def go(rest: list[int], course: Course, is_all_there: bool) -> Iterator[Course]:
        if not rest:
            yield course
            return
        yield from go(rest[1:], course, False)
        for names, halves in _leaves(w, rest[0], dict(course.names)):
            after = Course(course.halves + halves, course.in_order and is_all_there, frozenset(names.items()))
            yield from go(rest[1:], after, is_all_there and not halves)

    yield from go(acting, Course(0, True, names), True)


def _leaves(w: World, i: int, names: dict[str, int]) -> Iterator[tuple[dict[str, int], int]]:
    operation = w.operation(i)
    naming, path, to = operation.form.naming, operation.path, operation.to
    made = to if naming in (Naming.LINK, Naming.MOVE) else path
    has_place = (dirname(made) or ".") in names
    if naming in (Naming.MOVE, Naming.SWAP):
        yield from _moves(names, path, to, naming is Naming.SWAP) if path in names and has_place else []
    elif naming is Naming.REMOVE:
        yield from [({name: names[name] for name in names if name != path}, 0)] if path in names else []
    elif has_place and made not in names and (naming is Naming.MAKE or operation.is_held or path in names):
        is_of_name = naming is Naming.LINK and not operation.is_held
        yield {**names, made: names[path] if is_of_name else w.after(i)[path].inode}, 0


def _moves(names: dict[str, int], path: str, to: str, is_exchange: bool) -> Iterator[tuple[dict[str, int], int]]:
    def called(root: str, name: str) -> dict[str, int]:
        return {name + n[len(root) :]: names[n] for n in names if n == root or n.startswith(f"{root}/")}

    first, second = called(path, path), called(to, to)
    rest = {name: names[name] for name in names if name not in first}
    if not is_exchange:
        if names.get(to) == names[path]:
            yield names, 0
        else:
            yield from [({**rest, **called(path, to)}, 0), ({**names, **called(path, to)}, 1), (rest, 1)]
    elif to in names:
        bare = {name: rest[name] for name in rest if name not in second}
        new, old = called(path, to), called(to, path)
        yield {**bare, **new, **old}, 0
        yield from [
            ({**bare, **first, **new}, 1),
            ({**bare, **second, **old}, 1),
            ({**bare, **new}, 1),
            ({**bare, **old}, 1),
        ]
