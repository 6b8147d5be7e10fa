"""Each form declares what the simulation of its operation does, on a small tree with all sorts of arguments."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import pytest

from postcrash.model import (
    FORMS,
    Entry,
    Form,
    Naming,
    Operation,
    Persistence,
    Route,
    SimulationError,
    Tree,
    Workload,
    parse_workload,
    simulate,
)
from postcrash.model.argument import MODES, NODES
from postcrash.model.operation import PATHS, Kind
from postcrash.model.segments import written

SETUP = """
mkdir empty
mkdir full
creat full/file
creat file
append file 12288
setxattr file user.one 1
creat copy
reflink file 0 copy 0 12288
creat other
append other 8192
link other linked
open other
"""
TAG = 99
NAMES = ("empty", "full", "file", "copy", "other", "linked", "new")
ARGUMENTS: dict[Kind, tuple[str | int, ...]] = {
    **dict.fromkeys(PATHS, (*NAMES, "@other")),
    Kind.PATH: NAMES,
    Kind.HANDLE: ("@other",),
    Kind.TARGET: ("file",),
    **dict.fromkeys((Kind.OFFSET, Kind.SECTOR_OFFSET, Kind.BLOCK_OFFSET), (0, 4096)),
    **dict.fromkeys((Kind.LENGTH, Kind.SECTOR_LENGTH, Kind.SIZE), (4096, 16384)),
    Kind.SECONDS: (1,),
    Kind.MODE: MODES,
    Kind.NODE: NODES,
    Kind.XATTR_NAME: ("user.one", "user.two"),
    Kind.XATTR_VALUE: ("2",),
}
EACH_FORM = pytest.mark.parametrize("form", FORMS.values(), ids=lambda form: form.word)


@cache
def steps(word: str) -> tuple[tuple[Operation, Tree, Tree], ...]:
    """The operation with all arguments with which it succeeds, and the trees before and after it."""
    return tuple(_steps(FORMS[word]))


def _steps(form: Form) -> Iterator[tuple[Operation, Tree, Tree]]:
    setup = parse_workload(SETUP, "setup").ops
    for values in product(*(ARGUMENTS[argument.kind] for argument in form.arguments)):
        given: dict[str, Any] = {argument.field: value for argument, value in zip(form.arguments, values, strict=True)}
        operation = Operation(form.word, tag=TAG, **given)
        try:
            *_, before, after = simulate(Workload(form.word, setup, (operation,)))
        except SimulationError:
            continue
        yield operation, before, after


def inodes(tree: Tree) -> dict[int, Entry]:
    """The inodes that have a name or a handle."""
    return {entry.inode: entry for entry in (*tree.values(), *tree.held.values())}


def naming(before: Tree, after: Tree) -> Naming | None:
    """What has happened to the names in the root directory."""
    was, now = ({path: entry.inode for path, entry in tree.items() if "/" not in path} for tree in (before, after))
    if was == now:
        return None
    given = {inode for path, inode in now.items() if was.get(path) != inode}
    lost = {inode for path, inode in was.items() if path not in now}
    if lost:
        return Naming.MOVE if lost <= given else Naming.REMOVE
    if was.keys() == now.keys():
        return Naming.SWAP
    return Naming.LINK if given <= inodes(before).keys() else Naming.MAKE


def as_simulated(form: Form) -> Form:
    """The form with the effects of its operation in the simulation, in place of the effects that it declares."""
    seen: dict[str, set[Any]] = {name: set() for name in ("naming", "content", "attributes", "data", "opens")}
    for operation, before, after in steps(form.word):
        was, now = inodes(before), inodes(after)
        common = was.keys() & now.keys()
        altered = {i for i in common if (was[i].size, was[i].segments) != (now[i].size, now[i].segments)}
        named = {name: before[path].inode for name in ("path", "to") if (path := getattr(operation, name)) in before}
        if altered and len(set(named.values())) == len(named):
            seen["content"] |= {tuple(name for name, inode in named.items() if {inode} == altered)}
        seen["naming"].add(naming(before, after))
        seen["attributes"].add(any(was[i].xattrs != now[i].xattrs for i in common))
        seen["data"].add(any(run.source == written(TAG) for entry in now.values() for run in entry.segments))
        seen["opens"].add(after.held.keys() > before.held.keys())
    assert seen["naming"], f"{form.word} succeeds with no arguments that are tried"
    (did,) = seen["naming"] - {None} or {None}
    ((content,),) = seen["content"] or {(None,)}
    writes = form.data or Route.CACHE if True in seen["data"] else None
    attributes, opens = (True in seen[name] for name in ("attributes", "opens"))
    return replace(form, naming=did, content=content, attributes=attributes, data=writes, opens=opens)


@EACH_FORM
def test_it_does_what_it_declares(form: Form) -> None:
    assert as_simulated(form) == form


@EACH_FORM
def test_a_false_declaration_is_told(form: Form) -> None:
    others: dict[str, tuple[object, object]] = {
        "naming": (Naming.MAKE, Naming.MOVE),
        "content": ("path", "to"),
        "attributes": (True, False),
        "data": (Route.CACHE, None),
        "opens": (True, False),
    }
    for name, values in others.items():
        for value in values:
            declared: dict[str, Any] = {name: value}
            false = replace(form, **declared)
            is_so = getattr(form, name) == value or (name == "data" and value and form.data)
            assert (as_simulated(false) == false) == bool(is_so), f"{name}={value}"


@EACH_FORM
def test_what_it_makes_durable_is_something_that_it_names(form: Form) -> None:
    assert not (form.persistence and form.environment)
    assert not (form.environment and (form.changes_tree or form.opens))
    if form.persistence:
        assert (form.persistence is Persistence.EVERYTHING) == (not form.arguments)
        assert (form.persistence is Persistence.OWN) == bool(form.data)
    if form.fsyncs:
        assert form.persistence is (Persistence.OWN if form.data else Persistence.FILE)
