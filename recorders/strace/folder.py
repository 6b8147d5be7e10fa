"""The names below the imported folder while the trace is read. Whatever lies outside of the folder is not known."""

from dataclasses import dataclass, field
from typing import Literal

from postcrash.model.quoting import shown_word
from postcrash.model.tree import ROOT_PATH

PATH_CHARACTERS_MAX = 4096
"""PATH_MAX of Linux, include/uapi/linux/limits.h."""
LINKS_MAX = 40
"""How many symbolic links Linux follows in one path, MAXSYMLINKS in include/linux/namei.h."""


class NotMappedError(Exception):
    """A call, or a part of its effect, has no counterpart in the workload. The text says why."""


@dataclass(eq=False, slots=True)
class TreeNode:
    """A file, directory or symbolic link, whatever names it has.

    children  of a directory
    names     the directories that hold it, with its name there; the first is the oldest
    size      bytes, of a file
    target    of a symbolic link
    handle    of a file that lost its last name while it was open
    """

    type: Literal["dir", "file", "symlink"]
    children: dict[str, "TreeNode"] = field(default_factory=dict)
    names: dict[tuple["TreeNode", str], None] = field(default_factory=dict)
    size: int = 0
    target: str = ""
    handle: str = ""


@dataclass(frozen=True, slots=True)
class PathPlace:
    """Where a path leads: a name in a directory, and its inode (None if there is none). The root has no directory."""

    directory: TreeNode | None
    name: str
    node: TreeNode | None

    def existing(self) -> TreeNode:
        """The inode at this place. Raises `NotMappedError` if there is none."""
        if self.node is None:
            raise NotMappedError(f"{shown_word(self.name)} is not there, as far as the trace tells")
        return self.node

    def new(self) -> TreeNode:
        """The directory of this place, whose name must be new. Raises `NotMappedError` if it is not."""
        if self.node is not None or self.directory is None:
            raise NotMappedError(f"{shown_word(self.name)} is there already, as far as the trace tells")
        return self.directory


class NameTree:
    """The tree below `roots`, which are absolute paths of one folder."""

    def __init__(self, roots: tuple[str, ...]) -> None:
        self.root = TreeNode("dir")
        self._roots = tuple([part for part in root.split("/") if part] for root in roots)

    def contains(self, path: str) -> bool:
        """Whether an absolute path without links lies in the folder."""
        return path.startswith("/") and self._inside([part for part in path.split("/") if part]) is not None

    def absolute(self, path: str) -> str:
        """The absolute path of a path in the folder."""
        return "/".join(["", *self._roots[0], path])

    def path_of(self, node: TreeNode) -> str | None:
        """A path of the inode relative to the folder. None if the inode has no name (any more)."""
        parts: list[str] = []
        while node is not self.root:
            if not node.names:
                return None
            node, name = next(iter(node.names))
            parts.append(name)
        return "/".join(reversed(parts)) or ROOT_PATH

    def find(self, base: str, path: str, *, follow: bool) -> PathPlace | None:
        """Where `path`, taken from the absolute path `base`, leads. None if that is outside of the folder.

        `follow` tells whether to follow a symbolic link at its end. Raises `NotMappedError`.
        """
        parts = self._parts(path if path.startswith("/") else f"{base}/{path}")
        done: list[str] = []
        place: PathPlace | None = None
        links = 0
        while parts:
            part = parts.pop()
            if part == "..":
                done = done[:-1]
                continue
            place = self._child(done, part)
            node = place.node if place else None
            if node is not None and node.type == "symlink" and (parts or follow):
                links += 1
                if links > LINKS_MAX:
                    raise NotMappedError(f"more than {LINKS_MAX} symbolic links in a path")
                done = [] if node.target.startswith("/") else done
                parts += self._parts(node.target)
            else:
                done.append(part)
        return self._at(done)

    def add(self, directory: TreeNode, name: str, node: TreeNode) -> TreeNode:
        """Give `node` a name, which must be new, and return `node`."""
        directory.children[name] = node
        node.names[directory, name] = None
        return node

    def remove(self, directory: TreeNode, name: str) -> TreeNode:
        """Remove a name, and return what it named."""
        node = directory.children.pop(name)
        del node.names[directory, name]
        return node

    def is_below(self, node: TreeNode, directory: TreeNode) -> bool:
        """Whether `node` is `directory` or lies in it."""
        while node is not directory and node is not self.root and node.names:
            node, _ = next(iter(node.names))
        return node is directory

    def _parts(self, path: str) -> list[str]:
        """The components of a path in reverse order."""
        if len(path) > 2 * PATH_CHARACTERS_MAX:
            raise NotMappedError(f"a path of more than {PATH_CHARACTERS_MAX} characters")
        return [part for part in reversed(path.split("/")) if part not in ("", ".")]

    def _inside(self, parts: list[str]) -> list[str] | None:
        for root in self._roots:
            if parts[: len(root)] == root:
                return parts[len(root) :]
        return None

    def _child(self, done: list[str], name: str) -> PathPlace | None:
        return self._at([*done, name]) if self._inside(done) is not None else None

    def _at(self, parts: list[str]) -> PathPlace | None:
        inside = self._inside(parts)
        if inside is None:
            return None
        if not inside:
            return PathPlace(None, ROOT_PATH, self.root)
        directory = self.root
        for name in inside[:-1]:
            child = directory.children.get(name)
            if child is None or child.type != "dir":
                raise NotMappedError(f"the directory {shown_word(name)} is not there, as far as the trace tells")
            directory = child
        return PathPlace(directory, inside[-1], directory.children.get(inside[-1]))
