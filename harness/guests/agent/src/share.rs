//! Files that share bytes: reflink and dedupe. Source: Linux, include/uapi/linux/fs.h.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use postcrash_wire::Operation;

use crate::held::HeldFiles;
use crate::sys::{check, range, unsupported};

/// `_IOW(0x94, 13, struct file_clone_range)`.
const FICLONERANGE: libc::c_ulong = 0x4020_940D;
/// `_IOWR(0x94, 54, struct file_dedupe_range)`.
const FIDEDUPERANGE: libc::c_ulong = 0xC018_9436;

#[repr(C)]
struct CloneRange {
    from: i64,
    from_offset: u64,
    length: u64,
    to_offset: u64,
}

/// `struct file_dedupe_range` with one `struct file_dedupe_range_info`.
#[repr(C)]
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
    let ((from, to), (from_offset, length)) = (files(op, held)?, range(op)?);
    let to_offset = op.to_offset.ok_or_else(unsupported)?;
    let clone = CloneRange { from: from.as_raw_fd().into(), from_offset, length: length as u64, to_offset };
    // SAFETY: this call reads this structure.
    check(unsafe { libc::ioctl(to.as_raw_fd(), FICLONERANGE, &clone) }).map(drop)
}

pub fn dedupe(op: &Operation, held: &HeldFiles) -> io::Result<()> {
    let ((from, to), (from_offset, length)) = (files(op, held)?, range(op)?);
    let mut dedupe = DedupeRange {
        from_offset,
        length: length as u64,
        count: 1,
        reserved1: 0,
        reserved2: 0,
        to: to.as_raw_fd().into(),
        to_offset: op.to_offset.ok_or_else(unsupported)?,
        bytes_deduped: 0,
        status: 0,
        reserved: 0,
    };
    // SAFETY: this call reads and fills this structure, which has room for one file.
    check(unsafe { libc::ioctl(from.as_raw_fd(), FIDEDUPERANGE, &mut dedupe) })?;
    match dedupe.status {
        0 => Ok(()),
        failed if failed < 0 => Err(io::Error::from_raw_os_error(-failed)),
        _ => Err(io::Error::from_raw_os_error(libc::EBADE)),
    }
}
