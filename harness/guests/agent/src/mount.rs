//! Mounting the target.

use std::ffi::CStr;
use std::fmt;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use postcrash_wire::Mount;

use crate::btrfs;
use crate::helper;
use crate::modules;
use crate::sys::{check, cstr, errno};
use crate::MOUNT_POINT;

const FREE_TRIES: u32 = 1000;
const FREE_PAUSE: Duration = Duration::from_millis(10);

/// Options that mount(2) takes as flags; all others go to the file system.
const FLAGS: [(&str, libc::c_ulong); 6] = [
    ("ro", libc::MS_RDONLY),
    ("sync", libc::MS_SYNCHRONOUS),
    ("dirsync", libc::MS_DIRSYNC),
    ("noatime", libc::MS_NOATIME),
    ("lazytime", libc::MS_LAZYTIME),
    ("strictatime", libc::MS_STRICTATIME),
];

/// Mount `device`, always with noatime, so that looking changes nothing. Loads the file system's module if the kernel
/// does not know the file system yet.
pub fn mount(device: &str, mount: &Mount) -> io::Result<()> {
    if !mount.helper.is_empty() {
        return helper::mount(device, mount);
    }
    match try_mount(device, mount) {
        Err(error) if errno(&error) == libc::ENODEV && modules::load(&mount.fstype)? => try_mount(device, mount),
        other => other,
    }
}

fn try_mount(device: &str, mount: &Mount) -> io::Result<()> {
    let mut flags = libc::MS_NOATIME;
    let mut data = Vec::new();
    for option in mount.options.split(',').filter(|option| !option.is_empty()) {
        match FLAGS.iter().find(|(name, _)| *name == option) {
            Some((_, flag)) => flags |= flag,
            None => data.push(option),
        }
    }
    call_mount(&cstr(device)?, &cstr(MOUNT_POINT)?, &cstr(&mount.fstype)?, flags, &cstr(&data.join(","))?)
}

/// mount(2).
pub fn call_mount(source: &CStr, target: &CStr, fstype: &CStr, flags: libc::c_ulong, data: &CStr) -> io::Result<()> {
    // SAFETY: all pointers are C strings that live through the call.
    let result = unsafe { libc::mount(source.as_ptr(), target.as_ptr(), fstype.as_ptr(), flags, data.as_ptr().cast()) };
    check(result).map(|_| ())
}

/// Mount /proc.
pub fn mount_proc() -> io::Result<()> {
    mount_pseudo(c"proc", c"/proc")
}

/// Mount /dev, unless the kernel has done so.
pub fn mount_devices() -> io::Result<()> {
    mount_once(c"devtmpfs", c"/dev")
}

/// Mount debugfs at the folder `path`, unless it is mounted there already. The folder is made if it is not there.
pub fn mount_debug(path: &str) -> io::Result<()> {
    std::fs::create_dir_all(path)?;
    mount_once(c"debugfs", &cstr(path)?)
}

/// Write `value` to a file of sysfs, which is mounted at /sys for that long.
pub fn write_to_sys(file: &str, value: &str) -> io::Result<()> {
    mount_pseudo(c"sysfs", c"/sys")?;
    let written = std::fs::write(Path::new("/sys").join(file), value);
    // SAFETY: a C string.
    check(unsafe { libc::umount2(c"/sys".as_ptr(), 0) })?;
    written
}

fn mount_once(fstype: &CStr, target: &CStr) -> io::Result<()> {
    match mount_pseudo(fstype, target) {
        Err(error) if errno(&error) == libc::EBUSY => Ok(()),
        other => other,
    }
}

fn mount_pseudo(fstype: &CStr, target: &CStr) -> io::Result<()> {
    call_mount(fstype, target, fstype, 0, c"")
}

/// Unmount the target. If a process served the mount, wait for its end. Returns a value if a signal ended it.
pub fn unmount() -> io::Result<Option<KilledServer>> {
    let target = cstr(MOUNT_POINT)?;
    // SAFETY: a C string.
    check(unsafe { libc::umount2(target.as_ptr(), 0) })?;
    let (mut status, mut killed) = (0, None);
    // SAFETY: waits for any child of this thread; the kernel writes its status.
    while unsafe { libc::waitpid(-1, &raw mut status, libc::__WNOTHREAD) } > 0 {
        if libc::WIFSIGNALED(status) {
            killed = Some(KilledServer { signal: libc::WTERMSIG(status) });
        }
    }
    Ok(killed)
}

/// Wait until `device` is mounted nowhere. The mount namespaces of programs that have ended go a moment later, and until
/// then a new mount would show the old one's files.
pub fn wait_until_free(device: &str) -> io::Result<()> {
    for _ in 0..FREE_TRIES {
        match OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(device) {
            Ok(_) => return Ok(()),
            Err(error) if errno(&error) == libc::EBUSY => std::thread::sleep(FREE_PAUSE),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("the file system is still mounted somewhere, although its programs have ended"))
}

/// Have the kernel forget what it knows of disks that are mounted together. The next mount finds others in their place.
pub fn forget(mount: &Mount) -> io::Result<()> {
    if mount.disks.is_empty() || mount.fstype != "btrfs" {
        return Ok(());
    }
    btrfs::forget_devices()
}

/// A signal ended the process that served the mount, when the target was unmounted.
pub struct KilledServer {
    pub signal: i32,
}

impl fmt::Display for KilledServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "signal {} ended the program that served the mount, when it was unmounted", self.signal)
    }
}
