//! The files of the box: one file system that it can change, and all others through read-only layers.
//!
//! A read-only bind mount would not do. Through it one can still connect to a socket and write into a FIFO of the outside.
//! Through overlayfs one cannot: it has inodes of its own, and sockets and FIFOs are known by their inode.

use std::ffi::CString;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{open, Mode, OFlags, CWD};
use rustix::io::Errno;
use rustix::mount::{
    mount, mount_bind, mount_change, mount_remount, move_mount, unmount, MountFlags, MountPropagationFlags,
    MoveMountFlags, UnmountFlags,
};
use rustix::process::{chdir, fchdir, pivot_root};
use rustix::thread::{move_into_link_name_space, LinkNameSpaceType};

use super::devices;
use crate::canary::{self, Canary};
use crate::mounts::{self, is_within, Mount};

/// Where the box is put together, in a file system in memory that is no part of it.
const SCAFFOLD: &str = "/tmp";
const OUTSIDE: &str = "/outside";
const INSIDE: &str = "/inside";
const EMPTY: &str = "/empty";
const COPIES: &str = "/copies";
/// The box has its own.
const OWN: [&str; 4] = ["/proc", "/sys", "/dev", "/tmp"];
/// They show the kernel, or more than one process, and hold no programs.
const LEFT_OUT: [&str; 20] = [
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nsfs",
    "proc",
    "pstore",
    "rpc_pipefs",
    "securityfs",
    "sysfs",
    "tracefs",
];
/// A single file that is mounted, such as a container's resolv.conf, is copied up to this size.
const COPIED_BYTES_MAX: u64 = 1 << 20;

/// Make the root of this mount namespace that of the box, with `tree` at `place` as what it can change, and with the
/// folders `shown` of the outside even where the box has its own.
pub fn build(place: &Path, tree: &OwnedFd, shown: &[PathBuf]) -> Result<()> {
    leave_chroot().context("private mounts")?;
    let outside = mounts::parse(&fs::read("/proc/self/mountinfo").context("mountinfo")?);
    enter_scaffold()?;
    show("/".as_ref()).context("overlayfs, through which the box sees the files of the outside")?;
    for mount in outside.iter().filter(|mount| is_shown(mount, place)) {
        // What cannot be shown, such as another user's FUSE mount, is not there.
        let _ = show(&mount.point);
    }
    make_own()?;
    for folder in shown {
        fs::create_dir_all(inside(folder)).with_context(|| folder.display().to_string())?;
        show(folder).with_context(|| folder.display().to_string())?;
    }
    let here = inside(place);
    fs::create_dir_all(&here).with_context(|| format!("{} in the box", place.display()))?;
    move_mount(tree, "", CWD, &here, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH).context("move_mount")?;
    chdir(INSIDE)?;
    pivot_root(".", ".").context("pivot_root")?;
    unmount(".", UnmountFlags::DETACH).context("the outside cannot be left")?;
    chdir(place).with_context(|| place.display().to_string())
}

/// Make our root that of the mount namespace, which a user namespace asks for, and keep later mounts in here.
fn leave_chroot() -> Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = open("/", flags, Mode::empty())?;
    let namespace = open("/proc/self/ns/mnt", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Mount))?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    fchdir(&root)?;
    match pivot_root(".", ".") {
        // It is that root already.
        Err(Errno::BUSY) => return Ok(()),
        other => other?,
    }
    unmount(".", UnmountFlags::DETACH)?;
    Ok(chdir("/")?)
}

fn enter_scaffold() -> Result<()> {
    mount("xsync", SCAFFOLD, "tmpfs", MountFlags::NOSUID, c"mode=755").context("tmpfs")?;
    for folder in [OUTSIDE, INSIDE, EMPTY, COPIES] {
        fs::create_dir(format!("{SCAFFOLD}{folder}"))?;
    }
    pivot_root(SCAFFOLD, format!("{SCAFFOLD}{OUTSIDE}")).context("pivot_root")?;
    chdir("/").context("/")
}

fn is_shown(mount: &Mount, place: &Path) -> bool {
    let is_own = OWN.iter().any(|own| is_within(&mount.point, own.as_ref()));
    !is_own
        && mount.point != Path::new("/")
        && !is_within(&mount.point, place)
        && !LEFT_OUT.contains(&mount.kind.as_str())
}

/// Show what the outside has at `point`, read-only.
fn show(point: &Path) -> Result<()> {
    let from = below(OUTSIDE, point);
    let to = inside(point);
    let kind = fs::symlink_metadata(&from)?.file_type();
    if kind.is_file() {
        return show_copy(&from, &to);
    }
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
    if canary::is(Canary::UnixSocket) {
        mount_bind(&from, &to)?;
        return Ok(mount_remount(&to, MountFlags::BIND | flags, c"")?);
    }
    // Overlayfs wants two layers where none can be written to.
    let options = [b"lowerdir=", escaped(&from).as_slice(), b":", EMPTY.as_bytes()].concat();
    let options = CString::new(options).expect("a path has no NUL");
    match mount("overlay", &to, "overlay", flags, options.as_c_str()) {
        Err(Errno::NODEV) => anyhow::bail!("this kernel has none: load the module overlay"),
        other => Ok(other?),
    }
}

fn show_copy(from: &Path, to: &Path) -> Result<()> {
    anyhow::ensure!(from.metadata()?.len() <= COPIED_BYTES_MAX, "too large to be copied");
    let name = to.as_os_str().as_bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let copy = Path::new(COPIES).join(&name[name.len().saturating_sub(200)..]);
    fs::copy(from, &copy)?;
    mount_bind(&copy, to)?;
    Ok(mount_remount(to, MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV, c"")?)
}

/// What the box has for itself: processes, devices, and files that are gone when it ends.
fn make_own() -> Result<()> {
    let plain = MountFlags::NOSUID | MountFlags::NODEV;
    let tmp = inside("/tmp".as_ref());
    if canary::is(Canary::BoundFolder) {
        mount_bind(below(OUTSIDE, "/tmp".as_ref()), &tmp)?;
    } else {
        mount("tmp", &tmp, "tmpfs", plain, c"mode=1777").context("/tmp of the box")?;
    }
    let flags = plain | MountFlags::NOEXEC;
    mount("proc", inside("/proc".as_ref()), "proc", flags | MountFlags::RDONLY, None).context("/proc of the box")?;
    devices::make(&inside("/dev".as_ref()))
}

fn inside(path: &Path) -> PathBuf {
    below(INSIDE, path)
}

fn below(folder: &str, path: &Path) -> PathBuf {
    Path::new(folder).join(path.strip_prefix("/").unwrap_or(path))
}

/// A path as one of several in an option of mount.
fn escaped(path: &Path) -> Vec<u8> {
    let mut escaped = Vec::new();
    for &byte in path.as_os_str().as_bytes() {
        if b":,\\".contains(&byte) {
            escaped.push(b'\\');
        }
        escaped.push(byte);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_put_below_folders() {
        assert_eq!(below(OUTSIDE, "/".as_ref()), Path::new("/outside/"));
        assert_eq!(inside("/mnt/a".as_ref()), Path::new("/inside/mnt/a"));
        assert_eq!(escaped("/a:b,c\\d".as_ref()), b"/a\\:b\\,c\\\\d");
    }

    #[test]
    fn what_the_box_has_itself_is_not_shown() {
        let line = |point: &str, kind: &str| format!("2 1 0:1 / {point} rw - {kind} x rw");
        let shown =
            |point: &str, kind: &str| is_shown(&mounts::parse(line(point, kind).as_bytes())[0], "/mnt".as_ref());
        assert!(shown("/home", "ext4") && shown("/mnt2", "xfs") && shown("/device", "ext4"));
        assert!(!shown("/", "ext4") && !shown("/mnt", "ext4") && !shown("/tmp/a", "ext4") && !shown("/dev", "tmpfs"));
        assert!(!shown("/sys/fs/cgroup", "cgroup2") && !shown("/var/lib/nfs", "rpc_pipefs"));
    }
}
