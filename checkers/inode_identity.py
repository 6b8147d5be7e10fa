"""Compares an entry that was found after a crash with the states that an inode ever had."""

from collections.abc import Iterator
from itertools import pairwise

from postcrash.checkers.inodes import Past
from postcrash.model import Entry, all_from
from postcrash.model.segments import ZERO
from postcrash.model.simulate import DEVICES
from postcrash.model.tree import UNREAD


def mismatch(past: Past, entry: Entry) -> str:
    """Why `entry` cannot be the inode, its bytes aside. Empty if it can be, or could not be read."""
    if entry.error:
        return ""
    if entry.type not in past.types:
        return f"{entry.path} is a {entry.type}, which it never was"
    if entry.size > past.size:
        return f"{entry.path} is {entry.size} bytes long, but it never had more than {past.size}"
    if entry.type == "symlink" and entry.target not in past.targets:
        return f"{entry.path} points to {entry.target!r}, but no operation made it point there"
    if entry.type in DEVICES and entry.target not in past.targets:
        return f"{entry.path} is the {entry.type} device {entry.target}, but no operation made that"
    for name, value in entry.xattrs:
        if name.startswith("user.") and (name, value) not in past.xattrs:
            return f"attribute {name} of {entry.path} is {bytes.fromhex(value)!r}, but no operation set it so"
    return ""


def foreign_range(past: Past, entry: Entry) -> tuple[int, int] | None:
    """The first stretch of a file with bytes that are neither zero nor were ever in the inode at that place.

    None if there is no such stretch. Bytes that could not be read count as the inode's own.
    """
    if entry.type != "file" or entry.error:
        return None
    own = {ZERO} | {run.source for run in entry.segments if run.source.startswith(UNREAD)}
    stretches = pairwise(sorted({*_edges(past, entry), 0, entry.size}))
    return next((each for each in stretches if not all_from(entry, *each, own | _written(past, *each))), None)


def _edges(past: Past, entry: Entry) -> Iterator[int]:
    return (edge for run in past.written for edge in (run.start, run.end) if edge < entry.size)


def _written(past: Past, start: int, end: int) -> set[str]:
    return {run.source for run in past.written if run.start <= start and end <= run.end}
