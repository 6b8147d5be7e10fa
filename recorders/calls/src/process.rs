//! Looking at a stopped thread: its system call, its descriptors and its mappings.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

/// What a thread stands at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum At {
    /// A system call begins: its number and its arguments.
    Entry(i64, [u64; 6]),
    /// A system call ends; whether it succeeded.
    Exit(bool),
    /// Something else.
    Other,
}

const ENTRY: u8 = 1;
const EXIT: u8 = 2;

/// As the kernel's `ptrace_syscall_info` is laid out.
#[repr(C)]
#[derive(Default)]
struct SyscallInfo {
    op: u8,
    padding: [u8; 3],
    architecture: u32,
    instruction: u64,
    stack: u64,
    /// On entry the number and six arguments; on exit the result, and whether it is an error.
    values: [u64; 8],
}

/// What the stopped thread stands at.
pub fn at(thread: libc::pid_t) -> At {
    let mut info = SyscallInfo::default();
    let size = std::mem::size_of::<SyscallInfo>();
    // SAFETY: the kernel writes at most `size` bytes into the structure.
    let length = unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, thread, size, &mut info) };
    if length < 0 {
        return At::Other;
    }
    match info.op {
        ENTRY => {
            let mut arguments = [0; 6];
            arguments.copy_from_slice(&info.values[1..7]);
            At::Entry(info.values[0] as i64, arguments)
        }
        EXIT => At::Exit(info.values[1] as u8 == 0),
        _ => At::Other,
    }
}

/// Device and inode behind a descriptor of a thread, and whether each write to it waits for the disk.
pub fn descriptor(thread: libc::pid_t, number: u64) -> Option<(u64, u64, bool)> {
    let metadata = fs::metadata(format!("/proc/{thread}/fd/{}", number as i32)).ok()?;
    let info = fs::read_to_string(format!("/proc/{thread}/fdinfo/{}", number as i32)).ok()?;
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
    let flags = i32::from_str_radix(flags.trim(), 8).ok()?;
    Some((metadata.dev(), metadata.ino(), flags & libc::O_DSYNC != 0))
}

/// Inodes of the files that a thread has mapped between two addresses.
pub fn mapped(thread: libc::pid_t, start: u64, end: u64) -> io::Result<Vec<u64>> {
    let maps = fs::read_to_string(format!("/proc/{thread}/maps"))?;
    Ok(maps.lines().filter_map(|line| mapping(line, start, end)).collect())
}

/// The inode of a line such as `7f00-7f01 rw-s 00000000 00:21 77 /mnt/log`, if it overlaps the range.
fn mapping(line: &str, start: u64, end: u64) -> Option<u64> {
    let mut fields = line.split_ascii_whitespace();
    let (first, last) = fields.next()?.split_once('-')?;
    let (first, last) = (u64::from_str_radix(first, 16).ok()?, u64::from_str_radix(last, 16).ok()?);
    let inode = fields.nth(3)?.parse().ok()?;
    (first < end && start < last && inode != 0).then_some(inode)
}
