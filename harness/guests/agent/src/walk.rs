//! Read the recovered tree, with as few system calls as possible.

use std::collections::{BTreeMap, HashMap};
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;

use postcrash_wire::content::segments_of;
use postcrash_wire::Recover;
use serde::Serialize;
use xxhash_rust::xxh64::xxh64;

use crate::extents::plain_extents;
use crate::sys::{check, cstr, errno, names, open_at, stat_at};
use crate::unlisted::HiddenNames;
use crate::{MOUNT_POINT, TEST_DISK};

const ENTRIES_MAX: usize = 100_000;
const DEPTH_MAX: usize = 64;
/// Files are read up to this size; the rest is reported as unread.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Of a tree whose contents are reported byte by byte, so many bytes are read; a report has to fit into the guest's memory.
const TOLD_BYTES_MAX: u64 = 8 << 20;
const XATTR_BYTES_SMALL: usize = 4096;
/// XATTR_LIST_MAX and XATTR_SIZE_MAX of include/uapi/linux/limits.h.
const XATTR_BYTES_MAX: usize = 65536;

/// One name of the tree, as docs/formats.md describes it.
#[derive(Default, Serialize)]
pub struct Entry {
    path: String,
    r#type: &'static str,
    mode: u32,
    nlink: u64,
    inode: usize,
    size: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    segments: Option<Vec<(u64, u64, String)>>,
    /// Stands in place of segments if the data is plain: file offset, disk offset, length in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    extents: Option<Vec<(u64, u64, u64)>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    xattrs: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<i32>,
}

struct Walker<'a> {
    unlisted: HiddenNames<'a>,
    left_out: Vec<String>,
    /// Whether to say where plain data lies instead of reading it.
    map: bool,
    /// Report bytes as they are.
    bytes: bool,
    /// So many bytes may still be read.
    left: u64,
    entries: Vec<Entry>,
    /// By device and number: btrfs' subvolumes number their inodes each for itself.
    inodes: HashMap<(u64, u64), usize>,
}

/// What is below the mount point.
#[derive(Default)]
pub struct Found {
    /// Sorted, folders before what they hold.
    pub entries: Vec<Entry>,
    /// Names in the root that are there as they were made, and have no entries. Only if contents are reported byte by byte.
    pub unlisted: Vec<String>,
    /// What is wrong with the files that fill an aged image, which have no entries. Empty if there is nothing.
    pub damage: String,
}

/// Look at everything below the mount point, as the command says.
pub fn walk(recover: &Recover) -> io::Result<Found> {
    let root = open_at(libc::AT_FDCWD, &cstr(MOUNT_POINT)?, libc::O_RDONLY | libc::O_DIRECTORY)?;
    let mut walker = Walker {
        unlisted: HiddenNames::of(recover),
        left_out: Vec::new(),
        map: recover.map,
        bytes: recover.bytes,
        left: if recover.bytes { TOLD_BYTES_MAX } else { u64::MAX },
        entries: Vec::new(),
        inodes: HashMap::new(),
    };
    let stat = stat_at(root.as_raw_fd(), c"", libc::AT_EMPTY_PATH)?;
    let mut entry = walker.entry(".".into(), &stat);
    entry.read_xattrs(root.as_raw_fd());
    walker.entries.push(entry);
    walker.folder(&root, "", 0);
    let damage = walker.unlisted.damage(root.as_raw_fd());
    Ok(Found { entries: walker.entries, unlisted: walker.left_out, damage })
}

impl Walker<'_> {
    fn folder(&mut self, folder: &OwnedFd, prefix: &str, depth: usize) {
        let names = match names(folder.as_raw_fd()) {
            Ok(names) => names,
            Err(error) => {
                self.entries.last_mut().expect("the folder itself").error = Some(errno(&error));
                return;
            }
        };
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            self.entries.last_mut().expect("the folder itself").error = Some(libc::EEXIST);
        }
        for (i, name) in names.iter().enumerate() {
            let text = readable(name.to_bytes());
            let ours = prefix.is_empty() && self.unlisted.has(folder.as_raw_fd(), name);
            if ours && self.bytes {
                self.left_out.push(text.clone());
            }
            // Take one entry more than can be reported, so that a cut tree is not mistaken for a whole one.
            if !ours && names.get(i + 1) != Some(name) && self.entries.len() <= ENTRIES_MAX {
                self.name(folder.as_raw_fd(), name, format!("{prefix}{text}"), depth);
            }
        }
    }

    fn name(&mut self, folder: RawFd, name: &CStr, path: String, depth: usize) {
        let stat = match stat_at(folder, name, libc::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(error) => {
                self.entries.push(Entry { error: Some(errno(&error)), ..Entry::unknown(path) });
                return;
            }
        };
        let mut entry = self.entry(path, &stat);
        let read = match entry.r#type {
            "dir" => return self.subfolder(folder, name, entry, depth),
            "file" => self.read_file(folder, name, &mut entry),
            "symlink" => read_link(folder, name).map(|target| entry.target = Some(target)),
            "char" | "block" => {
                entry.target = Some(format!("{}:{}", libc::major(stat.st_rdev), libc::minor(stat.st_rdev)));
                Ok(())
            }
            _ => Ok(()),
        };
        // A file may have an error already, of its attributes.
        entry.error = read.err().map(|error| errno(&error)).or(entry.error);
        self.entries.push(entry);
    }

    fn read_file(&mut self, folder: RawFd, name: &CStr, entry: &mut Entry) -> io::Result<()> {
        let fd = open_at(folder, name, libc::O_RDONLY | libc::O_NOFOLLOW)?;
        entry.read_xattrs(fd.as_raw_fd());
        if self.map && entry.size > 0 && entry.size as u64 <= FILE_BYTES_MAX {
            entry.extents = plain_extents(&fd, disk_bytes()?);
            if entry.extents.is_some() {
                return Ok(());
            }
        }
        let most = FILE_BYTES_MAX.min(self.left);
        let mut content = Vec::with_capacity((entry.size as u64).min(most) as usize + 1);
        let mut file = File::from(fd).take(most);
        let failed = if entry.size == 0 { None } else { file.read_to_end(&mut content).err() };
        let unread = entry.size as u64 > content.len() as u64;
        let failed = failed.map(|error| errno(&error)).or(unread.then_some(libc::EFBIG));
        self.left -= content.len() as u64;
        let mut segments = segments_of(&content, 0, self.bytes);
        if let Some(error) = failed {
            segments.push((content.len() as u64, entry.size as u64, format!("error:{error}")));
        }
        entry.segments = Some(segments);
        entry.hash = Some(format!("{:016x}", xxh64(&content, 0)));
        Ok(())
    }

    fn subfolder(&mut self, folder: RawFd, name: &CStr, mut entry: Entry, depth: usize) {
        let prefix = format!("{}/", entry.path);
        let opened = open_at(folder, name, libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW);
        match opened {
            Ok(inner) if depth < DEPTH_MAX => {
                entry.read_xattrs(inner.as_raw_fd());
                self.entries.push(entry);
                self.folder(&inner, &prefix, depth + 1);
            }
            Ok(_) => self.entries.push(Entry { error: Some(libc::ELOOP), ..entry }),
            Err(error) => self.entries.push(Entry { error: Some(errno(&error)), ..entry }),
        }
    }

    fn entry(&mut self, path: String, stat: &libc::stat) -> Entry {
        let next = self.inodes.len();
        let r#type = match stat.st_mode & libc::S_IFMT {
            libc::S_IFREG => "file",
            libc::S_IFDIR => "dir",
            libc::S_IFLNK => "symlink",
            libc::S_IFIFO => "fifo",
            libc::S_IFSOCK => "socket",
            libc::S_IFCHR => "char",
            libc::S_IFBLK => "block",
            _ => "other",
        };
        Entry {
            r#type,
            mode: stat.st_mode & 0o7777,
            nlink: stat.st_nlink,
            inode: *self.inodes.entry((stat.st_dev, stat.st_ino)).or_insert(next),
            // A folder's size is an implementation detail of the file system.
            size: if r#type == "dir" { 0 } else { stat.st_size },
            ..Entry::unknown(path)
        }
    }
}

impl Entry {
    fn read_xattrs(&mut self, fd: RawFd) {
        match xattrs(fd) {
            Ok(xattrs) => self.xattrs = xattrs,
            Err(error) => self.error = Some(errno(&error)),
        }
    }

    fn unknown(path: String) -> Entry {
        Entry { path, r#type: "other", ..Entry::default() }
    }
}

/// A name as text. UTF-8 stays as it is. Each byte that is not UTF-8, or belongs to a control character, becomes U+FFFD
/// and two hexadecimal digits.
fn readable(name: &[u8]) -> String {
    let mut text = String::new();
    for chunk in name.utf8_chunks() {
        for part in chunk.valid().split_inclusive(char::is_control) {
            let end = part.rfind(char::is_control).unwrap_or(part.len());
            text.push_str(&part[..end]);
            push_escaped(&mut text, &part.as_bytes()[end..]);
        }
        push_escaped(&mut text, chunk.invalid());
    }
    text
}

fn push_escaped(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.push_str(&format!("\u{fffd}{byte:02x}"));
    }
}

/// Length of the test disk, which is the same for all crash states.
fn disk_bytes() -> io::Result<u64> {
    static BYTES: OnceLock<u64> = OnceLock::new();
    match BYTES.get() {
        Some(bytes) => Ok(*bytes),
        None => File::open(TEST_DISK)?.seek(SeekFrom::End(0)).map(|bytes| *BYTES.get_or_init(|| bytes)),
    }
}

fn read_link(folder: RawFd, name: &CStr) -> io::Result<String> {
    let mut buffer = vec![0u8; libc::PATH_MAX as usize];
    // SAFETY: the buffer's length is given.
    let length =
        check(unsafe { libc::readlinkat(folder, name.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len()) } as i64)?;
    Ok(String::from_utf8_lossy(&buffer[..length as usize]).into_owned())
}

/// Extended attributes of the user name space: name to value in hexadecimal.
fn xattrs(fd: RawFd) -> io::Result<BTreeMap<String, String>> {
    // SAFETY: the buffer's length is given.
    let list = match filled(|buffer| unsafe { libc::flistxattr(fd, buffer.as_mut_ptr().cast(), buffer.len()) }) {
        Err(error) if errno(&error) == libc::EOPNOTSUPP => Vec::new(),
        list => list?,
    };
    let names = list.split_inclusive(|&byte| byte == 0);
    names.filter(|name| name.starts_with(b"user.")).map(|name| xattr(fd, name)).collect()
}

fn xattr(fd: RawFd, name: &[u8]) -> io::Result<(String, String)> {
    let name = CStr::from_bytes_with_nul(name).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    // SAFETY: the name is a C string, the buffer's length is given.
    let value =
        filled(|buffer| unsafe { libc::fgetxattr(fd, name.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len()) })?;
    let hex = value.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((readable(name.to_bytes()), hex))
}

/// What `call` puts into a buffer. The buffer is small at first. If it is not enough, it is the largest that the kernel
/// fills.
fn filled(call: impl Fn(&mut [u8]) -> isize) -> io::Result<Vec<u8>> {
    let mut small = [0u8; XATTR_BYTES_SMALL];
    match check(call(&mut small) as i64) {
        Err(error) if errno(&error) == libc::ERANGE => {
            let mut large = vec![0u8; XATTR_BYTES_MAX];
            let length = check(call(&mut large) as i64)?;
            large.truncate(length as usize);
            Ok(large)
        }
        length => Ok(small[..length? as usize].to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn names_are_told_as_they_are() {
        assert_eq!(readable("it's \"a\" \\ ä €".as_bytes()), "it's \"a\" \\ ä €");
        assert_eq!(readable(b"a\xffb\x1bc"), "a\u{fffd}ffb\u{fffd}1bc");
        assert_eq!(readable("\u{85}".as_bytes()), "\u{fffd}c2\u{fffd}85");
        assert_eq!(readable(b""), "");
    }
}
