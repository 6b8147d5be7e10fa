//! The environment event `checkpoint`: what the kernel does later by itself with what a commit has left in its log.
//!
//! Metadata goes to its own place, so that the log can be emptied. Some file systems have a call that does just that.
//! Others are frozen and thawed, which writes file data back as well. Those that cannot be frozen keep no log: their
//! own write-back is all that the kernel would do, and syncfs asks for it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::commit::commit_btrfs;
use crate::sys::{check, errno, open};
use crate::MOUNT_POINT;

const FIFREEZE: u64 = 0xC004_5877;
const FITHAW: u64 = 0xC004_5878;
/// Commits, and empties the journal (Linux 5.14, fs/ext4/ioctl.c).
const EXT4_CHECKPOINT: u64 = 0x4004_662B;
/// A checkpoint as that of f2fs' timer (fs/f2fs/file.c).
const F2FS_WRITE_CHECKPOINT: u64 = 0xF507;
/// A segment with a checkpoint, as the segment constructor's timer writes one (fs/nilfs2/ioctl.c).
const NILFS_SYNC: u64 = 0x8008_6E8A;
/// What a kernel answers to a call that it does not have, or that has no journal to work on.
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
    // Flags of the first, where 0 asks for nothing more; the last says there which checkpoint it made.
    let mut argument = 0u64;
    // SAFETY: each call takes a pointer to at most eight bytes, or nothing.
    check(unsafe { libc::ioctl(root.as_raw_fd(), request, &mut argument) }).map(|_| ())
}

/// Thaws in any case: what is frozen would hang the next operation. Where nothing is, thawing fails and does nothing.
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
