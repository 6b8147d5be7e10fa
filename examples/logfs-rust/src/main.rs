//! logfs: a small FUSE file system that keeps a log of its operations (docs/own-file-system.md).
//!
//!     logfs mkfs DEVICE
//!     logfs mount DEVICE FOLDER -o OPTIONS
//!
//! The first block has a magic number, how often it was mounted, and the size. Records follow, each with a checksum, a
//! length, the number of its mount, and a change of the tree, which is in memory. A mount reads the records and makes
//! the changes again, up to the first record that is not whole, or is older than the one before it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Error, Result};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use serde::{Deserialize, Serialize};

type Answer<T> = std::result::Result<T, Errno>;

const MAGIC: &[u8; 8] = b"logfs 2\n";
const BLOCK: u64 = 4096;
const HEAD: u64 = 12;
const ROOT: u64 = 1;
const CACHED: Duration = Duration::from_secs(1);

#[derive(Serialize, Deserialize)]
enum Change {
    Make { parent: u64, name: String, is_folder: bool },
    Move { inode: u64, parent: u64, name: String },
    Remove { inode: u64 },
    Write { inode: u64, offset: usize, data: Vec<u8> },
    Truncate { inode: u64, size: usize },
}

/// What has a name. A folder has no bytes. What was removed has no parent, and may be open.
struct Node {
    parent: Option<u64>,
    name: String,
    bytes: Option<Vec<u8>>,
}

struct State {
    device: File,
    size: u64,
    end: u64,
    mounts: u32,
    nodes: BTreeMap<u64, Node>,
}

impl State {
    fn open(device: &str) -> Result<State> {
        let device_file = OpenOptions::new().read(true).write(true).open(device)?;
        let mut start = [0; 16];
        device_file.read_exact_at(&mut start, 0)?;
        if start[..8] != MAGIC[..] {
            return Err(Error::other(format!("bad magic on {device}: {:?}", &start[..8])));
        }
        let size = u64::from(number(&start[12..]));
        let root = Node { parent: None, name: String::new(), bytes: None };
        let nodes = BTreeMap::from([(ROOT, root)]);
        let mut state = State { device: device_file, size, end: BLOCK, mounts: number(&start[8..]), nodes };
        let mut last = 0;
        while let Some((mount, change)) = state.next(last)? {
            state.apply(change);
            last = mount;
        }
        state.mounts += 1;
        state.device.write_all_at(&state.mounts.to_le_bytes(), MAGIC.len() as u64)?;
        state.device.sync_data()?;
        Ok(state)
    }

    /// The next record, which is not older than the mount `last`. None at the end of the log.
    fn next(&mut self, last: u32) -> Result<Option<(u32, Change)>> {
        let mut head = [0; HEAD as usize];
        self.device.read_exact_at(&mut head, self.end)?;
        let (checksum, length, mount) = (number(&head), u64::from(number(&head[4..])), number(&head[8..]));
        if mount < last || self.end + HEAD + length + HEAD > self.size {
            return Ok(None);
        }
        let mut content = vec![0; length as usize];
        self.device.read_exact_at(&mut content, self.end + HEAD)?;
        if checksum_of(&content, mount) != checksum {
            return Ok(None);
        }
        self.end += HEAD + length;
        Ok(Some((mount, bincode::deserialize(&content).map_err(Error::other)?)))
    }

    /// Write a record, and then change the tree. There is always room for the head of one more record.
    fn change(&mut self, change: Change) -> Answer<()> {
        let content = bincode::serialize(&change).map_err(|_| Errno::EIO)?;
        let head = [checksum_of(&content, self.mounts), content.len() as u32, self.mounts].map(u32::to_le_bytes);
        let record = [head.concat(), content].concat();
        if self.end + record.len() as u64 + HEAD > self.size {
            return Err(Errno::ENOSPC);
        }
        self.device.write_all_at(&record, self.end).map_err(|_| Errno::EIO)?;
        self.end += record.len() as u64;
        self.apply(change);
        Ok(())
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Make { parent, name, is_folder } => {
                let inode = self.nodes.last_key_value().map_or(ROOT, |(last, _)| last + 1);
                let bytes = if is_folder { None } else { Some(Vec::new()) };
                self.nodes.insert(inode, Node { parent: Some(parent), name, bytes });
            }
            Change::Move { inode, parent, name } => {
                if let Some(replaced) = self.find(parent, &name).and_then(|it| self.nodes.get_mut(&it)) {
                    replaced.parent = None;
                }
                let node = self.nodes.get_mut(&inode).expect("it was found");
                (node.parent, node.name) = (Some(parent), name);
            }
            Change::Remove { inode } => self.nodes.get_mut(&inode).expect("it was found").parent = None,
            Change::Write { inode, offset, data } => {
                let bytes = self.bytes(inode);
                bytes.resize(bytes.len().max(offset + data.len()), 0);
                bytes[offset..offset + data.len()].copy_from_slice(&data);
            }
            Change::Truncate { inode, size } => self.bytes(inode).resize(size, 0),
        }
    }

    fn bytes(&mut self, inode: u64) -> &mut Vec<u8> {
        self.nodes.get_mut(&inode).and_then(|node| node.bytes.as_mut()).expect("the kernel knows that it is a file")
    }

    fn entries(&self, parent: u64) -> impl Iterator<Item = (u64, &Node)> {
        self.nodes.iter().filter(move |(_, node)| node.parent == Some(parent)).map(|(inode, node)| (*inode, node))
    }

    fn find(&self, parent: u64, name: &str) -> Option<u64> {
        self.entries(parent).find(|(_, node)| node.name == name).map(|(inode, _)| inode)
    }

    fn attributes(&self, inode: u64) -> Answer<FileAttr> {
        let node = self.nodes.get(&inode).ok_or(Errno::ENOENT)?;
        let (kind, perm, nlink) = match node.bytes {
            Some(_) => (FileType::RegularFile, 0o644, u32::from(node.parent.is_some())),
            None => (
                FileType::Directory,
                0o755,
                2 + self.entries(inode).filter(|(_, it)| it.bytes.is_none()).count() as u32,
            ),
        };
        let size = node.bytes.as_ref().map_or(0, Vec::len) as u64;
        Ok(FileAttr {
            ino: INodeNo(inode),
            size,
            blocks: size.div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: BLOCK as u32,
            flags: 0,
        })
    }

    fn named(&self, parent: INodeNo, name: &OsStr) -> Answer<FileAttr> {
        self.attributes(self.find(parent.0, text(name)?).ok_or(Errno::ENOENT)?)
    }

    fn make(&mut self, parent: INodeNo, name: &OsStr, is_folder: bool) -> Answer<FileAttr> {
        self.change(Change::Make { parent: parent.0, name: text(name)?.into(), is_folder })?;
        self.named(parent, name)
    }

    fn remove(&mut self, parent: INodeNo, name: &OsStr) -> Answer<()> {
        let inode = self.named(parent, name)?.ino.0;
        if self.entries(inode).next().is_some() {
            return Err(Errno::ENOTEMPTY);
        }
        self.change(Change::Remove { inode })
    }

    fn rename(&mut self, from: (INodeNo, &OsStr), to: (INodeNo, &OsStr), flags: RenameFlags) -> Answer<()> {
        let (inode, name) = (self.named(from.0, from.1)?.ino.0, text(to.1)?.to_owned());
        if !flags.is_empty() {
            return Err(Errno::EINVAL);
        }
        if self.find(to.0 .0, &name).is_some_and(|replaced| self.entries(replaced).next().is_some()) {
            return Err(Errno::ENOTEMPTY);
        }
        self.change(Change::Move { inode, parent: to.0 .0, name })
    }
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"))
}

fn checksum_of(content: &[u8], mount: u32) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(mount);
    hasher.update(content);
    hasher.finalize()
}

fn text(name: &OsStr) -> Answer<&str> {
    name.to_str().ok_or(Errno::EINVAL)
}

struct Logfs(Mutex<State>);

impl Logfs {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no thread has panicked")
    }

    fn sync(&self, reply: ReplyEmpty) {
        done(self.state().device.sync_data().map_err(|_| Errno::EIO), reply);
    }
}

fn done(result: Answer<()>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

fn entry(result: Answer<FileAttr>, reply: ReplyEntry) {
    match result {
        Ok(attributes) => reply.entry(&CACHED, &attributes, Generation(0)),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for Logfs {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(self.state().named(parent, name), reply);
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.state().attributes(inode.0) {
            Ok(attributes) => reply.attr(&CACHED, &attributes),
            Err(error) => reply.error(error),
        }
    }

    #[rustfmt::skip]
    fn setattr(
        &self, request: &Request, inode: INodeNo, _: Option<u32>, _: Option<u32>, _: Option<u32>, size: Option<u64>,
        _: Option<TimeOrNow>, _: Option<TimeOrNow>, _: Option<SystemTime>, handle: Option<FileHandle>,
        _: Option<SystemTime>, _: Option<SystemTime>, _: Option<SystemTime>, _: Option<BsdFileFlags>, reply: ReplyAttr,
    ) {
        let truncate = |size| self.state().change(Change::Truncate { inode: inode.0, size: size as usize });
        match size.map_or(Ok(()), truncate) {
            Ok(()) => self.getattr(request, inode, handle, reply),
            Err(error) => reply.error(error),
        }
    }

    fn create(&self, _: &Request, parent: INodeNo, name: &OsStr, _: u32, _: u32, _: i32, reply: ReplyCreate) {
        match self.state().make(parent, name, false) {
            Ok(made) => reply.created(&CACHED, &made, Generation(0), FileHandle(0), FopenFlags::empty()),
            Err(error) => reply.error(error),
        }
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        entry(self.state().make(parent, name, true), reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(self.state().remove(parent, name), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(self.state().remove(parent, name), reply);
    }

    #[rustfmt::skip]
    fn rename(
        &self, _: &Request, parent: INodeNo, name: &OsStr, to_parent: INodeNo, to: &OsStr, flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        done(self.state().rename((parent, name), (to_parent, to), flags), reply);
    }

    #[rustfmt::skip]
    fn read(
        &self, _: &Request, inode: INodeNo, _: FileHandle, offset: u64, size: u32, _: OpenFlags, _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut state = self.state();
        let bytes = state.bytes(inode.0);
        let start = bytes.len().min(offset as usize);
        reply.data(&bytes[start..bytes.len().min(start + size as usize)]);
    }

    #[rustfmt::skip]
    fn write(
        &self, _: &Request, inode: INodeNo, _: FileHandle, offset: u64, data: &[u8], _: WriteFlags, _: OpenFlags,
        _: Option<LockOwner>, reply: ReplyWrite,
    ) {
        let change = Change::Write { inode: inode.0, offset: offset as usize, data: data.into() };
        match self.state().change(change) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(error),
        }
    }

    fn readdir(&self, _: &Request, inode: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        for (number, (of, node)) in self.state().entries(inode.0).enumerate().skip(offset as usize) {
            let kind = if node.bytes.is_some() { FileType::RegularFile } else { FileType::Directory };
            if reply.add(INodeNo(of), number as u64 + 1, kind, &node.name) {
                break;
            }
        }
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.sync(reply);
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.sync(reply);
    }
}

fn mkfs(device: &str) -> Result<()> {
    let size = std::fs::metadata(device)?.len() as u32;
    let start = [&MAGIC[..], &[0; 4], &size.to_le_bytes()].concat();
    OpenOptions::new().write(true).open(device)?.write_all_at(&start, 0)
}

fn mount(device: &str, folder: &str, options: &str) -> Result<()> {
    let mut config = Config::default();
    for option in options.split(',') {
        config.mount_options.push(match option {
            "noatime" => MountOption::NoAtime,
            other => MountOption::CUSTOM(other.into()),
        });
    }
    fuser::mount(Logfs(Mutex::new(State::open(device)?)), folder, &config)
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["mkfs", device] => mkfs(device),
        ["mount", device, folder, "-o", options] => mount(device, folder, options),
        _ => Err(Error::other("logfs mkfs DEVICE | logfs mount DEVICE FOLDER -o OPTIONS")),
    };
    if let Err(error) = result {
        eprintln!("logfs: {error}");
        std::process::exit(1);
    }
}
