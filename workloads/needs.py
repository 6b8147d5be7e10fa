"""What the calls of a workload need: files, folders, contents and attributes, made in the workload or in its set-up."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from postcrash.model import WorkloadBuilder
from postcrash.model.tree import ROOT_PATH, is_below, parent
from postcrash.model.units import BLOCK_BYTES
from postcrash.workloads import sizes
from postcrash.workloads.grammar import Grammar


@dataclass(eq=False, slots=True)
class Node:
    """A file, a symbolic link, a folder, or a special file, whose kind is its word of `mknod`."""

    kind: str = "file"
    size: int = 0
    attributes: set[str] = field(default_factory=set)


class NeedfulFiles:
    """The files of a workload in the making. What is missing is made, and noted if it can come first.

    The class that knows the calls inherits from it (`prerequisites.py`).
    """

    def __init__(self, grammar: Grammar) -> None:
        self._folders = {*grammar.folders, ROOT_PATH}
        self._nodes = {ROOT_PATH: Node("folder")}
        self._builder = WorkloadBuilder()
        self._held: set[str] = set()
        self._touched: set[str] = set()
        self.prerequisites: list[tuple[str, str]] = []
        """What the set-up can make, because no call before has to do with it: the kind and the path of each need."""

    def begin(self, prerequisites: Sequence[tuple[str, str]], *, is_logged: bool) -> None:
        """Make the prerequisites in the set-up."""
        for kind, path in prerequisites:
            _NEEDS[kind](self, path)
        self._builder.begin()
        for path in [path for kind, path in prerequisites if kind == "file" and is_logged]:
            self._builder.append(path, sizes.LOGGED_BYTES).fsync(path)
            self._nodes[path].size += sizes.LOGGED_BYTES

    def _needed(self, kind: str, path: str) -> None:
        """Meet a need. Note it if the set-up can meet it.

        The set-up can if it makes what the need rests on, and if no call so far has a path in, at or above this path.
        """
        rests_on = ("file", path) if kind in ("contents", "tail", "attribute") else ("folder", parent(path))
        is_touched = any(path == name or is_below(path, name) or is_below(name, path) for name in self._touched)
        if not is_touched and (rests_on in self.prerequisites or rests_on == ("folder", ROOT_PATH)):
            self.prerequisites.append((kind, path))
        _NEEDS[kind](self, path)

    def _parent(self, path: str) -> None:
        if parent(path) not in self._nodes:
            self._parent(parent(path))
            self._needed("folder", parent(path))

    def _need(self, path: str) -> Node:
        return self._need_kind(path, "folder" if path in self._folders else "file")

    def _need_kind(self, path: str, kind: str) -> Node:
        if path in self._nodes and self._nodes[path].kind != kind:
            self._remove(path)
        if path not in self._nodes:
            self._parent(path)
            self._needed(kind, path)
        return self._nodes[path]

    def _filled(self, path: str) -> Node:
        """A file that is not empty."""
        node = self._need(path)
        if not node.size:
            self._needed("contents", path)
        return node

    def _ending_inside(self, path: str) -> int:
        """The end of a file, which lies within a block."""
        if self._need(path).size % BLOCK_BYTES == 0:
            self._needed("tail", path)
        return self._nodes[path].size

    def _fill(self, path: str) -> None:
        self._builder.write(path, 0, sizes.APPEND_BYTES)
        self._nodes[path].size = sizes.APPEND_BYTES

    def _add_tail(self, path: str) -> None:
        self._builder.write(path, self._nodes[path].size, sizes.CUT_BYTES)
        self._nodes[path].size += sizes.CUT_BYTES

    def _set_attribute(self, path: str) -> None:
        self._builder.setxattr(path, sizes.ATTRIBUTE, sizes.VALUE)
        self._nodes[path].attributes.add(sizes.ATTRIBUTE)

    def _make_folder(self, path: str) -> None:
        self._builder.mkdir(path)
        self._nodes[path] = Node("folder")

    def _make_file(self, path: str) -> None:
        self._builder.creat(path)
        self._nodes[path] = Node()

    def _make_symlink(self, path: str, target: str = sizes.TARGET) -> None:
        self._builder.symlink(target, path)
        self._nodes[path] = Node("symlink")

    def _make_special(self, path: str, kind: str) -> None:
        self._builder.mknod(path, kind)
        self._nodes[path] = Node(kind)

    def _remove(self, path: str) -> None:
        """If it is there, with what is in it."""
        if path not in self._nodes:
            return
        self._empty(path)
        if self._nodes.pop(path).kind == "folder":
            self._builder.rmdir(path)
        else:
            self._builder.unlink(path)

    def _empty(self, path: str) -> None:
        for inside in sorted((name for name in self._nodes if parent(name) == path != name), reverse=True):
            self._remove(inside)

    def _move(self, places: Mapping[str, str]) -> None:
        """Names, and what is below them, get their new places at once."""
        moved = {}
        for old, new in places.items():
            for name in [name for name in self._nodes if name == old or is_below(name, old)]:
                moved[new + name[len(old) :]] = self._nodes.pop(name)
        self._nodes.update(moved)


_NEEDS: Mapping[str, Callable[[NeedfulFiles, str], None]] = {
    "folder": NeedfulFiles._make_folder,
    "file": NeedfulFiles._make_file,
    "symlink": NeedfulFiles._make_symlink,
    "fifo": lambda files, path: files._make_special(path, "fifo"),
    "char": lambda files, path: files._make_special(path, "char"),
    "contents": NeedfulFiles._fill,
    "tail": NeedfulFiles._add_tail,
    "attribute": NeedfulFiles._set_attribute,
}
