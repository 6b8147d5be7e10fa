//! Who uses a file system: processes with its files, and mount namespaces that show it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{makedev, statx, AtFlags, FileType, StatxFlags, CWD};

use crate::sys;

type Device = (u32, u32);

/// The kernel's own device numbers have so many bits for the minor number.
const KERNEL_MINOR_BITS: u32 = 20;

/// The first process, other than `ours`, that has something of `device`: in words, with what it has.
pub fn first_user(device: Device, ours: &[u32]) -> Option<String> {
    first_process(ours, |pid| what_it_has(pid, device))
}

/// The first process, other than `ours`, of which `describe` says something: in words.
fn first_process(ours: &[u32], describe: impl Fn(u32) -> Option<String>) -> Option<String> {
    processes().filter(|pid| !ours.contains(pid)).find_map(|pid| {
        let what = describe(pid)?;
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Some(format!("{} (process {pid}) {what}", name.trim_end()))
    })
}

/// The first process, other than `ours`, that has a folder of a mount that is not among the `shown` ones: in words.
///
/// A copy of a tree of mounts need not be in any mount namespace (open_tree(2)). What is in it cannot be covered.
pub fn first_with_hidden_mount(shown: &BTreeSet<u64>, ours: &[u32]) -> Option<String> {
    first_process(ours, |pid| {
        let has_one = threads(pid).iter().any(|thread| {
            let folders = ["cwd", "root"].map(|link| PathBuf::from(format!("{thread}/{link}")));
            folders.into_iter().chain(descriptors(thread)).any(|place| is_hidden(&place, shown))
        });
        has_one.then(|| "has a folder of a mount that no mount namespace shows".to_owned())
    })
}

fn is_hidden(place: &Path, shown: &BTreeSet<u64>) -> bool {
    let fields = StatxFlags::TYPE | StatxFlags::MNT_ID;
    statx(CWD, place, AtFlags::STATX_DONT_SYNC, fields).is_ok_and(|found| {
        let is_folder = FileType::from_raw_mode(found.stx_mode.into()) == FileType::Directory;
        let has_mount_id = found.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        is_folder && has_mount_id && !shown.contains(&found.stx_mnt_id)
    })
}

/// Whether a mount namespace belongs to the user namespace of this process.
pub fn is_of_our_user(namespace: &OwnedFd) -> io::Result<bool> {
    const OWNER: libc::c_ulong = 0xb701;
    // SAFETY: it has no argument.
    let owner = sys::owned(unsafe { libc::syscall(libc::SYS_ioctl, namespace.as_raw_fd(), OWNER) })?;
    Ok(fs::File::from(owner).metadata()?.ino() == fs::metadata("/proc/self/ns/user")?.ino())
}

/// Every mount namespace in which a thread is, or of which one has a descriptor, by its inode.
pub fn mount_namespaces() -> BTreeMap<u64, OwnedFd> {
    let mut found = BTreeMap::new();
    for thread in processes().flat_map(threads) {
        let held = descriptors(&thread).filter(|path| is_mount_namespace(path));
        for path in std::iter::once(PathBuf::from(format!("{thread}/ns/mnt"))).chain(held) {
            let Ok(inode) = fs::metadata(&path).map(|meta| meta.ino()) else { continue };
            if let (false, Ok(file)) = (found.contains_key(&inode), fs::File::open(&path)) {
                found.insert(inode, OwnedFd::from(file));
            }
        }
    }
    found
}

fn is_mount_namespace(descriptor: &Path) -> bool {
    fs::read_link(descriptor).is_ok_and(|target| target.as_os_str().as_bytes().starts_with(b"mnt:["))
}

fn processes() -> impl Iterator<Item = u32> {
    names("/proc").into_iter().filter_map(|name| name.parse().ok())
}

fn names(folder: impl AsRef<Path>) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// The folders in /proc of a process's threads. Each may have descriptors and a mount namespace of its own.
fn threads(pid: u32) -> Vec<String> {
    let folder = format!("/proc/{pid}/task");
    names(&folder).into_iter().map(|thread| format!("{folder}/{thread}")).collect()
}

fn descriptors(thread: &str) -> impl Iterator<Item = PathBuf> + '_ {
    names(format!("{thread}/fd")).into_iter().map(move |name| PathBuf::from(format!("{thread}/fd/{name}")))
}

fn what_it_has(pid: u32, device: Device) -> Option<String> {
    let of_threads = threads(pid).iter().find_map(|thread| what_a_thread_has(thread, device));
    of_threads.or_else(|| {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        maps.lines().find_map(|line| mapped_file(line, device)).map(|path| format!("has {path} mapped"))
    })
}

fn what_a_thread_has(thread: &str, device: Device) -> Option<String> {
    for (link, words) in [("cwd", "is in the folder"), ("root", "has the root"), ("exe", "runs")] {
        let place = PathBuf::from(format!("{thread}/{link}"));
        if is_on(&place, device) {
            return Some(format!("{words} {}", target_of(&place)));
        }
    }
    let mut used = descriptors(thread).filter(|descriptor| is_on(descriptor, device));
    let open = used.next().map(|descriptor| format!("has {} open", target_of(&descriptor)));
    open.or_else(|| watches(thread, device).then(|| "is told of changes in it (inotify or fanotify)".to_owned()))
}

/// Whether a thread has asked to be told what happens to files of `device`. For this no file has to be open.
fn watches(thread: &str, device: Device) -> bool {
    let folder = format!("{thread}/fdinfo");
    names(&folder).into_iter().any(|name| {
        let fdinfo = fs::read_to_string(format!("{folder}/{name}")).unwrap_or_default();
        fdinfo.lines().any(|line| is_watch(line, device))
    })
}

/// Whether a line of a descriptor's fdinfo is a watch on `device`, such as `inotify wd:1 ino:2 sdev:800011 mask:fff …`.
fn is_watch(line: &str, (major, minor): Device) -> bool {
    let Some(("inotify" | "fanotify", rest)) = line.split_once(' ') else { return false };
    let found = rest.split(' ').find_map(|word| u32::from_str_radix(word.strip_prefix("sdev:")?, 16).ok());
    found == Some(major << KERNEL_MINOR_BITS | minor)
}

fn target_of(link: &Path) -> String {
    fs::read_link(link).map_or_else(|_| "a file of it".to_owned(), |path| path.display().to_string())
}

fn is_on(link: &Path, device: Device) -> bool {
    device_of(link).is_ok_and(|found| found == device)
}

/// The device of the file system that has the file. Links are followed.
pub fn device_of(path: &Path) -> io::Result<Device> {
    let found = statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE)?;
    Ok((found.stx_dev_major, found.stx_dev_minor))
}

/// The file of a line of /proc/PID/maps, if it is on `device`.
fn mapped_file(line: &str, device: Device) -> Option<&str> {
    let mut words = line.splitn(6, ' ');
    let (major, minor) = words.nth(3)?.split_once(':')?;
    let found = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
    (makedev(found.0, found.1) == makedev(device.0, device.1)).then(|| line.rsplit(' ').next().unwrap_or("a file"))
}

#[cfg(test)]
mod tests {
    use rustix::fs::inotify;

    use super::*;

    #[test]
    fn a_mapped_file_is_recognised_by_its_device() {
        let line = "7f1c2a000000-7f1c2a001000 rw-s 00000000 fd:0a 1234                       /mnt/a b";
        assert_eq!(mapped_file(line, (0xfd, 0x0a)), Some("b"));
        assert_eq!(mapped_file(line, (0xfd, 0x0b)), None);
        assert_eq!(mapped_file("7f-80 rw-p 00000000 00:00 0", (0xfd, 0x0a)), None);
        assert_eq!(mapped_file("", (0, 0)), None);
    }

    #[test]
    fn a_process_with_an_open_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let _open = fs::File::create(&path).unwrap();
        let thread = format!("/proc/self/task/{}", rustix::thread::gettid().as_raw_nonzero());
        let device = device_of(&path).unwrap();
        assert!(what_a_thread_has(&thread, device).is_some());
        assert_eq!(what_a_thread_has(&thread, (0xfff, 0xfff)), None);
    }

    #[test]
    fn a_descriptor_of_a_mount_namespace_is_recognised() {
        let descriptor = |file: &fs::File| PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let [mounts, network] = ["mnt", "net"].map(|kind| fs::File::open(format!("/proc/self/ns/{kind}")).unwrap());
        assert!(is_mount_namespace(&descriptor(&mounts)) && !is_mount_namespace(&descriptor(&network)));
    }

    #[test]
    fn a_folder_of_a_mount_that_nothing_shows_is_hidden() {
        let mount = statx(CWD, "/proc", AtFlags::empty(), StatxFlags::MNT_ID).unwrap().stx_mnt_id;
        assert!(
            is_hidden("/proc".as_ref(), &BTreeSet::new()) && !is_hidden("/proc".as_ref(), &BTreeSet::from([mount]))
        );
        assert!(!is_hidden("/proc/version".as_ref(), &BTreeSet::new()), "it leads nowhere");
        assert!(is_of_our_user(&OwnedFd::from(fs::File::open("/proc/self/ns/mnt").unwrap())).unwrap());
    }

    #[test]
    fn a_process_that_watches_a_folder_is_named() {
        let queue = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
        inotify::add_watch(&queue, "/proc", inotify::WatchFlags::ALL_EVENTS).unwrap();
        let thread = format!("/proc/self/task/{}", rustix::thread::gettid().as_raw_nonzero());
        let device = device_of("/proc".as_ref()).unwrap();
        assert!(watches(&thread, device) && !watches(&thread, (0xfff, 0xfff)));
    }

    #[test]
    fn watches_are_recognised_by_their_device() {
        let device = (8, 0x11);
        assert!(is_watch("inotify wd:1 ino:2 sdev:800011 mask:fff ignored_mask:0 fhandle-bytes:8", device));
        assert!(is_watch("fanotify sdev:800011 mflags:0 mask:3b ignored_mask:0", device));
        assert!(!is_watch("inotify wd:1 ino:2 sdev:800012 mask:fff", device));
        assert!(!is_watch("fanotify mnt_id:12 mflags:0 mask:3b", device) && !is_watch("pos:\t0", device));
    }
}
