//! Making btrfs forget the disks that it remembers.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::sys::check;

const CONTROL: &str = "/dev/btrfs-control";
/// `struct btrfs_ioctl_vol_args`: a number and a path. An empty path stands for all devices.
const ARGUMENTS_BYTES: usize = 4096;
/// `_IOW(0x94, 5, struct btrfs_ioctl_vol_args)`; include/uapi/linux/btrfs.h.
const FORGET_DEVICE: libc::c_ulong = 1 << 30 | (ARGUMENTS_BYTES as libc::c_ulong) << 16 | 0x94 << 8 | 5;

/// Make btrfs forget the devices that are not mounted, if the kernel has btrfs.
///
/// Linux 5.10 refuses to mount a file system (EEXIST) if it has seen a newer state of the file system on another
/// device. This would happen here: a recording is made on a mapping, and its crash states are recovered without the
/// mapping.
pub fn forget_devices() -> io::Result<()> {
    let control = match File::open(CONTROL) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let arguments = [0u8; ARGUMENTS_BYTES];
    // SAFETY: the structure is as long as the number says and lives through the call.
    check(unsafe { libc::ioctl(control.as_raw_fd(), FORGET_DEVICE, arguments.as_ptr()) }).map(|_| ())
}
