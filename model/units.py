"""What disks and files are counted in."""

SECTOR_BYTES = 512
"""The smallest part of a disk that has an address. Linux counts in these, however large the drive's own sectors are."""
BLOCK_BYTES = 4096
"""What is allocated, shared, taken out and put in as one: no file system under test has larger blocks.

The garbage in the free space of base images is numbered by these blocks, too.
"""
