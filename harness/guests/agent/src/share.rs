//! Files that share bytes: reflink and dedupe. Source: Linux, include/uapi/linux/fs.h.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use postcrash_wire::Operation;

use crate::held::HeldFiles;
use crate::sys::{check, range, unsupported};

/// `_IOWR(0x94, 54, struct file_dedupe_range)`.
const FIDEDUPERANGE: libc::c_ulong = 0xC018_9436;

/// `struct file_dedupe_range` with one `struct file_dedupe_range_info`.
#[repr(C)]
#[derive(Default)]
struct DedupeRange {
    from_offset: u64,
    length: u64,
    count: u16,
    reserved1: u16,
    reserved2: u32,
    to: i64,
    to_offset: u64,
    bytes_deduped: u64,
    /// 0, 1 if the bytes differ, or a negative errno.
    status: i32,
    reserved: u32,
}

/// The two files of an operation, open.
fn files(op: &Operation, held: &HeldFiles) -> io::Result<(OwnedFd, OwnedFd)> {
    Ok((held.descriptor(&op.path, libc::O_RDONLY)?, held.descriptor(&op.to, libc::O_RDWR)?))
}

pub fn reflink(op: &Operation, held: &HeldFiles) -> io::Result<()> {
    let ((from, to), (src_offset, length)) = (files(op, held)?, range(op)?);
    let (src_fd, dest_offset) = (from.as_raw_fd().into(), op.to_offset.ok_or_else(unsupported)?);
    let clone = libc::file_clone_range { src_fd, src_offset, src_length: length as u64, dest_offset };
    // SAFETY: this call reads this structure.
    check(unsafe { libc::ioctl(to.as_raw_fd(), libc::FICLONERANGE, &clone) }).map(drop)
}

pub fn dedupe(op: &Operation, held: &HeldFiles) -> io::Result<()> {
    let ((from, to), (from_offset, length)) = (files(op, held)?, range(op)?);
    let mut dedupe = DedupeRange {
        from_offset,
        length: length as u64,
        count: 1,
        to: to.as_raw_fd().into(),
        to_offset: op.to_offset.ok_or_else(unsupported)?,
        ..DedupeRange::default()
    };
    // SAFETY: this call reads and fills this structure, which has room for one file.
    check(unsafe { libc::ioctl(from.as_raw_fd(), FIDEDUPERANGE, &mut dedupe) })?;
    match dedupe.status {
        0 => Ok(()),
        failed if failed < 0 => Err(io::Error::from_raw_os_error(-failed)),
        _ => Err(io::Error::from_raw_os_error(libc::EBADE)),
    }
}
