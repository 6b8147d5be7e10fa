//! The supervisor's answers to calls that make something durable, and to those that map or open files.
//!
//! A sync returns at once. There is one thing that it must do first. A store to a mapped file is in no transaction of the
//! journal yet. If the journal committed a later write before it, the order would be lost. So once a file of the file
//! system is mapped and shared, a sync puts the file's changed pages into the running transaction, which waits for no disk.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::{statx, AtFlags, FileType, StatxFlags, CWD};

use super::open::{self, Open};
use crate::sys;

const RECEIVE: libc::c_ulong = 0xC050_2100;
const SEND: libc::c_ulong = 0xC018_2101;
const IS_VALID: libc::c_ulong = 0x4008_2102;
const SET_FLAGS: libc::c_ulong = 0x4008_2104;
const REAL: u32 = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
const SYNC_WAKE_UP: libc::c_ulong = 1;
/// Puts dirty pages into the transaction, also those that are being written. In data=journal this waits for no commit.
const WRITE_PAGES: libc::c_uint =
    libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;

/// Answer the calls that `listener` tells of, until the box has ended. `is_mapped` becomes true when a file of `device` is
/// mapped and shared.
pub fn serve(listener: &OwnedFd, device: (u32, u32), is_mapped: &AtomicBool) {
    // Older kernels have no such flag. Then an answer takes a little longer.
    // SAFETY: plain numbers.
    unsafe { libc::ioctl(listener.as_raw_fd(), SET_FLAGS, SYNC_WAKE_UP) };
    let box_ = Notifications { listener, device, is_mapped };
    loop {
        // SAFETY: all zero is what the kernel asks for.
        let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel fills the structure.
        if let Err(error) = sys::check(unsafe { libc::ioctl(listener.as_raw_fd(), RECEIVE, &mut call) }) {
            match error.raw_os_error() {
                Some(libc::EINTR) => continue,
                // A caller is gone. Of a box that has ended the kernel says the same, for ever.
                Some(libc::ENOENT) if !has_ended(listener) => continue,
                _ => return,
            }
        }
        let flags = match box_.answer(&call) {
            Answer::Done => 0,
            Answer::Real => REAL,
            Answer::File(file, closes_at_exec) => {
                if open::give(listener, call.id, &file, closes_at_exec).is_ok() {
                    continue;
                }
                // The caller has no room for it, or is gone.
                REAL
            }
        };
        let answer = libc::seccomp_notif_resp { id: call.id, val: 0, error: 0, flags };
        // If the thread is gone, nobody waits for the answer.
        // SAFETY: the structure lives through the call.
        unsafe { libc::ioctl(listener.as_raw_fd(), SEND, &answer) };
    }
}

/// Whether the thread that called still waits for the answer, so that what was read of it is its own.
fn is_waiting(listener: &OwnedFd, id: u64) -> bool {
    // SAFETY: the number lives through the call.
    unsafe { libc::ioctl(listener.as_raw_fd(), IS_VALID, &id) == 0 }
}

/// Whether no process has the filter any more.
fn has_ended(listener: &OwnedFd) -> bool {
    let mut descriptors = [PollFd::new(listener, PollFlags::empty())];
    poll(&mut descriptors, Some(&Timespec::default())).is_ok() && descriptors[0].revents().contains(PollFlags::HUP)
}

enum Answer {
    /// It has succeeded.
    Done,
    /// The kernel carries it out.
    Real,
    /// It returns a descriptor of this file, which may be closed when another program is run.
    File(OwnedFd, bool),
}

/// Answers the system calls of a box that the filter reports.
struct Notifications<'a> {
    listener: &'a OwnedFd,
    device: (u32, u32),
    is_mapped: &'a AtomicBool,
}

impl Notifications<'_> {
    fn answer(&self, call: &libc::seccomp_notif) -> Answer {
        let arguments = call.data.args;
        let is_mapped = self.is_mapped.load(Ordering::Acquire);
        match i64::from(call.data.nr) {
            libc::SYS_mmap => {
                if self.has(&descriptor(call.pid, arguments[4])) {
                    self.is_mapped.store(true, Ordering::Release);
                }
                Answer::Real
            }
            libc::SYS_open => self.open(call, [libc::AT_FDCWD as u64, arguments[0], arguments[1], arguments[2]]),
            libc::SYS_openat => self.open(call, [arguments[0], arguments[1], arguments[2], arguments[3]]),
            libc::SYS_sync if is_mapped => Answer::Real,
            libc::SYS_sync => Answer::Done,
            libc::SYS_msync if is_mapped => self.write_mapped(call.pid, arguments[0], arguments[1]),
            // Without such a mapping it has nothing to do, and is as fast as an answer.
            libc::SYS_msync => Answer::Real,
            number => {
                let file = descriptor(call.pid, arguments[0]);
                match (self.has(&file), is_mapped) {
                    (false, _) => Answer::Real,
                    (true, false) => Answer::Done,
                    (true, true) if number == libc::SYS_syncfs => Answer::Real,
                    (true, true) => done_if(write_pages(&file)),
                }
            }
        }
    }

    /// Whether it is a file or folder of the file system. Others have no data there, and the kernel knows what they do.
    fn has(&self, file: &Path) -> bool {
        let Ok(found) = statx(CWD, file, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE) else { return false };
        let kind = FileType::from_raw_mode(found.stx_mode.into());
        (found.stx_dev_major, found.stx_dev_minor) == self.device
            && matches!(kind, FileType::RegularFile | FileType::Directory)
    }

    fn open(&self, call: &libc::seccomp_notif, arguments: [u64; 4]) -> Answer {
        let request = Open::of(call.pid, arguments).filter(|_| is_waiting(self.listener, call.id));
        let Some(request) = request else { return Answer::Real };
        let closes_at_exec = request.closes_at_exec();
        request.without_sync(self.device).map_or(Answer::Real, |file| Answer::File(file, closes_at_exec))
    }

    fn write_mapped(&self, thread: u32, address: u64, length: u64) -> Answer {
        let Some(end) = address.checked_add(length) else { return Answer::Real };
        let Ok(maps) = std::fs::read_to_string(format!("/proc/{thread}/maps")) else { return Answer::Real };
        let mut reached = address;
        for (from, to) in maps.lines().filter_map(range) {
            if to <= reached || from >= end {
                continue;
            }
            // The kernel says what is wrong with a gap.
            if from > reached {
                return Answer::Real;
            }
            reached = to;
            let file = PathBuf::from(format!("/proc/{thread}/map_files/{from:x}-{to:x}"));
            if self.has(&file) && write_pages(&file).is_err() {
                return Answer::Real;
            }
        }
        if reached >= end {
            Answer::Done
        } else {
            Answer::Real
        }
    }
}

fn done_if(result: io::Result<()>) -> Answer {
    if result.is_ok() {
        Answer::Done
    } else {
        Answer::Real
    }
}

/// The file behind a descriptor of a thread.
fn descriptor(thread: u32, number: u64) -> PathBuf {
    PathBuf::from(format!("/proc/{thread}/fd/{}", number as i32))
}

fn write_pages(file: &Path) -> io::Result<()> {
    if file.metadata()?.is_dir() {
        return Ok(());
    }
    let file = File::open(file)?;
    // SAFETY: plain numbers.
    sys::check(unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, WRITE_PAGES) }).map(drop)
}

/// From a line of /proc/PID/maps: where the range starts and ends.
fn range(line: &str) -> Option<(u64, u64)> {
    let (from, to) = line.split(' ').next()?.split_once('-')?;
    Some((u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read() {
        let line = "7f0000000000-7f0000002000 rw-s 00000000 fe:00 12 /mnt/a";
        assert_eq!(range(line), Some((0x7f00_0000_0000, 0x7f00_0000_2000)));
        assert_eq!(range("no range"), None);
    }

    #[test]
    fn a_file_of_another_file_system_is_for_the_kernel() {
        let is_mapped = AtomicBool::new(false);
        let listener = File::open("/dev/null").unwrap().into();
        let notifications = Notifications { listener: &listener, device: (0xfff, 0xfff), is_mapped: &is_mapped };
        assert!(!notifications.has(Path::new("/proc/self/exe")));
    }
}
