//! What the harness and mkfs put into the root of the target. It is no workload's, and trees leave it out.
//!
//! A name alone does not tell: a program may have a folder `lost+found` or `.aged` of its own, which is listed like any other.
//! So a name is left out only where mkfs or the harness makes it, and only as it was made: a `lost+found` with something in
//! it is listed. A program that changes what is left out is refused (`ProtectedNames`), so no crash state of an accepted
//! run has a program's own file there.
//!
//! Not checked: what the files of an aged image hold. To read 7 to 200 MiB in each recovery would take longer than all else.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;

use postcrash_wire::{AgedFiles, Mount, Recover};

use crate::commit::SCRATCH;
use crate::sys::{cstr, names, open_at, stat_at};
use crate::MOUNT_POINT;

/// A file that mkfs.nilfs2 makes.
const NILFS: &str = ".nilfs";
const NILFS_TYPE: &str = "nilfs2";
/// The folder of the files that fill aged base images.
const AGED: &str = ".aged";
/// A folder that mke2fs makes. fsck puts files there that have lost their names.
pub const LOST_AND_FOUND: &str = "lost+found";
/// mke2fs makes lost+found first, so it has the first inode that is not reserved: EXT2_GOOD_OLD_FIRST_INO of e2fsprogs,
/// lib/ext2fs/ext2_fs.h. mkfs.nilfs2 gives `.nilfs` the inode NILFS_NILFS_INO of its mkfs.c, which has the same number.
const MADE_BY_MKFS: u64 = 11;
const EXT_TYPES: [&str; 3] = ["ext2", "ext3", "ext4"];
const EXT_HELPER: &str = "fuse2fs";
/// st_blocks counts in these units.
const STAT_BLOCK_BYTES: u64 = 512;

/// Which names of the root are left out of trees.
pub struct HiddenNames<'a> {
    /// Whether what is left out is looked at. Workloads cannot name it, so it is not if nothing but a workload can change it.
    is_looked_at: bool,
    has_lost_and_found: bool,
    has_nilfs: bool,
    aged: Option<&'a AgedFiles>,
}

impl<'a> HiddenNames<'a> {
    pub fn of(recover: &'a Recover) -> Self {
        HiddenNames {
            is_looked_at: recover.bytes || !recover.repair.is_empty(),
            has_lost_and_found: is_ext(&recover.mount),
            has_nilfs: recover.mount.fstype == NILFS_TYPE,
            aged: recover.aged.as_ref(),
        }
    }

    /// Whether this name in the root is left out. If it cannot be looked at, it is listed, with its error.
    pub fn has(&self, root: RawFd, name: &CStr) -> bool {
        let is = |known: &str| name.to_bytes() == known.as_bytes();
        let made = |expected: fn(RawFd, &CStr) -> bool| !self.is_looked_at || expected(root, name);
        (is(SCRATCH) && made(is_empty_file))
            || (is(NILFS) && self.has_nilfs && made(is_mkfs_file))
            || (is(AGED) && self.aged.is_some())
            || (is(LOST_AND_FOUND) && self.has_lost_and_found && is_mkfs_folder(root, name) && made(is_empty_folder))
    }

    /// What is wrong with the files that fill an aged image. Empty if there is nothing.
    pub fn damage(&self, root: RawFd) -> String {
        self.aged.and_then(|aged| damage(root, aged).err()).unwrap_or_default()
    }
}

fn is_ext(mount: &Mount) -> bool {
    let is_helper = mount.helper.first().is_some_and(|program| program.ends_with(EXT_HELPER));
    is_helper || EXT_TYPES.contains(&mount.fstype.as_str())
}

fn is_empty_file(root: RawFd, name: &CStr) -> bool {
    stat_at(root, name, libc::AT_SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| stat.st_mode & libc::S_IFMT == libc::S_IFREG && stat.st_size == 0 && stat.st_nlink == 1)
}

fn is_mkfs_file(root: RawFd, name: &CStr) -> bool {
    is_empty_file(root, name)
        && stat_at(root, name, libc::AT_SYMLINK_NOFOLLOW).is_ok_and(|stat| stat.st_ino == MADE_BY_MKFS)
}

/// Whether it has no folders, and is the one that mke2fs made.
fn is_mkfs_folder(root: RawFd, name: &CStr) -> bool {
    stat_at(root, name, libc::AT_SYMLINK_NOFOLLOW).is_ok_and(|stat| {
        stat.st_mode & libc::S_IFMT == libc::S_IFDIR && stat.st_ino == MADE_BY_MKFS && stat.st_nlink == 2
    })
}

fn is_empty_folder(root: RawFd, name: &CStr) -> bool {
    open_at(root, name, libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW)
        .and_then(|folder| names(folder.as_raw_fd()))
        .is_ok_and(|names| names.is_empty())
}

/// Err: what is wrong, in words.
fn damage(root: RawFd, aged: &AgedFiles) -> Result<(), String> {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let unread = |error: io::Error| format!("{AGED} cannot be read: {error}");
    let folder = cstr(AGED).and_then(|name| open_at(root, &name, flags)).map_err(unread)?;
    let found = names(folder.as_raw_fd()).map_err(unread)?;
    let found: Vec<_> = found.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    let expected = aged.names();
    if let Some(name) = expected.iter().find(|name| !found.contains(name)) {
        return Err(format!("{AGED}/{name} is gone"));
    }
    if let Some(name) = found.iter().find(|name| !expected.contains(name)) {
        return Err(format!("{AGED}/{name} is there, but nobody made it"));
    }
    expected.iter().try_for_each(|name| file_damage(folder.as_raw_fd(), name, aged.bytes))
}

fn file_damage(folder: RawFd, name: &str, bytes: u64) -> Result<(), String> {
    let stat = cstr(name).and_then(|name| stat_at(folder, &name, libc::AT_SYMLINK_NOFOLLOW));
    let stat = stat.map_err(|error| format!("{AGED}/{name} cannot be read: {error}"))?;
    let on_disk = stat.st_blocks as u64 * STAT_BLOCK_BYTES;
    if stat.st_mode & libc::S_IFMT != libc::S_IFREG || stat.st_nlink != 1 {
        Err(format!("{AGED}/{name} is not a file with one name"))
    } else if stat.st_size as u64 != bytes {
        Err(format!("{AGED}/{name} has {} bytes, not {bytes}", stat.st_size))
    } else if on_disk < bytes {
        Err(format!("{AGED}/{name} has blocks for {on_disk} of its {bytes} bytes"))
    } else {
        Ok(())
    }
}

/// What must be the same before and after a program: what is left out of trees, and which folder `lost+found` is.
#[derive(PartialEq)]
pub struct ProtectedNames(BTreeMap<String, Option<Identity>>);

#[derive(PartialEq)]
struct Identity {
    device: u64,
    inode: u64,
    /// What name_to_handle_at(2) tells: inode and generation, so that a number that is used again is another one.
    handle: Vec<u8>,
    /// Mode, size, and the time of the last change of anything. It may change if this is None.
    state: Option<(u32, i64, i64, i64)>,
}

impl ProtectedNames {
    pub fn now(mount: &Mount) -> ProtectedNames {
        let made_by_mkfs = |folder: &Identity| is_ext(mount) && folder.inode == MADE_BY_MKFS;
        let lost_and_found = identity(LOST_AND_FOUND, false).filter(made_by_mkfs);
        let mut kept = BTreeMap::from([(LOST_AND_FOUND.to_owned(), lost_and_found)]);
        kept.extend([SCRATCH, NILFS, AGED].map(|name| (name.to_owned(), identity(name, true))));
        // Names in it that are new or gone change the folder itself.
        let entries = std::fs::read_dir(Path::new(MOUNT_POINT).join(AGED)).into_iter().flatten().filter_map(Result::ok);
        let files = entries.filter_map(|entry| entry.file_name().into_string().ok());
        kept.extend(files.map(|name| format!("{AGED}/{name}")).map(|path| {
            let identity = identity(&path, true);
            (path, identity)
        }));
        ProtectedNames(kept)
    }

    /// What is no longer as it was. Of names that were not there, only those that `must_be_free` count.
    pub fn changed(&self, mount: &Mount, must_be_free: bool) -> Option<&str> {
        let now = ProtectedNames::now(mount);
        let is_changed = |(path, before): &(&String, &Option<Identity>)| {
            let is_ours = before.is_some() || (must_be_free && path.as_str() != LOST_AND_FOUND);
            is_ours && now.0.get(*path).unwrap_or(&None) != *before
        };
        self.0.iter().find(is_changed).map(|(path, _)| path.as_str())
    }
}

/// None if there is nothing of this name.
fn identity(path: &str, is_unchanging: bool) -> Option<Identity> {
    let full = cstr(&format!("{MOUNT_POINT}/{path}")).ok()?;
    let stat = stat_at(libc::AT_FDCWD, &full, libc::AT_SYMLINK_NOFOLLOW).ok()?;
    Some(Identity {
        device: stat.st_dev,
        inode: stat.st_ino,
        handle: handle(&full),
        state: is_unchanging.then_some((stat.st_mode, stat.st_size, stat.st_ctime, stat.st_ctime_nsec)),
    })
}

/// Empty if the file system has no handles.
fn handle(path: &CStr) -> Vec<u8> {
    #[repr(C)]
    struct Handle {
        bytes: u32,
        kind: i32,
        data: [u8; libc::MAX_HANDLE_SZ as usize],
    }
    let mut handle = Handle { bytes: libc::MAX_HANDLE_SZ as u32, kind: 0, data: [0; libc::MAX_HANDLE_SZ as usize] };
    let mut mount = 0;
    // SAFETY: the path is a C string, and the structure says how many bytes it has room for.
    let failed = unsafe {
        libc::name_to_handle_at(libc::AT_FDCWD, path.as_ptr(), (&raw mut handle).cast(), &raw mut mount, 0) != 0
    };
    if failed {
        Vec::new()
    } else {
        handle.data[..handle.bytes as usize].to_vec()
    }
}
