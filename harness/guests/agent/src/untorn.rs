//! Writes with RWF_ATOMIC, of which a crash leaves all or nothing: readv(2).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::sys::check;

/// Write all bytes in one call. The file was opened with O_DIRECT.
///
/// The kernel refuses it where the file system lacks it, with EOPNOTSUPP, and lengths beyond the limits, with EINVAL. The
/// limits are looked at before, too: a write that nobody promises to keep whole is never made.
pub fn write_untorn(file: &OwnedFd, bytes: &[u8], offset: u64) -> io::Result<()> {
    limits(file)?.admit(bytes.len() as u64)?;
    let part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: one part, which is only read and lives through the call.
    let n = check(unsafe { libc::pwritev2(file.as_raw_fd(), &part, 1, offset as i64, libc::RWF_ATOMIC) as i64 })?;
    // A rest would be a write of its own.
    (n == bytes.len() as i64).then_some(()).ok_or_else(|| io::Error::from_raw_os_error(libc::EIO))
}

/// The least and the largest length in bytes, both 0 if there is none.
#[derive(Debug, Clone, Copy)]
struct Limits {
    min: u64,
    max: u64,
}

impl Limits {
    fn admit(self, length: u64) -> io::Result<()> {
        match length {
            _ if self.max == 0 => Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
            _ if (self.min..=self.max).contains(&length) => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::EINVAL)),
        }
    }
}

/// What statx says of the file. Kernels that do not know these fields leave them zero.
fn limits(file: &OwnedFd) -> io::Result<Limits> {
    let (fd, wanted) = (file.as_raw_fd(), libc::STATX_WRITE_ATOMIC);
    // SAFETY: the structure is plain data that the kernel fills; the path is an empty C string.
    let found = unsafe {
        let mut found: libc::statx = std::mem::zeroed();
        check(libc::statx(fd, c"".as_ptr(), libc::AT_EMPTY_PATH, wanted, &mut found))?;
        found
    };
    Ok(Limits { min: found.stx_atomic_write_unit_min.into(), max: found.stx_atomic_write_unit_max.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_beyond_the_limits_is_invalid_and_without_limits_there_is_no_such_write() {
        let refused = |min, max, length| Limits { min, max }.admit(length).err().and_then(|error| error.raw_os_error());
        for (length, errno) in
            [(2048, Some(libc::EINVAL)), (4096, None), (16384, None), (65536, None), (131072, Some(libc::EINVAL))]
        {
            assert_eq!(refused(4096, 65536, length), errno, "{length}");
        }
        assert_eq!(refused(0, 0, 4096), Some(libc::EOPNOTSUPP));
    }
}
