//! Opens with O_SYNC or O_DSYNC, carried out without that flag, so that writes do not wait for the disk.
//!
//! A thread becomes like the one that asked, as far as an open can tell: its root and folder, its user and capabilities.
//! If the open succeeds there, the caller is given the descriptor. If anything differs from the plain case, the kernel
//! carries out the open itself, with the flag. Each write is then a commit, which is slow and right.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;

use rustix::fs::{open, openat2, statx, AtFlags, FileType, Mode, OFlags, ResolveFlags, StatxFlags, CWD};
use rustix::process::{chroot, fchdir, umask, Gid, Uid};
use rustix::thread::{
    move_into_link_name_space, set_capabilities, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
    unshare_unsafe, CapabilitySet, CapabilitySets, LinkNameSpaceType, UnshareFlags,
};

const PATH_BYTES_MAX: usize = libc::PATH_MAX as usize;

/// An open that a thread of the box asks for.
pub struct Open {
    path: CString,
    flags: OFlags,
    mode: Mode,
    caller: Caller,
}

/// What an open depends on, besides its arguments.
struct Caller {
    root: OwnedFd,
    folder: OwnedFd,
    namespace: OwnedFd,
    umask: Mode,
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
    capabilities: CapabilitySet,
}

impl Open {
    /// The open that `thread` asks for, by the arguments of openat(2).
    pub fn of(thread: u32, arguments: [u64; 4]) -> Option<Open> {
        let [folder, path, flags, mode] = arguments;
        let flags = OFlags::from_bits_retain(flags as u32);
        if flags.contains(OFlags::PATH) || !has_room(thread)? {
            return None;
        }
        let path = read_path(thread, path)?;
        Some(Open { path, flags, mode: Mode::from_raw_mode(mode as u32), caller: Caller::of(thread, folder as i32)? })
    }

    /// Whether the caller's descriptor is closed when it runs another program.
    pub fn closes_at_exec(&self) -> bool {
        self.flags.contains(OFlags::CLOEXEC)
    }

    /// A file of `device`, open as asked for but without the flag. None if the kernel must carry this out.
    pub fn without_sync(self, device: (u32, u32)) -> Option<OwnedFd> {
        // What this thread gives up, only this thread is without.
        thread::scope(|scope| scope.spawn(|| self.opened(device)).join().ok()?)
    }

    fn opened(&self, device: (u32, u32)) -> Option<OwnedFd> {
        self.caller.imitate().ok()?;
        // Anything but a file may wait, or tell somebody that it is opened.
        let looked_at = self.open_with(OFlags::PATH | (self.flags & OFlags::NOFOLLOW), Mode::empty());
        let is_plain = match looked_at {
            Ok(found) => is_file_of(&found, device),
            // It is to be made. Where this is not for us to do, it must not have been made before the kernel does it.
            Err(_) => self.folder_is_on(device),
        };
        if !is_plain {
            return None;
        }
        let flags = self.flags.difference(OFlags::SYNC) | OFlags::CLOEXEC;
        let makes_file = self.flags.intersects(OFlags::CREATE | OFlags::TMPFILE.difference(OFlags::DIRECTORY));
        let opened = self.open_with(flags, if makes_file { self.mode } else { Mode::empty() }).ok()?;
        is_file_of(&opened, device).then_some(opened)
    }

    fn folder_is_on(&self, device: (u32, u32)) -> bool {
        let path = Path::new(OsStr::from_bytes(self.path.as_bytes()));
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat2(CWD, folder, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS);
        opened.is_ok_and(|folder| device_of(&folder) == Some(device))
    }

    /// Links such as /proc/self/fd/3 would lead to files of ours.
    fn open_with(&self, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
        openat2(CWD, self.path.as_c_str(), flags, mode, ResolveFlags::NO_MAGICLINKS)
    }
}

impl Caller {
    fn of(thread: u32, folder: i32) -> Option<Caller> {
        let proc = |name: &str| {
            let path = format!("/proc/{thread}/{name}");
            open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()
        };
        let folder = if folder == libc::AT_FDCWD { "cwd".to_owned() } else { format!("fd/{folder}") };
        let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
        let namespace = open(format!("/proc/{thread}/ns/mnt"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        // The last of four is the one for files.
        let for_files = |name| value(&status, name)?.split_whitespace().nth(3)?.parse().ok();
        let groups = value(&status, "Groups")?.split_whitespace().map(|group| group.parse().map(Gid::from_raw));
        Some(Caller {
            root: proc("root")?,
            folder: proc(&folder)?,
            namespace,
            umask: Mode::from_raw_mode(u32::from_str_radix(value(&status, "Umask")?, 8).ok()?),
            uid: Uid::from_raw(for_files("Uid")?),
            gid: Gid::from_raw(for_files("Gid")?),
            groups: groups.collect::<Result<_, _>>().ok()?,
            capabilities: CapabilitySet::from_bits_retain(u64::from_str_radix(value(&status, "CapEff")?, 16).ok()?),
        })
    }

    /// Make this thread like the caller.
    fn imitate(&self) -> io::Result<()> {
        // SAFETY: this thread's root and folder become its own; descriptors stay shared.
        unsafe { unshare_unsafe(UnshareFlags::FS)? };
        move_into_link_name_space(self.namespace.as_fd(), Some(LinkNameSpaceType::Mount))?;
        fchdir(&self.root)?;
        chroot(".")?;
        fchdir(&self.folder)?;
        umask(self.umask);
        set_thread_groups(&self.groups)?;
        set_thread_res_gid(self.gid, self.gid, self.gid)?;
        rustix::thread::set_keep_capabilities(true)?;
        set_thread_res_uid(self.uid, self.uid, self.uid)?;
        let (held, none) = (self.capabilities, CapabilitySet::empty());
        Ok(set_capabilities(None, CapabilitySets { effective: held, permitted: held, inheritable: none })?)
    }
}

fn device_of(file: &OwnedFd) -> Option<(u32, u32)> {
    let found = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::TYPE).ok()?;
    Some((found.stx_dev_major, found.stx_dev_minor))
}

fn is_file_of(file: &OwnedFd, device: (u32, u32)) -> bool {
    let found = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::TYPE);
    found.is_ok_and(|found| {
        FileType::from_raw_mode(found.stx_mode.into()) == FileType::RegularFile
            && (found.stx_dev_major, found.stx_dev_minor) == device
    })
}

fn value<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = status.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(found, _)| *found == name).map(|(_, value)| value.trim())
}

/// Whether the process can have one more descriptor. If it cannot, the open must not make or truncate a file.
fn has_room(thread: u32) -> Option<bool> {
    let limits = std::fs::read_to_string(format!("/proc/{thread}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let soft = line.split_whitespace().next()?;
    let open = std::fs::read_dir(format!("/proc/{thread}/fd")).ok()?.count();
    Some(soft.parse().map_or(true, |limit: usize| open < limit))
}

fn read_path(thread: u32, address: u64) -> Option<CString> {
    let memory = std::fs::File::open(format!("/proc/{thread}/mem")).ok()?;
    let mut bytes = vec![0; PATH_BYTES_MAX];
    let read = memory.read_at(&mut bytes, address).ok()?;
    CStr::from_bytes_until_nul(&bytes[..read]).ok().map(CStr::to_owned)
}

/// Give the caller of the call `id` the descriptor as the result of that call. Fails if the caller is gone.
pub fn give(listener: &OwnedFd, id: u64, file: &OwnedFd, closes_at_exec: bool) -> io::Result<()> {
    const ADD: libc::c_ulong = 0x4018_2103;
    const AND_ANSWER: u32 = 2;
    let given = libc::seccomp_notif_addfd {
        id,
        flags: AND_ANSWER,
        srcfd: file.as_raw_fd() as u32,
        newfd: 0,
        newfd_flags: if closes_at_exec { libc::O_CLOEXEC as u32 } else { 0 },
    };
    // SAFETY: the structure lives through the call.
    crate::sys::check(unsafe { libc::ioctl(listener.as_raw_fd(), ADD, &given) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_read_from_its_status() {
        let status = "Name:\tx\nUmask:\t0027\nUid:\t1\t2\t3\t4\nGroups:\t5 6 \n";
        assert_eq!(value(status, "Umask"), Some("0027"));
        assert_eq!(value(status, "Uid").unwrap().split_whitespace().nth(3), Some("4"));
        assert_eq!(value(status, "CapEff"), None);
    }

    #[test]
    fn this_process_has_room_for_a_descriptor() {
        assert_eq!(has_room(rustix::thread::gettid().as_raw_nonzero().get() as u32), Some(true));
        assert_eq!(has_room(u32::MAX), None);
    }

    #[test]
    fn a_path_is_read_from_memory() {
        let (us, path) = (rustix::thread::gettid().as_raw_nonzero().get() as u32, c"/a/path");
        assert_eq!(read_path(us, path.as_ptr() as u64).as_deref(), Some(path));
        assert_eq!(read_path(us, 0), None);
    }
}
