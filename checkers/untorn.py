"""A write with RWF_ATOMIC is there as a whole after a crash, or not at all.

readv(2): "Torn-write protection means that for a power or any other hardware failure, all or none of the data from the
write will be stored, but never a mix of old and new data." It does not matter what was in the range before: blocks of
several extents, holes, space that was allocated and not written, blocks that are shared with another file.

The checker looks at files that have a byte of such a write where the write put it. Then the file must show everything
that the same write with O_SYNC would have made durable (`obligations.py`): each byte of its range comes from the write,
or from a later operation that had started. If no byte is there, nothing is wrong: whether the write is durable,
`durability` checks.

Not checked: a file whose name may stand for another file with the same bytes, which reflink gave it.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from postcrash.checkers.checker import Checker
from postcrash.checkers.inodes import pasts
from postcrash.checkers.obligations import whole_write
from postcrash.model import Entry, History, Observation, Workload, any_from
from postcrash.model.history import trees_of
from postcrash.model.judge import Opinion, holds, violated
from postcrash.model.segments import written
from postcrash.properties.wording import operation_at, shown_bytes


class Untorn(Checker):
    """A write with RWF_ATOMIC is not torn."""

    name = "untorn"
    statement = "After a crash all bytes of a write with RWF_ATOMIC are there, or none of them."
    depends_on: tuple[str, ...] = ("started",)

    def examine(self, history: History, observation: Observation) -> Opinion:
        """The first file in which a part of a write is missing. Relevant if a byte of a write is there."""
        is_relevant = False
        for write in _writes(history.workload):
            if write.number < history.started:
                for entry in _holders(history, write, observation):
                    is_relevant = True
                    if whole_write(history.workload, write.number, write.inode, history.started).broken_by(entry):
                        return violated(_torn(history.workload, write, entry), entry.path)
        return holds(relevant=is_relevant)


class _Write(NamedTuple):
    """A recorded write with RWF_ATOMIC: the number of its operation, its file, and the source of its bytes."""

    number: int
    inode: int
    source: str


@lru_cache(maxsize=256)
def _writes(workload: Workload) -> tuple[_Write, ...]:
    operations, trees, found = workload.operations, trees_of(workload), []
    for number in range(len(workload.setup), len(operations)):
        operation = operations[number]
        if operation.form.untorn:
            assert operation.tag is not None
            found.append(_Write(number, trees[number][operation.path].inode, written(operation.tag)))
    return tuple(found)


def _holders(history: History, write: _Write, observation: Observation) -> Iterator[Entry]:
    """The entries that are the file and have a byte of the write. Those that could not be read whole are left out."""
    for path, entry in observation.tree.items():
        is_readable = entry.type == "file" and entry.unread is None
        if is_readable and _is_of(history, write, path) and any_from(entry, {write.source}):
            yield entry


def _is_of(history: History, write: _Write, path: str) -> bool:
    """Whether a file under this name that has bytes of the write is the one that was written."""
    known = pasts(history).of(path)
    others = (past for inode, past in known.items() if inode != write.inode)
    return write.inode in known and not any(run.source == write.source for past in others for run in past.written)


def _torn(workload: Workload, write: _Write, entry: Entry) -> str:
    found = shown_bytes(workload, entry.path, entry, *workload.operations[write.number].byte_range)
    return f"{operation_at(workload, write.number)} is there in part: {found}"
