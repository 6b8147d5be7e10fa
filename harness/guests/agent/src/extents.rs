//! Where a file's data lies, so that the crash disk can read it by itself.
//!
//! This is told only of plain data, which is mapped one to one, block by block, and not checked by the file system. All
//! other data (inline, compressed, encrypted, not yet allocated) has to be read through the kernel. The file is written
//! back first (FIEMAP_FLAG_SYNC), so that the page cache holds nothing newer than the disk.
//! Source: Linux, Documentation/filesystems/fiemap.rst.

use std::os::fd::{AsRawFd, OwnedFd};

const FS_IOC_FIEMAP: u64 = 0xc020_660b;
const FIEMAP_FLAG_SYNC: u32 = 1;
const EXTENT_LAST: u32 = 0x1;
const EXTENT_UNWRITTEN: u32 = 0x800;
const EXTENT_MERGED: u32 = 0x1000;
/// A file with more extents than this is read through the kernel.
const EXTENTS_MAX: usize = 512;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

impl FiemapExtent {
    fn is_plain(&self, disk_bytes: u64) -> bool {
        let on_disk = self.physical.checked_add(self.length).is_some_and(|end| end <= disk_bytes);
        on_disk && self.flags & !(EXTENT_LAST | EXTENT_UNWRITTEN | EXTENT_MERGED) == 0
    }
}

#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [FiemapExtent; EXTENTS_MAX],
}

/// Extents of the file as (file offset, disk offset, length) in bytes. Unwritten extents are left out, because they
/// read as zeros like holes. None if any of the file's data is not plain.
///
/// The disk has `disk_bytes`. File systems that do not check their block numbers, such as ext2, may name places beyond
/// the disk's end if a block of numbers was lost. Only the kernel can tell what a read of these places gives, so they
/// are not plain.
pub fn plain_extents(file: &OwnedFd, disk_bytes: u64) -> Option<Vec<(u64, u64, u64)>> {
    let mut map = Box::new(Fiemap {
        start: 0,
        length: u64::MAX,
        flags: FIEMAP_FLAG_SYNC,
        mapped_extents: 0,
        extent_count: EXTENTS_MAX as u32,
        reserved: 0,
        extents: [FiemapExtent::default(); EXTENTS_MAX],
    });
    // SAFETY: this call fills this structure, which has room for the number of extents that it names.
    if unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &mut *map) } < 0 {
        return None;
    }
    let extents = &map.extents[..(map.mapped_extents as usize).min(EXTENTS_MAX)];
    let complete = extents.last().is_none_or(|last| last.flags & EXTENT_LAST != 0);
    let plain = extents.iter().all(|e| e.is_plain(disk_bytes));
    let written = extents.iter().filter(|e| e.flags & EXTENT_UNWRITTEN == 0);
    (complete && plain).then(|| written.map(|e| (e.logical, e.physical, e.length)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_beyond_the_disk_is_not_plain() {
        let extent = |physical, length| FiemapExtent { physical, length, ..FiemapExtent::default() };
        assert!(extent(4096, 4096).is_plain(8192));
        assert!(!extent(4096, 4097).is_plain(8192));
        assert!(!extent(8192, 1).is_plain(8192));
        assert!(!extent(u64::MAX, 2).is_plain(u64::MAX));
    }
}
