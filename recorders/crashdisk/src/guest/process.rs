//! What the host's kernel knows of a process.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::process::Child;

use crate::guest::termination;

/// Peak resident memory of a process in KiB, mapped files and shared memory included.
pub fn peak_memory_kib(pid: u32) -> io::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()).and_then(|n| n.parse().ok());
    number.ok_or_else(|| io::Error::other("no VmHWM in the process status"))
}

/// A descriptor that becomes readable when the process ends.
pub fn pidfd(process: &Child) -> io::Result<OwnedFd> {
    // SAFETY: this is a system call with plain numbers. The descriptor is new and ours.
    unsafe {
        match libc::syscall(libc::SYS_pidfd_open, process.id(), 0) {
            fd if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd as RawFd)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Numbers of a process's threads.
pub fn threads(pid: u32) -> io::Result<Vec<u32>> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task"))?.collect::<io::Result<Vec<_>>>()?;
    Ok(entries.iter().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// Pin the calling process to one CPU. If this CPU does not exist, nothing changes.
pub fn pin(cpu: usize) {
    // SAFETY: the set is plain data and lives through the call.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set);
    }
}

/// No file that the calling process or its children write grows beyond `bytes`: they end by a signal.
pub fn limit_files(bytes: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: the limit lives through the call.
    match unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Kill a guest's processes and wait until they have ended.
pub fn kill(process: &mut Child) {
    termination::kill_group(process.id() as i32);
    let _ = process.wait();
    termination::forget(process.id() as i32);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::Command;

    #[test]
    fn a_process_that_fills_the_disk_is_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("console");
        let mut process = Command::new("dd");
        process.args(["if=/dev/zero", "bs=64k", "count=64", "status=none", &format!("of={}", file.display())]);
        // SAFETY: it makes one system call.
        let status = unsafe { process.pre_exec(|| limit_files(1 << 20)) }.status().expect("it runs");
        assert_eq!(status.signal(), Some(libc::SIGXFSZ));
        assert_eq!(file.metadata().expect("it is there").len(), 1 << 20);
    }
}
