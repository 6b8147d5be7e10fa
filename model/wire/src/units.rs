//! What disks and files are counted in.

/// Bytes of the smallest part of a disk that has an address. Linux counts in these, however large the drive's own are.
pub const SECTOR_BYTES: usize = 512;
/// Bytes of a block: what is allocated as one, what writes are cut at, and what the garbage of free space is numbered by.
pub const BLOCK_BYTES: usize = 4096;
/// Sectors of a block.
pub const BLOCK_SECTORS: u64 = (BLOCK_BYTES / SECTOR_BYTES) as u64;
