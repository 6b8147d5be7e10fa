//! The units in which disks and files are counted.

use std::ops::Range;

/// Bytes of the smallest part of a disk that has an address. Linux counts in these, whatever the size of the drive's
/// sectors.
pub const SECTOR_BYTES: usize = 512;
/// Bytes of a block. A block is allocated as one, writes are cut at its multiples, and free space's garbage has its
/// number.
pub const BLOCK_BYTES: usize = 4096;
/// Sectors of a block.
pub const BLOCK_SECTORS: u64 = (BLOCK_BYTES / SECTOR_BYTES) as u64;
/// Bytes of a page of memory on the machines that guests run on.
pub const PAGE_BYTES: u64 = 4096;

/// The blocks that a run of sectors touches.
pub fn blocks_of(sector: u64, sectors: u64) -> Range<u64> {
    sector / BLOCK_SECTORS..sector.saturating_add(sectors).div_ceil(BLOCK_SECTORS)
}
