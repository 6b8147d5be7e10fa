//! What btrfs remembers of disks.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::sys::check;

const CONTROL: &str = "/dev/btrfs-control";
/// `struct btrfs_ioctl_vol_args`: a number, and a path, of which an empty one stands for all.
const ARGUMENTS_BYTES: usize = 4096;
/// `_IOW(0x94, 5, struct btrfs_ioctl_vol_args)`; include/uapi/linux/btrfs.h.
const FORGET_DEVICE: libc::c_ulong = 1 << 30 | (ARGUMENTS_BYTES as libc::c_ulong) << 16 | 0x94 << 8 | 5;

/// Have btrfs forget the devices that are not mounted, where the kernel has btrfs.
///
/// A file system that it has seen on one device and sees on another one later, but older, Linux 5.10 refuses to mount
/// (EEXIST). A recording is made on a mapping, and its crash states are recovered without.
pub fn forget_devices() -> io::Result<()> {
    let control = match File::open(CONTROL) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let arguments = [0u8; ARGUMENTS_BYTES];
    // SAFETY: the structure is as long as the number says and lives through the call.
    check(unsafe { libc::ioctl(control.as_raw_fd(), FORGET_DEVICE, arguments.as_ptr()) }).map(|_| ())
}
