//! Eager commits, for comparison: every modification asks for a commit, as the paper's Figure 9 has it.

use std::os::fd::{AsRawFd, OwnedFd};

use anyhow::{Context, Result};

use crate::sys;

const CHANGES: u64 = libc::FAN_MODIFY
    | libc::FAN_ATTRIB
    | libc::FAN_CREATE
    | libc::FAN_DELETE
    | libc::FAN_MOVED_FROM
    | libc::FAN_MOVED_TO
    | libc::FAN_ONDIR;
const EVENT_BYTES: usize = 1 << 16;

/// Tells of modifications of a file system. Stores to mapped files are not among them.
pub struct Modifications(OwnedFd);

impl Modifications {
    /// Those of the file system that has `folder`.
    pub fn of(folder: &OwnedFd) -> Result<Modifications> {
        let class = libc::FAN_CLASS_NOTIF | libc::FAN_REPORT_FID | libc::FAN_CLOEXEC;
        // SAFETY: plain numbers.
        let queue =
            sys::owned(unsafe { libc::fanotify_init(class, libc::O_RDONLY as u32) }).context("fanotify_init")?;
        let flags = libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM;
        // SAFETY: plain numbers, and no path besides the folder.
        let marked =
            unsafe { libc::fanotify_mark(queue.as_raw_fd(), flags, CHANGES, folder.as_raw_fd(), std::ptr::null()) };
        sys::check(marked).context("fanotify_mark")?;
        Ok(Modifications(queue))
    }

    /// Call `modified` after each modification, or once after several, for ever.
    pub fn each(&self, modified: impl Fn()) {
        let mut events = vec![0; EVENT_BYTES];
        loop {
            match rustix::io::read(&self.0, &mut events) {
                Ok(_) => modified(),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }
}
