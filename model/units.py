"""The units in which disks and files are counted."""

SECTOR_BYTES = 512
"""The smallest part of a disk that has an address. Linux counts in these, whatever the size of the drive's sectors."""
BLOCK_BYTES = 4096
"""What is allocated, shared, taken out and put in as one. No file system under test has larger blocks.

The garbage in the free space of base images is numbered by these blocks, too.
"""
BLOCK_SECTORS = BLOCK_BYTES // SECTOR_BYTES
