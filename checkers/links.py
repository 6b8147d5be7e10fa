"""Directory entries of simulated trees, by the directory's inode: what a name stands for, whatever the path.

Simulated inodes have one number in all trees of a workload (`postcrash.model.simulate`).
"""

from collections.abc import Iterator
from typing import NamedTuple

from postcrash.model import Tree
from postcrash.model.tree import ROOT_PATH, parent


class Link(NamedTuple):
    """The name `name` in the directory with the inode number `directory`."""

    directory: int
    name: str


def within(folder: str, name: str) -> str:
    """The path of `name` in the directory `folder`."""
    return name if folder == ROOT_PATH else f"{folder}/{name}"


def chain(path: str) -> Iterator[str]:
    """`path` and the directories on the way to it, outermost first, without the root."""
    if path != ROOT_PATH:
        parts = path.split("/")
        yield from ("/".join(parts[: count + 1]) for count in range(len(parts)))


def link_of(tree: Tree, path: str) -> Link:
    """The directory entry at the end of `path`, which must be in `tree`."""
    return Link(tree[parent(path)].inode, path.rpartition("/")[2])


def links(tree: Tree) -> dict[Link, int]:
    """The inode number of each directory entry of `tree`."""
    return {link_of(tree, path): tree[path].inode for path in tree.paths() if path != ROOT_PATH}
