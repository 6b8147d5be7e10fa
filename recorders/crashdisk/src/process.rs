//! What the host's kernel tells of a process.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::process::Child;

/// Peak resident memory of a process in KiB, mapped files and shared memory included.
pub fn peak_memory_kib(pid: u32) -> io::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()).and_then(|n| n.parse().ok());
    number.ok_or_else(|| io::Error::other("no VmHWM in the process status"))
}

/// A descriptor that is ready when the process has ended.
pub fn pidfd(process: &Child) -> io::Result<OwnedFd> {
    // SAFETY: a system call with plain numbers; the descriptor is new and ours.
    unsafe {
        match libc::syscall(libc::SYS_pidfd_open, process.id(), 0) {
            fd if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd as RawFd)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
