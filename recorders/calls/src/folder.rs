//! The folder as it was at the last look, and what has changed since.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::CString;
use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use postcrash_wire::units::BLOCK_BYTES;

use crate::step::{Effect, FlushedRange, Step};
use postcrash_stopped::Mapping;

const FILES_MAX: usize = 4096;
const BYTES_MAX: u64 = 256 << 20;
/// The most that the kernel lists of one file's attributes.
const ATTRIBUTE_NAMES_BYTES: usize = 64 << 10;

struct Known {
    /// The file, so that it can be read under whichever name, and without any.
    open: File,
    size: u64,
    /// The blocks, without the zeros at their ends.
    blocks: Vec<Vec<u8>>,
}

/// What a folder holds: the names of each directory, and the contents of each file.
pub struct Folder {
    root: PathBuf,
    device: u64,
    /// The device as /proc/PID/maps tells it. On btrfs it is another one than files have.
    device_in_maps: u64,
    names: BTreeMap<u64, BTreeMap<String, u64>>,
    files: BTreeMap<u64, Known>,
    /// Inodes that were seen, with their modes.
    seen: HashMap<u64, u32>,
    /// What was seen is kept open, so that its inode is not used again. Files are open anyway.
    kept: Vec<File>,
    /// Files that are mapped: their bytes change without any system call.
    pub mapped: BTreeSet<u64>,
}

impl Folder {
    /// The folder as it is now, and the step that tells what it holds.
    pub fn open(root: &Path) -> io::Result<(Self, Step)> {
        let metadata = fs::metadata(root)?;
        let mut folder = Self {
            root: root.to_owned(),
            device: metadata.dev(),
            device_in_maps: device_in_maps(root).unwrap_or(metadata.dev()),
            names: BTreeMap::new(),
            files: BTreeMap::new(),
            seen: HashMap::from([(metadata.ino(), metadata.mode())]),
            kept: Vec::new(),
            mapped: BTreeSet::new(),
        };
        let all = FlushedRange { inode: metadata.ino(), start: 0, end: None, own: false };
        let mut begin = Step { call: "begin".to_owned(), durable: vec![all], ..Step::default() };
        folder.names(&mut begin.effects)?;
        Ok((folder, begin))
    }

    /// Whether this is a file or directory of the folder, or was one.
    pub fn is_inside(&self, device: u64, inode: u64) -> bool {
        device == self.device && self.seen.contains_key(&inode)
    }

    /// Whether this is a part of a file of the folder, of which a program may have mapped others too.
    pub fn has_mapped(&self, part: &Mapping) -> bool {
        part.device == self.device_in_maps && self.mapped.contains(&part.inode)
    }

    /// Note a file that has no name, if it is one: O_TMPFILE makes such files.
    pub fn nameless(&mut self, path: &Path, effects: &mut Vec<Effect>) -> io::Result<()> {
        let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
        if metadata.is_file() && metadata.dev() == self.device && metadata.nlink() == 0 {
            self.inode(path, &metadata, effects)?;
        }
        Ok(())
    }

    /// Note changed names, new files, and contents of files that have another size.
    pub fn names(&mut self, effects: &mut Vec<Effect>) -> io::Result<()> {
        let mut now = BTreeMap::new();
        let root = self.root.clone();
        self.directory(&root, &mut now, effects)?;
        let folders: BTreeSet<u64> = self.names.keys().chain(now.keys()).copied().collect();
        let none = BTreeMap::new();
        for folder in folders {
            // A directory that has gone was empty: its names went before it.
            let (before, after) = (self.names.get(&folder).unwrap_or(&none), now.get(&folder).unwrap_or(&none));
            let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for name in names {
                let (old, new) = (before.get(name).copied().unwrap_or(0), after.get(name).copied().unwrap_or(0));
                if old != new {
                    effects.push(Effect::Name { folder, name: name.clone(), inode: new });
                }
            }
        }
        self.names = now;
        Ok(())
    }

    fn directory(
        &mut self,
        path: &Path,
        now: &mut BTreeMap<u64, BTreeMap<String, u64>>,
        effects: &mut Vec<Effect>,
    ) -> io::Result<()> {
        let mut names = BTreeMap::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let name = entry.file_name();
            let text = name.to_str().ok_or_else(|| io::Error::other(format!("{name:?} is a name that is not text")))?;
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.dev() != self.device {
                return Err(io::Error::other(format!("{text} is a mount or a subvolume, which is not followed")));
            }
            names.insert(text.to_owned(), metadata.ino());
            self.inode(&entry.path(), &metadata, effects)?;
            if metadata.is_dir() {
                self.directory(&entry.path(), now, effects)?;
            }
        }
        now.insert(fs::metadata(path)?.ino(), names);
        Ok(())
    }

    fn inode(&mut self, path: &Path, metadata: &Metadata, effects: &mut Vec<Effect>) -> io::Result<()> {
        let inode = metadata.ino();
        let before = self.seen.insert(inode, metadata.mode());
        if before != Some(metadata.mode()) {
            if before.is_none() && !metadata.is_file() {
                let flags = libc::O_PATH | libc::O_NOFOLLOW;
                self.kept.push(OpenOptions::new().read(true).custom_flags(flags).open(path)?);
            }
            if before.is_none() && has_attributes(path) {
                effects.push(Effect::Attributes { inode });
            }
            let target = if metadata.is_symlink() { fs::read_link(path)? } else { PathBuf::new() };
            let target = String::from_utf8_lossy(target.as_os_str().as_bytes()).into_owned();
            let file_type = type_of(metadata.file_type());
            effects.push(Effect::Inode { inode, file_type, mode: metadata.mode() & 0o7777, target });
        }
        if !metadata.is_file() {
            return Ok(());
        }
        if !self.files.contains_key(&inode) {
            if self.files.len() == FILES_MAX {
                return Err(io::Error::other(format!("the program makes more than {FILES_MAX} files")));
            }
            self.files.insert(inode, Known { open: File::open(path)?, size: 0, blocks: Vec::new() });
        }
        if self.files[&inode].size != metadata.size() {
            self.content(inode, effects)?;
        }
        Ok(())
    }

    /// Note what has extended attributes.
    pub fn attributes(&self, effects: &mut Vec<Effect>) -> io::Result<()> {
        let mut waiting = vec![self.root.clone()];
        while let Some(path) = waiting.pop() {
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            if has_attributes(&path) {
                effects.push(Effect::Attributes { inode: metadata.ino() });
            }
            if metadata.is_dir() {
                waiting.extend(fs::read_dir(&path)?.filter_map(|entry| entry.ok()).map(|entry| entry.path()));
            }
        }
        Ok(())
    }

    /// Note the changed bytes of one file.
    pub fn content(&mut self, inode: u64, effects: &mut Vec<Effect>) -> io::Result<()> {
        let Some(known) = self.files.get_mut(&inode) else { return Ok(()) };
        let size = known.open.metadata()?.size();
        if size > BYTES_MAX {
            return Err(io::Error::other(format!("a file has more than {BYTES_MAX} bytes")));
        }
        if size != known.size {
            effects.push(Effect::Size { inode, size });
        }
        let count = (size as usize).div_ceil(BLOCK_BYTES);
        known.size = size;
        let mut buffer = vec![0; size as usize];
        let length = read_all(&known.open, &mut buffer)?;
        buffer.truncate(length);
        // Forget the blocks behind the file's new end. If the file grows, its new blocks begin as zeros.
        known.blocks.resize(count, Vec::new());
        for (block, old) in known.blocks.iter_mut().enumerate() {
            let start = (block * BLOCK_BYTES).min(buffer.len());
            let new = without_zeros(&buffer[start..(start + BLOCK_BYTES).min(buffer.len())]);
            if old.as_slice() != new {
                effects.push(Effect::Block { inode, block: block as u64, bytes: hexadecimal(new) });
                *old = new.to_vec();
            }
        }
        Ok(())
    }

    /// Note the changed bytes of all files that are mapped.
    pub fn stores(&mut self, effects: &mut Vec<Effect>) -> io::Result<()> {
        self.mapped.clone().into_iter().try_for_each(|inode| self.content(inode, effects))
    }

    /// What these effects change that nobody can have changed by storing through a mapping. A write can change the mode of
    /// its file, so modes are none.
    pub fn changed_by_nobody(&self, effects: &[Effect]) -> Option<String> {
        effects.iter().find_map(|effect| match effect {
            Effect::Name { name, .. } => Some(name.clone()),
            Effect::Size { inode, .. } => Some(self.name_of(*inode)),
            Effect::Block { inode, .. } => (!self.mapped.contains(inode)).then(|| self.name_of(*inode)),
            Effect::Inode { .. } | Effect::Attributes { .. } => None,
        })
    }

    fn name_of(&self, inode: u64) -> String {
        let names = self.names.values().flatten();
        let found = names.into_iter().find(|(_, &known)| known == inode);
        found.map_or_else(|| "a file without a name".to_owned(), |(name, _)| name.clone())
    }

    /// Note everything that has changed.
    pub fn everything(&mut self, effects: &mut Vec<Effect>) -> io::Result<()> {
        self.names(effects)?;
        let files: Vec<u64> = self.files.keys().copied().collect();
        files.into_iter().try_for_each(|inode| self.content(inode, effects))
    }
}

fn type_of(file_type: FileType) -> &'static str {
    match file_type {
        kind if kind.is_file() => "file",
        kind if kind.is_dir() => "dir",
        kind if kind.is_symlink() => "symlink",
        kind if kind.is_fifo() => "fifo",
        kind if kind.is_socket() => "socket",
        kind if kind.is_char_device() => "char",
        kind if kind.is_block_device() => "block",
        _ => "other",
    }
}

/// The device of the file system on which `root` is, as its mount tells it.
fn device_in_maps(root: &Path) -> Option<u64> {
    let folder = File::open(root).ok()?;
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", folder.as_raw_fd())).ok()?;
    let id = info.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim();
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = mounts.lines().find(|line| line.split(' ').next() == Some(id))?;
    let (major, minor) = mount.split(' ').nth(2)?.split_once(':')?;
    Some(libc::makedev(major.parse().ok()?, minor.parse().ok()?))
}

/// Whether there are attributes that a program has set. Those of security modules are none.
fn has_attributes(path: &Path) -> bool {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return false };
    let mut list = vec![0u8; ATTRIBUTE_NAMES_BYTES];
    // SAFETY: the kernel reads a text with an end, and writes at most so many bytes.
    let length = unsafe { libc::llistxattr(name.as_ptr(), list.as_mut_ptr().cast(), list.len()) };
    let Ok(length) = usize::try_from(length) else { return false };
    list[..length].split(|&byte| byte == 0).any(|name| name.starts_with(b"user.") || name.starts_with(b"trusted."))
}

fn read_all(file: &File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut at = 0;
    while at < buffer.len() {
        match file.read_at(&mut buffer[at..], at as u64)? {
            0 => break,
            length => at += length,
        }
    }
    Ok(at)
}

fn without_zeros(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &bytes[..end]
}

fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)] as char);
        text.push(DIGITS[usize::from(byte & 15)] as char);
    }
    text
}
