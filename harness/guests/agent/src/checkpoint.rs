//! The environment event `checkpoint`: what the kernel later does by itself with the log that a commit has left.
//!
//! A checkpoint writes metadata to its own place, so that the log can be emptied. Some file systems have a call for
//! exactly this. Others are frozen and thawed, which writes file data back as well. File systems that cannot be frozen
//! keep no log. Their own write-back is all that the kernel would do, and syncfs asks for this.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::commit::commit_btrfs;
use crate::sys::{check, errno, open};
use crate::MOUNT_POINT;

const FIFREEZE: u64 = 0xC004_5877;
const FITHAW: u64 = 0xC004_5878;
/// Commits, and empties the journal (Linux 5.14, fs/ext4/ioctl.c).
const EXT4_CHECKPOINT: u64 = 0x4004_662B;
/// Makes a checkpoint, as f2fs' timer does (fs/f2fs/file.c).
const F2FS_WRITE_CHECKPOINT: u64 = 0xF507;
/// Writes a segment with a checkpoint, as the segment constructor's timer does (fs/nilfs2/ioctl.c).
const NILFS_SYNC: u64 = 0x8008_6E8A;
/// A kernel's answers to a call that it does not have, or that finds no journal to work on.
const LACKING: [i32; 3] = [libc::ENOTTY, libc::EOPNOTSUPP, libc::ENODEV];

pub fn checkpoint(fstype: &str) -> io::Result<()> {
    let root = open(MOUNT_POINT, libc::O_RDONLY | libc::O_DIRECTORY)?;
    let ways: [fn(&OwnedFd, &str) -> io::Result<()>; 3] = [own_call, freeze_and_thaw, write_back];
    let mut result = Ok(());
    for way in ways {
        result = way(&root, fstype);
        if !result.as_ref().is_err_and(|error| LACKING.contains(&errno(error))) {
            break;
        }
    }
    result
}

fn own_call(root: &OwnedFd, fstype: &str) -> io::Result<()> {
    let request = match fstype {
        "btrfs" => return commit_btrfs(),
        "ext2" | "ext3" | "ext4" => EXT4_CHECKPOINT,
        "f2fs" => F2FS_WRITE_CHECKPOINT,
        "nilfs2" => NILFS_SYNC,
        _ => return Err(io::Error::from_raw_os_error(libc::ENOTTY)),
    };
    // For ext4's call these are flags, and 0 asks for nothing more. nilfs2's call puts its checkpoint's number here.
    let mut argument = 0u64;
    // SAFETY: each call takes a pointer to at most eight bytes, or nothing.
    check(unsafe { libc::ioctl(root.as_raw_fd(), request, &mut argument) }).map(|_| ())
}

/// Thaws in any case, because a frozen file system would hang the next operation. If nothing is frozen, thawing fails
/// and does nothing.
fn freeze_and_thaw(root: &OwnedFd, _fstype: &str) -> io::Result<()> {
    // SAFETY: neither call takes an argument.
    let frozen = check(unsafe { libc::ioctl(root.as_raw_fd(), FIFREEZE, 0) });
    // SAFETY: as above.
    let thawed = check(unsafe { libc::ioctl(root.as_raw_fd(), FITHAW, 0) });
    frozen.and(thawed).map(|_| ())
}

fn write_back(root: &OwnedFd, _fstype: &str) -> io::Result<()> {
    // SAFETY: a plain number.
    check(unsafe { libc::syncfs(root.as_raw_fd()) }).map(|_| ())
}
