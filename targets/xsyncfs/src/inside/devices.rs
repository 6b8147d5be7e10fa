//! The box's /dev: devices that lead nowhere, and terminals of its own.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result};
use rustix::fs::{chmodat, makedev, mknodat, AtFlags, FileType, Mode, CWD};
use rustix::mount::{mount, MountFlags};

/// Character devices by their names and numbers.
const DEVICES: [(&str, u32, u32); 6] =
    [("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("random", 1, 8), ("urandom", 1, 9), ("tty", 5, 0)];
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Make it at `place`.
pub fn make(place: &Path) -> Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("dev", place, "tmpfs", flags, c"mode=755,size=64k").context("/dev of the box")?;
    for (name, major, minor) in DEVICES {
        let path = place.join(name);
        let everybody = Mode::from_raw_mode(0o666);
        mknodat(CWD, &path, FileType::CharacterDevice, everybody, makedev(major, minor)).context(name)?;
        chmodat(CWD, &path, everybody, AtFlags::empty()).context(name)?;
    }
    for (name, target) in LINKS {
        symlink(target, place.join(name)).context(name)?;
    }
    let (terminals, shared) = (place.join("pts"), place.join("shm"));
    fs::create_dir(&terminals)?;
    mount("devpts", &terminals, "devpts", flags, c"newinstance,ptmxmode=0666,mode=620")
        .context("/dev/pts of the box")?;
    fs::create_dir(&shared)?;
    mount("shm", &shared, "tmpfs", flags | MountFlags::NODEV, c"mode=1777").context("/dev/shm of the box")
}
