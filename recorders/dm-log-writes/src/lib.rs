//! Reads logs of Linux's dm-log-writes target into recordings, and writes recordings as such logs.
//!
//! The format (Linux, drivers/md/dm-log-writes.c; QEMU, block/blklogwrites.c; fstests, src/log-writes), little-endian:
//!
//! | where | what |
//! | --- | --- |
//! | log sector 0 | u64 magic, u64 version 1, u64 number of entries, u32 bytes of a log sector |
//! | from log sector 1 on, for each entry | one log sector: u64 sector, u64 sectors, u64 flags, u64 length of the text |
//! | | the data, `sectors` log sectors, unless it is a discard; a mark's text stands behind the four words |
//!
//! Sectors are log sectors: they have the logical block size of the logged device. Before Linux commit 228bb5b26038
//! they had 512 bytes, and logs of 4 KiB devices could not be read at all.
//!
//! The kernel logs a request when it is completed, but holds back a write that no flush has covered yet. A flush takes
//! with it the writes that had completed when it was submitted, and is logged behind them when it completes. So
//! whatever stands before a flush entry was covered by this flush. FUA writes and marks are not held back: they stand
//! before writes that had completed earlier. Device mapper takes a PREFLUSH write apart, so a flush entry with data is
//! not expected. It is read as a flush, then a write. The kernel updates the number of entries at FUA writes and marks,
//! and QEMU does so at flushes and every 4096 entries (log-super-update-interval). If the host went down, the number
//! may be too low.
//!
//! QEMU logs each request when it is completed. This holds for a flush too, which then stands behind writes that
//! completed while it was under way and that it does not cover. QEMU has no FUA: it logs a FUA write as a write and a
//! flush. It logs write-zeroes as a write of zeros.
//!
//! A log is not trusted. Every length is checked against the file and the disk before it is used.

mod entries;
mod error;
mod export;
mod import;
mod reader;
mod writer;

pub use entries::{entries, LogItem};
pub use error::LogError;
pub use export::{export, ExportSummary};
pub use import::{import, scan, LogMark, Summary};

use postcrash_wire::units::SECTOR_BYTES;

const MAGIC: u64 = 0x6a_7366_7773_6872;
const VERSION: u64 = 1;
/// Bytes of the superblock, and of an entry without its text.
const SUPER_BYTES: usize = 28;
const ENTRY_BYTES: usize = 32;
/// QEMU accepts log sectors of less than 16 MiB. The kernel's log sectors have at most a page.
const LOG_SECTOR_BYTES_MAX: u32 = 8 << 20;

mod flag {
    pub const FLUSH: u64 = 1 << 0;
    pub const FUA: u64 = 1 << 1;
    pub const DISCARD: u64 = 1 << 2;
    pub const MARK: u64 = 1 << 3;
    /// The submitter called it metadata (REQ_META). This means nothing for a crash.
    pub const METADATA: u64 = 1 << 4;
    pub const KNOWN: u64 = (1 << 5) - 1;
}

/// 512-byte sectors of `bytes`.
fn sectors_of(bytes: u64) -> u64 {
    bytes / SECTOR_BYTES as u64
}
