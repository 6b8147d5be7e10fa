//! What the system calls of a program do to the target: a note when one begins, and one when it ends.
//!
//! Notes are for people who look at a crash. Nothing is judged by them. So a call that is not known here has none, nor has one
//! whose file cannot be told.

use std::collections::HashMap;
use std::fs;
use std::io;

use postcrash_wire::Message;

use crate::{HOST, MOUNT_POINT};

/// So many calls of one run are noted.
const CALLS_MAX: usize = 4096;
/// The longest path that is read, in bytes, and the longest that is shown, in characters.
const PATH_BYTES_MAX: usize = libc::PATH_MAX as usize;
const SHOWN_MAX: usize = 200;
/// The code segment of 32-bit programs, whose calls have other numbers.
const CODE_32: u64 = 0x23;

/// A part of a call, by the places of its arguments.
#[derive(Clone, Copy)]
enum Part {
    /// The file behind a descriptor.
    File(usize),
    /// A path.
    Path(usize),
    /// A path that starts at the folder behind a descriptor: descriptor, path.
    PathAt(usize, usize),
    /// The file that is mapped at an address.
    Mapped(usize),
    /// A number of bytes.
    Bytes(usize),
    /// A number of bytes and the offset in the file: bytes, offset.
    BytesAt(usize, usize),
    /// How a file is opened.
    Flags(usize),
}

use Part::{Bytes, BytesAt, File, Flags, Mapped, Path, PathAt};

macro_rules! calls {
    ($($number:ident($($part:expr),*);)*) => {
        const CALLS: &[(i64, &str, &[Part])] = &[$((libc::$number, stringify!($number), &[$($part),*])),*];
    };
}

calls! {
    SYS_open(Path(0), Flags(1));
    SYS_openat(PathAt(0, 1), Flags(2));
    SYS_creat(Path(0));
    SYS_write(File(0), Bytes(2));
    SYS_pwrite64(File(0), BytesAt(2, 3));
    SYS_writev(File(0));
    SYS_pwritev(File(0));
    SYS_pwritev2(File(0));
    SYS_sendfile(File(0), Bytes(3));
    SYS_copy_file_range(File(2), Bytes(4));
    SYS_truncate(Path(0), Bytes(1));
    SYS_ftruncate(File(0), Bytes(1));
    SYS_fallocate(File(0), BytesAt(3, 2));
    SYS_sync_file_range(File(0), BytesAt(2, 1));
    SYS_fsync(File(0));
    SYS_fdatasync(File(0));
    SYS_syncfs(File(0));
    SYS_sync();
    SYS_msync(Mapped(0), Bytes(1));
    SYS_mmap(File(4), BytesAt(1, 5));
    SYS_rename(Path(0), Path(1));
    SYS_renameat(PathAt(0, 1), PathAt(2, 3));
    SYS_renameat2(PathAt(0, 1), PathAt(2, 3));
    SYS_link(Path(0), Path(1));
    SYS_linkat(PathAt(0, 1), PathAt(2, 3));
    SYS_symlink(Path(1));
    SYS_symlinkat(PathAt(1, 2));
    SYS_unlink(Path(0));
    SYS_unlinkat(PathAt(0, 1));
    SYS_mkdir(Path(0));
    SYS_mkdirat(PathAt(0, 1));
    SYS_rmdir(Path(0));
    SYS_mknod(Path(0));
    SYS_mknodat(PathAt(0, 1));
}

const OPENINGS: [(i32, &str); 5] = [
    (libc::O_CREAT, "O_CREAT"),
    (libc::O_EXCL, "O_EXCL"),
    (libc::O_TRUNC, "O_TRUNC"),
    (libc::O_APPEND, "O_APPEND"),
    (libc::O_DIRECT, "O_DIRECT"),
];

/// The threads of a program, and which of them are in a call that was noted.
#[derive(Default)]
pub struct Calls {
    /// By thread: its number, and whether it is in a call.
    threads: HashMap<libc::pid_t, (u32, bool)>,
    /// How many threads have had a number.
    numbers: u32,
    noted: usize,
}

impl Calls {
    /// What there is to note of a thread that has stopped where a system call begins or ends.
    pub fn stopped(&mut self, thread: libc::pid_t) -> Option<Message> {
        let registers = registers(thread).ok()?;
        if let Some((number, calling @ true)) = self.threads.get_mut(&thread) {
            *calling = false;
            return Some(Message::CallEnded { thread: *number, result: registers.rax as i64 });
        }
        let begins = registers.rax as i64 == -i64::from(libc::ENOSYS);
        if !begins || registers.cs == CODE_32 || self.noted >= CALLS_MAX {
            return None;
        }
        let given = [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9];
        let call = shown(thread, registers.orig_rax as i64, &given)?;
        self.noted += 1;
        let (number, calling) = self.threads.entry(thread).or_insert_with(|| {
            self.numbers += 1;
            (self.numbers, false)
        });
        *calling = true;
        let program = fs::read_to_string(format!("/proc/{thread}/comm")).unwrap_or_default().trim_end().to_owned();
        Some(Message::Called { thread: *number, program, call })
    }

    /// A thread has ended. Another one may get its id.
    pub fn ended(&mut self, thread: libc::pid_t) {
        self.threads.remove(&thread);
    }
}

fn registers(thread: libc::pid_t) -> io::Result<libc::user_regs_struct> {
    // SAFETY: the kernel fills the structure, for which all bytes are valid. It lives through the call.
    unsafe {
        let mut registers: libc::user_regs_struct = std::mem::zeroed();
        match libc::ptrace(libc::PTRACE_GETREGS, thread, 0, &mut registers) {
            0 => Ok(registers),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// The call as text, if it can change the target or makes it durable.
fn shown(thread: libc::pid_t, number: i64, given: &[u64; 6]) -> Option<String> {
    let (_, name, parts) = CALLS.iter().find(|(known, ..)| *known == number)?;
    let is_writable = given[2] & libc::PROT_WRITE as u64 != 0 && given[3] & libc::MAP_SHARED as u64 != 0;
    if number == libc::SYS_mmap && !is_writable {
        return None;
    }
    let mut texts = Vec::new();
    for part in *parts {
        texts.push(match *part {
            File(at) => quoted(&file(thread, given[at])?),
            Path(at) => quoted(&path(thread, libc::AT_FDCWD, given[at])?),
            PathAt(folder, at) => quoted(&path(thread, given[folder] as i32, given[at])?),
            Mapped(at) => quoted(&mapped(thread, given[at])?),
            Bytes(at) => format!("{} bytes", given[at]),
            BytesAt(at, offset) => format!("{} bytes at {}", given[at], given[offset]),
            Flags(at) => opening(given[at] as i32)?,
        });
    }
    Some(format!("{}({})", name.trim_start_matches("SYS_"), texts.join(", ")))
}

/// How a file is opened, if this can change it or make it.
fn opening(flags: i32) -> Option<String> {
    let made = libc::O_CREAT | libc::O_TRUNC;
    if flags & made == 0 && flags & libc::O_TMPFILE != libc::O_TMPFILE {
        return None;
    }
    let mode = match flags & libc::O_ACCMODE {
        libc::O_RDONLY => "O_RDONLY",
        libc::O_WRONLY => "O_WRONLY",
        _ => "O_RDWR",
    };
    let mut words: Vec<_> = OPENINGS.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, word)| *word).collect();
    words.insert(0, mode);
    words.extend((flags & libc::O_TMPFILE == libc::O_TMPFILE).then_some("O_TMPFILE"));
    match flags & libc::O_SYNC {
        libc::O_SYNC => words.push("O_SYNC"),
        libc::O_DSYNC => words.push("O_DSYNC"),
        _ => {}
    }
    Some(words.join("|"))
}

fn quoted(path: &str) -> String {
    let shown: String = path.chars().take(SHOWN_MAX).collect();
    format!("{shown:?}")
}

/// The path, in the target, of the file behind a descriptor.
fn file(thread: libc::pid_t, number: u64) -> Option<String> {
    within(&link(&format!("/proc/{thread}/fd/{}", number as i32))?)
}

/// The path, in the target, that a call names.
fn path(thread: libc::pid_t, folder: i32, address: u64) -> Option<String> {
    let named = string(thread, address)?;
    if named.starts_with('/') {
        return within(&named);
    }
    let start = match folder {
        libc::AT_FDCWD => "cwd".to_owned(),
        folder => format!("fd/{folder}"),
    };
    within(&format!("{}/{named}", link(&format!("/proc/{thread}/{start}"))?))
}

/// The path, in the target, of the file that is mapped at an address.
fn mapped(thread: libc::pid_t, address: u64) -> Option<String> {
    let maps = fs::read_to_string(format!("/proc/{thread}/maps")).ok()?;
    maps.lines().find_map(|line| {
        let (first, rest) = line.split_once('-')?;
        let (last, rest) = rest.split_once(' ')?;
        let range = u64::from_str_radix(first, 16).ok()?..u64::from_str_radix(last, 16).ok()?;
        let start = rest.find('/')?;
        range.contains(&address).then(|| within(&rest[start..])).flatten()
    })
}

fn link(place: &str) -> Option<String> {
    fs::read_link(place).ok()?.into_os_string().into_string().ok()
}

/// What a path is called in the target, without `.` and empty names. None if it lies elsewhere.
///
/// The program has the target at its mount point. A path that the kernel tells may start at the agent's root instead.
fn within(path: &str) -> Option<String> {
    let at = path
        .find(&format!("{MOUNT_POINT}/"))
        .or_else(|| path.ends_with(MOUNT_POINT).then(|| path.len() - MOUNT_POINT.len()))?;
    let is_root = path[..at].is_empty() || path[..at] == *HOST;
    let names: Vec<_> =
        path[at + MOUNT_POINT.len()..].split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    is_root.then(|| if names.is_empty() { ".".to_owned() } else { names.join("/") })
}

/// The text at an address of a thread's memory, up to its zero byte.
fn string(thread: libc::pid_t, address: u64) -> Option<String> {
    let mut bytes = vec![0_u8; PATH_BYTES_MAX];
    // A page that is not there ends the text, so that pages are read one by one.
    let first = PATH_BYTES_MAX - address as usize % PATH_BYTES_MAX;
    let here = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let there = [
        libc::iovec { iov_base: address as *mut libc::c_void, iov_len: first },
        libc::iovec { iov_base: address.wrapping_add(first as u64) as *mut libc::c_void, iov_len: bytes.len() - first },
    ];
    // SAFETY: the kernel writes at most the vector's length into it.
    let count = unsafe { libc::process_vm_readv(thread, &here, 1, there.as_ptr(), there.len() as libc::c_ulong, 0) };
    let read = bytes.get(..usize::try_from(count).ok()?)?;
    let end = read.iter().position(|&byte| byte == 0)?;
    Some(String::from_utf8_lossy(&read[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_as_the_target_has_them() {
        assert_eq!(within(&format!("{MOUNT_POINT}/a/b")).as_deref(), Some("a/b"));
        assert_eq!(within(&format!("{HOST}{MOUNT_POINT}//a/./b")).as_deref(), Some("a/b"));
        assert_eq!(within(MOUNT_POINT).as_deref(), Some("."));
        assert_eq!(within(&format!("{HOST}{MOUNT_POINT}")).as_deref(), Some("."));
        for elsewhere in ["/srv/f", "/srv/mnt/f", "pipe:[77]", "/mntx/f", ""] {
            assert_eq!(within(elsewhere), None, "{elsewhere}");
        }
    }

    #[test]
    fn opening_is_noted_where_it_changes_something() {
        assert_eq!(opening(libc::O_RDWR), None);
        assert_eq!(
            opening(libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC).as_deref(),
            Some("O_WRONLY|O_CREAT|O_TRUNC")
        );
        assert_eq!(opening(libc::O_RDWR | libc::O_CREAT | libc::O_SYNC).as_deref(), Some("O_RDWR|O_CREAT|O_SYNC"));
        assert_eq!(opening(libc::O_WRONLY | libc::O_TMPFILE).as_deref(), Some("O_WRONLY|O_TMPFILE"));
    }

    #[test]
    fn a_path_is_read_from_memory() {
        let here = std::process::id() as libc::pid_t;
        let text = std::ffi::CString::new("some/where").expect("no zero");
        assert_eq!(string(here, text.as_ptr() as u64).as_deref(), Some("some/where"));
        assert_eq!(string(here, 16), None);
    }
}
