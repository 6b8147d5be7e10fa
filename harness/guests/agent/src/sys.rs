//! System calls that std does not wrap, made safe.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

pub use postcrash_stopped::check;
use postcrash_wire::units::PAGE_BYTES;
use postcrash_wire::Operation;

/// A C string. Text with a NUL is refused.
pub fn cstr(text: &str) -> io::Result<CString> {
    CString::new(text).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// The error of an operation that the agent does not know.
pub fn unsupported() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOSYS)
}

/// Offset and length of an operation that must have a length.
pub fn range(op: &Operation) -> io::Result<(u64, usize)> {
    let length = op.length.ok_or_else(unsupported)?;
    Ok((op.offset.unwrap_or(0), length as usize))
}

/// errno of an error; EIO if it has none.
pub fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

pub fn open_at(folder: RawFd, path: &CStr, flags: i32) -> io::Result<OwnedFd> {
    // SAFETY: the path is a C string; a fresh descriptor is ours.
    unsafe {
        let fd = check(libc::openat(folder, path.as_ptr(), flags | libc::O_CLOEXEC, 0o644))?;
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

pub fn open(path: &str, flags: i32) -> io::Result<OwnedFd> {
    open_at(libc::AT_FDCWD, &cstr(path)?, flags)
}

pub fn stat_at(folder: RawFd, name: &CStr, flags: i32) -> io::Result<libc::stat> {
    // SAFETY: the structure is plain data that the kernel fills.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        check(libc::fstatat(folder, name.as_ptr(), &mut stat, flags))?;
        Ok(stat)
    }
}

/// Names in a folder, sorted, without `.` and `..`.
pub fn names(folder: RawFd) -> io::Result<Vec<CString>> {
    let mut buffer = vec![0u64; 4096];
    let mut names = Vec::new();
    loop {
        let bytes = std::mem::size_of_val(&buffer[..]);
        // SAFETY: the buffer's length is given.
        let filled = check(unsafe { libc::syscall(libc::SYS_getdents64, folder, buffer.as_mut_ptr(), bytes) })?;
        if filled == 0 {
            names.sort();
            return Ok(names);
        }
        let mut at = 0;
        while at < filled as usize {
            // SAFETY: the kernel wrote whole records. d_reclen leads to the next record, and d_name is a C string.
            unsafe {
                let record = buffer.as_ptr().cast::<u8>().add(at).cast::<libc::dirent64>();
                let name = CStr::from_ptr((&raw const (*record).d_name).cast());
                if name != c"." && name != c".." {
                    names.push(name.to_owned());
                }
                at += usize::from((*record).d_reclen);
            }
        }
    }
}

pub fn power_off() -> ! {
    // SAFETY: plain numbers.
    unsafe {
        libc::reboot(libc::RB_POWER_OFF);
        libc::_exit(1)
    }
}

/// A buffer that O_DIRECT accepts, because it is aligned to a page.
pub struct AlignedBuffer {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl AlignedBuffer {
    const ALIGNMENT: usize = PAGE_BYTES as usize;

    pub fn new(length: usize) -> Self {
        let memory = vec![0u8; length + Self::ALIGNMENT];
        let start = memory.as_ptr().align_offset(Self::ALIGNMENT);
        AlignedBuffer { memory, start, length }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}
