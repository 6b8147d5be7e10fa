"""What a grammar of bounded workloads is: data only."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from postcrash.model.tree import ROOT_PATH, parent


@dataclass(frozen=True, slots=True)
class Call:
    """An operation with its arguments: `falloc foo punch-hole append`.

    word   as in the grammar
    paths  one or two
    mode   of fallocate; of mknod the kind of file
    range  a word for the range, which depends on the file's size then
    """

    word: str
    paths: tuple[str, ...] = ()
    mode: str = ""
    range: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.word, *self.paths, self.mode, self.range)))


@dataclass(frozen=True, slots=True)
class Template:
    """Calls that differ in their arguments only: one for each choice, without those that name one path twice."""

    word: str
    paths: tuple[tuple[str, ...], ...]
    modes: tuple[str, ...] = ("",)
    ranges: tuple[str, ...] = ("",)

    def calls(self) -> Iterator[Call]:
        """All of them, the last argument changing first."""
        for *paths, mode, span in product(*self.paths, self.modes, self.ranges):
            if len(set(paths)) == len(paths):
                yield Call(self.word, tuple(paths), mode, span)


Setup = Literal["new", "synced", "logged"]
SETUPS: dict[Setup, str] = {
    "new": "what calls need is made in the workload",
    "synced": "it is made before, and durable",
    "logged": "it is durable, and its files are then appended to and fsynced",
}
"""What the files and folders that calls need have been through. What calls need of each other's work is made new."""

Scope = Literal["related", "used", "everything", "nothing"]


@dataclass(frozen=True, slots=True)
class Point:
    """What may stand after a call.

    word    an operation; empty: nothing does
    scope   on which paths: those that the workload's calls name, with their siblings and parents if `related`;
            `everything`: it takes no path
    files   only on files, not on directories
    last    also after the last call, which something must make durable
    """

    word: str
    scope: Scope
    files: bool = False
    last: bool = True


Reuse = Callable[[Sequence[Call]], bool]


@dataclass(frozen=True, slots=True)
class Grammar:
    """Which workloads there are.

    files, folders  all paths, in the order in which points name them
    templates       the calls
    points          what may follow a call
    durable         words of calls that make themselves durable: no point follows them, though workloads are numbered
                    as if one did
    related_max     workloads of so many calls at most have points on related paths; longer ones on used paths only
    reuse           whether calls belong together, so that the workload is one of the grammar
    checkpoint      whether the tail of each workload writes metadata to its own place: that takes many times as long on
                    xfs, whose write-back has many blocks in flight
    setups          which are usual: a space can have others
    """

    name: str
    files: tuple[str, ...]
    folders: tuple[str, ...]
    templates: tuple[Template, ...]
    points: tuple[Point, ...]
    durable: Collection[str] = ()
    related_max: int = 2
    reuse: Reuse = lambda calls: True
    checkpoint: bool = True
    setups: tuple[Setup, ...] = ("new",)

    def calls(self) -> tuple[Call, ...]:
        """Every call."""
        return tuple(call for template in self.templates for call in template.calls())

    def points_after(self, used: frozenset[str], length: int, *, last: bool) -> tuple[Call, ...]:
        """What may follow a call of a workload of `length` calls that name the paths `used`."""
        found = []
        for point in self.points:
            if last and not point.last:
                continue
            related = point.scope == "related" and length <= self.related_max
            paths = self._related(used) if related else used
            if point.scope in ("related", "used"):
                names = self.files if point.files else (*self.files, *self.folders, ROOT_PATH)
                found += [Call(point.word, (path,)) for path in names if path in paths]
            else:
                found.append(Call(point.word))
        return tuple(found)

    def _related(self, paths: frozenset[str]) -> frozenset[str]:
        return paths.union(*({self._sibling(path), parent(path)} for path in paths))

    def _sibling(self, path: str) -> str:
        """The path beside it: names of one folder come in pairs, as folders do. The root is beside nothing."""
        if path == ROOT_PATH:
            return path
        among = self.folders if path in self.folders else self.files
        near = [name for name in among if parent(name) == parent(path) and name != path]
        return near[0] if near else path
