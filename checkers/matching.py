"""Whether things that must all be there can be different ones of the things that were found."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from postcrash.model import Entry, Tree

Identity = int | str
CouldBe = Callable[[int, str], bool]
"""Whether an inode could be what is found under a path."""


def identity(entry: Entry) -> Identity:
    """What two entries have in common if they are names of one inode: its number, or the path if that is not known."""
    return entry.inode or entry.path


def mistaken_for_another(paths: Iterable[str]) -> str:
    """The end of a message about something that could be there under these paths, but only as what is another thing."""
    return f"; if {' or '.join(paths)} is it, something else that must be there is missing"


def unmatched(tree: Tree, places: Mapping[int, Sequence[str]], could_be: CouldBe) -> int | None:
    """Give each inode a thing in `tree` that it could be, and no thing to two inodes.

    Returns the first inode for which no thing is left. None if each inode gets one.

    `places` has the paths at which each inode can be, all of them in `tree`. `could_be` is asked only where the answer
    matters, because each look at contents that are not settled may double the work.
    """
    matching = _Matching(tree, places, could_be)
    return next((inode for inode in places if not matching.place(inode)), None)


class _Matching:
    """Which thing of `tree` each inode is. No thing is two inodes."""

    def __init__(self, tree: Tree, places: Mapping[int, Sequence[str]], could_be: CouldBe) -> None:
        self._tree, self._places, self._could_be = tree, places, could_be
        self._owners: dict[Identity, int] = {}
        self._things: dict[int, Identity] = {}

    def place(self, first: int) -> bool:
        """Whether there is something for this inode too. Others make room if they can be something else."""
        claimants: dict[Identity, int] = {}
        waiting = [first]
        for inode in waiting:
            for path in self._places[inode]:
                thing = identity(self._tree[path])
                if thing in claimants or not self._could_be(inode, path):
                    continue
                claimants[thing] = inode
                if thing not in self._owners:
                    self._give(thing, claimants)
                    return True
                waiting.append(self._owners[thing])
        return False

    def _give(self, thing: Identity | None, claimants: dict[Identity, int]) -> None:
        """Give a thing to the inode that asked for it, what this one had to the one that asked for that, and so on."""
        while thing is not None:
            inode = claimants[thing]
            left = self._things.get(inode)
            self._owners[thing], self._things[inode] = inode, thing
            thing = left
