"""Names written blocks with the file system's own tools: their structure, file and transaction.

The tools read a copy of the disk, which is not mounted. They run twice. The first time the disk is as it was just
before the crash, with nothing lost: journal, log trees and superblocks are those of that moment. The second time it is
the disk at the end of the recording, with the files for which the writes were made. A block that was written again in
between is named only if its place alone determines the name, as in an inode table.
"""

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import NamedTuple

from postcrash._core import Recording
from postcrash.reports.explanation import names_btrfs, names_ext, names_xfs
from postcrash.reports.explanation.block_part import PARTS_MAX, BlockPart, DiskWrite
from postcrash.reports.explanation.disk_image import DiskImage, ImageTooLargeError
from postcrash.reports.explanation.programs import ToolError


class WriteNames(NamedTuple):
    """Names of writes in their order ("" if unknown), the tool, and why it could not be used."""

    names: tuple[str, ...]
    tool: str = ""
    problem: str = ""


Namer = Callable[[DiskImage, Sequence[DiskWrite]], list[list[BlockPart | None]]]
"""Returns the parts of each write, with None for unknown blocks. Moves the disk to the end of the recording."""

_NAMERS: dict[str, tuple[str, Namer]] = {
    **dict.fromkeys(("ext2", "ext3", "ext4"), ("debugfs", names_ext.names)),
    "btrfs": ("btrfs inspect-internal", names_btrfs.names),
    "xfs": ("xfs_db, xfs_logprint", names_xfs.names),
}


def block_names(
    fstype: str, recording: Recording, base_path: str | PathLike[str], crash: int, written: Sequence[DiskWrite]
) -> WriteNames:
    """Returns the names of `written`, of a recording on the file system `fstype` with the crash before event `crash`.

    File systems without a known tool have no names.
    """
    if fstype not in _NAMERS:
        return WriteNames(("",) * len(written))
    tool, namer = _NAMERS[fstype]
    try:
        with DiskImage(recording, base_path, crash) as disk:
            found = namer(disk, written)
    except (ToolError, ImageTooLargeError, OSError) as error:
        return WriteNames(("",) * len(written), tool, str(error))
    return WriteNames(tuple(map(_joined, found)), tool)


def _joined(parts: Iterable[BlockPart | None]) -> str:
    joined: list[BlockPart] = []
    unknown = 0
    for part in parts:
        if part is None:
            unknown += 1
        elif joined and part.start is not None and (joined[-1].label, joined[-1].end) == (part.label, part.start):
            joined[-1] = joined[-1]._replace(end=part.end)
        elif part not in joined:
            joined.append(part)
    if not joined:
        return ""
    shown = [_description(part) for part in joined[:PARTS_MAX]]
    more = len(joined) - len(shown)
    shown += [f"{more} more"] if more else []
    shown += [f"{unknown} without a name"] if unknown else []
    return "; ".join(shown)


def _description(part: BlockPart) -> str:
    return part.label if part.start is None else f"{part.label}, bytes {part.start} to {part.end}"
