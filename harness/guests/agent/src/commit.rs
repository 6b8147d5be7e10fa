//! The environment event `commit`: do now what the kernel's commit timer does.
//!
//! A commit makes the journal's running transaction durable without writing back file data. btrfs has a call for this.
//! On other file systems we dirty the inode of a file without data and fsync the file, which commits the transaction
//! with the inode.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::sys::{check, open};
use crate::MOUNT_POINT;

/// The agent's own file in the root of the target; never part of the tree.
pub const SCRATCH: &str = ".postcrash";

const BTRFS_START_SYNC: u64 = 0x8008_9418;
const BTRFS_WAIT_SYNC: u64 = 0x4008_9416;

static COMMITS: AtomicU32 = AtomicU32::new(0);

fn scratch() -> String {
    format!("{MOUNT_POINT}/{SCRATCH}")
}

/// Make the scratch file. This is part of the set-up.
pub fn prepare() -> io::Result<()> {
    open(&scratch(), libc::O_CREAT | libc::O_RDWR).map(|_| ())
}

pub fn commit(fstype: &str) -> io::Result<()> {
    if fstype == "btrfs" {
        return commit_btrfs();
    }
    let file = open(&scratch(), libc::O_RDWR)?;
    let seconds = i64::from(COMMITS.fetch_add(1, Ordering::Relaxed)) + 1;
    let times = [libc::timespec { tv_sec: seconds, tv_nsec: 0 }; 2];
    // SAFETY: the array lives through the call.
    unsafe {
        check(libc::futimens(file.as_raw_fd(), times.as_ptr()))?;
        check(libc::fsync(file.as_raw_fd()))?;
    }
    Ok(())
}

pub fn commit_btrfs() -> io::Result<()> {
    let root = open(MOUNT_POINT, libc::O_RDONLY | libc::O_DIRECTORY)?;
    let mut transaction = 0u64;
    // SAFETY: both calls take a pointer to a transaction number.
    unsafe {
        check(libc::ioctl(root.as_raw_fd(), BTRFS_START_SYNC, &mut transaction))?;
        check(libc::ioctl(root.as_raw_fd(), BTRFS_WAIT_SYNC, &transaction))?;
    }
    Ok(())
}
