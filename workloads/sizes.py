"""The sizes that the range words of a grammar stand for."""

from postcrash.model.units import BLOCK_BYTES, SECTOR_BYTES

APPEND_BYTES = 32768
UNALIGNED_BYTES = 5000
BEHIND_BYTES = 2000
"""The distance from the start of a range that extends the file to the old end."""
OVERLAP_BYTES = 8192
HOLE_BYTES = 8192
CUT_BYTES = 2500
INSIDE_BYTES = 100
MSYNC_BYTES = 8192
LOGGED_BYTES = 4096
BURST_FILES = 8
BURST_BYTES = 4096
CROWD_FILES = 150
"""More than btrfs collects of one folder's new names (128) before it writes them into its tree."""
TARGET = "target"
ATTRIBUTE = "user.xattr1"
VALUE = "val1"
FROM_THE_START = {
    "sector": SECTOR_BYTES,
    "block": BLOCK_BYTES,
    "overlap": OVERLAP_BYTES,
    "overlap-unaligned": UNALIGNED_BYTES,
}
"""How long the ranges are that begin at the start of a file."""
SPLICES = {"collapse-range": -1, "insert-range": 1}
"""Modes of fallocate that take out (-1) and put in (1) as much as the range is long."""
