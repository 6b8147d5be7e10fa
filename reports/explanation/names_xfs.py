"""Names blocks of xfs with xfs_db and xfs_logprint.

It cannot name all of them: xfs_db reads about files from metadata in place, and refuses while the log has newer
metadata.
"""

import re
from collections.abc import Sequence

from postcrash.model.units import SECTOR_BYTES
from postcrash.reports.explanation.block_part import BlockPart, DiskWrite
from postcrash.reports.explanation.disk_image import DiskImage
from postcrash.reports.explanation.programs import output

GROUPS_MAX = 64
"""The most allocation groups that are looked up."""
INODES_SHOWN_MAX = 6
_HEADERS = {"sb": "superblock", "agf": "AGF", "agi": "AGI", "agfl": "AGFL"}
_GEOMETRY = ("agblocks", "agcount", "blocksize", "agblklog", "logstart", "logblocks")

_RECORD = re.compile(
    r"^cycle: (\d+)\s+version: \d+\s+lsn: \d+,(\d+)[^\n]*\nlength of Log Record: (\d+)(.*?)(?=^=====|\Z)",
    re.MULTILINE | re.DOTALL,
)
_HEADER_BYTES = 512
_INODE = re.compile(r"ino: 0x([0-9a-f]+).*\n\s+blkno: (\d+)\s+len: (\d+)")
_ADDRESS = re.compile(r"byte offset (\d+), length (\d+)")


def names(disk: DiskImage, written: Sequence[DiskWrite]) -> list[list[BlockPart | None]]:
    """See `block_names.Namer`."""
    geometry = _geometry(disk)
    if not geometry.get("agblocks"):
        return [[] for _ in written]
    unchanged = {sector for write in written for sector in _sectors(write) if _holds(disk, write, sector)}
    log_start = (
        (geometry["logstart"] >> geometry["agblklog"]) * geometry["agblocks"]
        + (geometry["logstart"] & ((1 << geometry["agblklog"]) - 1))
    ) * (geometry["blocksize"] // SECTOR_BYTES)
    log_end = log_start + geometry["logblocks"] * (geometry["blocksize"] // SECTOR_BYTES)
    records, clusters = _log(disk, log_start)
    headers = _headers(disk, geometry["agcount"])

    def part(sector: int) -> BlockPart | None:
        if log_start <= sector < log_end:
            label = next((label for run, label in records if sector in run), None) if sector in unchanged else None
            return BlockPart(label or "log")
        label = headers.get(sector) or next((label for run, label in clusters if sector in run), None)
        return BlockPart(label) if label else None

    return [[part(sector) for sector in _sectors(write)] for write in written]


def _sectors(write: DiskWrite) -> range:
    start = write.start // SECTOR_BYTES
    return range(start, start + len(write.data) // SECTOR_BYTES)


def _holds(disk: DiskImage, write: DiskWrite, sector: int) -> bool:
    at = sector * SECTOR_BYTES - write.start
    return disk.read(sector * SECTOR_BYTES, SECTOR_BYTES) == write.data[at : at + SECTOR_BYTES]


def _geometry(disk: DiskImage) -> dict[str, int]:
    text = output("xfs_db", "-r", "-c", "sb 0", "-c", f"p {' '.join(_GEOMETRY)}", image=disk.path)
    return {name: int(value) for name, value in re.findall(r"^(\w+) = (\d+)$", text, re.MULTILINE)}


def _headers(disk: DiskImage, groups: int) -> dict[int, str]:
    """Sectors of the headers of allocation groups, with their names."""
    wanted = [(header, group) for group in range(min(groups, GROUPS_MAX)) for header in _HEADERS]
    commands = [word for header, group in wanted for word in ("-c", f"{header} {group}", "-c", "addr")]
    found = _ADDRESS.findall(output("xfs_db", "-r", *commands, image=disk.path))
    labels = [f"{_HEADERS[header]} of allocation group {group}" for header, group in wanted]
    if len(found) != len(labels):
        return {}
    return {int(start) // SECTOR_BYTES: label for (start, _), label in zip(found, labels, strict=True)}


def _log(disk: DiskImage, log_start: int) -> tuple[list[tuple[range, str]], list[tuple[range, str]]]:
    """Sectors of log records, and of clusters of inodes that these records change, each with what is there."""
    records, inodes = [], {}
    for cycle, block, length, operations in _RECORD.findall(output("xfs_logprint", image=disk.path)):
        changed = {int(inode, 16): (int(start), int(count)) for inode, start, count in _INODE.findall(operations)}
        inodes.update(changed)
        start_sector = log_start + int(block)
        run = range(start_sector, start_sector + (_HEADER_BYTES + int(length) + SECTOR_BYTES - 1) // SECTOR_BYTES)
        of = f", of {_inode_list(sorted(changed))}" if changed else ""
        records.append((run, f"log record at cycle {cycle}, block {block}{of}"))
    clusters: dict[tuple[int, int], list[int]] = {}
    for inode, place in sorted(inodes.items()):
        clusters.setdefault(place, []).append(inode)
    return records, [
        (range(start, start + count), f"inode cluster with {_inode_list(numbers)}")
        for (start, count), numbers in clusters.items()
    ]


def _inode_list(inodes: list[int]) -> str:
    shown = ", ".join(map(str, inodes[:INODES_SHOWN_MAX]))
    more = f" and {len(inodes) - INODES_SHOWN_MAX} more" if len(inodes) > INODES_SHOWN_MAX else ""
    return f"inode{'s' if len(inodes) > 1 else ''} {shown}{more}"
