//! Looking at a stopped thread: its system call, its descriptors and its mappings.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use postcrash_stopped::registers;
use postcrash_stopped::system_calls::{path_start, system_call, Effect, SystemCall};

/// What a thread stands at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum At {
    /// A system call begins: its number and its arguments.
    Entry(i64, [u64; 6]),
    /// A system call ends: what it returned, if it succeeded.
    Exit(Option<u64>),
    /// Something else.
    Other,
}

/// The most that is looked at of one message.
pub const BYTES_MAX: usize = 1 << 16;
/// AUDIT_ARCH_X86_64. Calls of 32-bit programs have other numbers.
const NATIVE: u32 = 0xC000_003E;
/// Results from -1 down to its negative are errors.
const ERRNO_MAX: i64 = 4095;
/// AUDIT_ARCH_I386.
const I386: u32 = 0x4000_0003;
/// Stands for the number of such a call. No call has it.
pub const FOREIGN: i64 = -1;

/// Which threads are inside a system call: for kernels that do not tell whether a stop is an entry or an exit.
#[derive(Default)]
pub struct Stops {
    inside: HashSet<libc::pid_t>,
}

impl Stops {
    /// What the stopped thread stands at.
    pub fn at(&mut self, thread: libc::pid_t) -> At {
        // SAFETY: the kernel writes at most `size` bytes into the structure of plain numbers, and `op` says which of them.
        unsafe {
            let mut info: libc::ptrace_syscall_info = std::mem::zeroed();
            let size = std::mem::size_of_val(&info);
            if libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, thread, size, &mut info) < 0 {
                return self.by_registers(thread);
            }
            match info.op {
                libc::PTRACE_SYSCALL_INFO_ENTRY => {
                    At::Entry(native(info.arch, info.u.entry.nr as i64), info.u.entry.args)
                }
                libc::PTRACE_SYSCALL_INFO_EXIT => {
                    At::Exit((info.u.exit.is_error == 0).then_some(info.u.exit.sval as u64))
                }
                _ => At::Other,
            }
        }
    }

    /// User-mode Linux has no PTRACE_GET_SYSCALL_INFO. There, entries and exits of a thread come by turns, and all programs
    /// are native ones.
    fn by_registers(&mut self, thread: libc::pid_t) -> At {
        let Ok(registers) = registers(thread) else { return At::Other };
        if self.inside.remove(&thread) {
            let result = registers.rax as i64;
            return At::Exit((!(-ERRNO_MAX..0).contains(&result)).then_some(registers.rax));
        }
        self.inside.insert(thread);
        let given = [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9];
        At::Entry(registers.orig_rax as i64, given)
    }

    /// A thread has ended.
    pub fn ended(&mut self, thread: libc::pid_t) {
        self.inside.remove(&thread);
    }

    /// A thread runs another program, as `thread`. The call that does this ends next.
    pub fn executed(&mut self, former: libc::pid_t, thread: libc::pid_t) {
        self.inside.remove(&former);
        self.inside.insert(thread);
    }
}

/// The number of a call in our own numbers. Of other kinds of programs only the calls that start processes have one.
fn native(architecture: u32, number: i64) -> i64 {
    match (architecture, number) {
        (NATIVE, number) => number,
        (I386, 2) => libc::SYS_fork,
        (I386, 120) => libc::SYS_clone,
        (I386, 190) => libc::SYS_vfork,
        (I386, 435) => libc::SYS_clone3,
        _ => FOREIGN,
    }
}

/// What stands behind a descriptor.
pub struct Descriptor {
    pub device: u64,
    pub inode: u64,
    /// It is a disk, or a part of one.
    pub is_disk: bool,
    /// It is a file or a directory: nobody else has to do something before a call on it ends.
    pub is_stored: bool,
    /// Each write to it waits for the disk.
    pub waits: bool,
    /// Each write to it goes to the end of the file.
    pub appends: bool,
    /// Where the next read or write begins that does not say where.
    pub position: u64,
    /// The file's size.
    pub size: u64,
}

/// A descriptor of a thread.
pub fn descriptor(thread: libc::pid_t, number: u64) -> Option<Descriptor> {
    let metadata = fs::metadata(path_of(thread, number)).ok()?;
    let info = fs::read_to_string(format!("/proc/{thread}/fdinfo/{}", number as i32)).ok()?;
    let field = |name| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let flags = i32::from_str_radix(field("flags:")?, 8).ok()?;
    Some(Descriptor {
        device: metadata.dev(),
        inode: metadata.ino(),
        is_disk: metadata.file_type().is_block_device(),
        is_stored: metadata.is_file() || metadata.is_dir(),
        waits: flags & libc::O_DSYNC != 0,
        appends: flags & libc::O_APPEND != 0,
        position: field("pos:")?.parse().unwrap_or(0),
        size: metadata.size(),
    })
}

/// Where what stands behind a descriptor can be opened.
pub fn path_of(thread: libc::pid_t, number: u64) -> String {
    format!("/proc/{thread}/fd/{}", number as i32)
}

/// Bytes of a thread's memory, fewer than `length` if it has no more, and at most so many as are looked at of one message.
pub fn read(thread: libc::pid_t, address: u64, length: u64) -> io::Result<Vec<u8>> {
    postcrash_stopped::read(thread, address, (length as usize).min(BYTES_MAX))
}

/// Whether a call opens a FIFO: this lasts until somebody opens its other end.
pub fn opens_fifo(thread: libc::pid_t, number: i64, arguments: &[u64; 6]) -> bool {
    let call = system_call(number).filter(|call| matches!(call.effect, Effect::Open(_)) || number == libc::SYS_creat);
    let Some(&(folder, path)) = call.map(SystemCall::paths).as_ref().and_then(|paths| paths.first()) else {
        return false;
    };
    let folder = folder.map_or(libc::AT_FDCWD, |place| arguments[place] as i32);
    let bytes = read(thread, arguments[path], libc::PATH_MAX as u64).unwrap_or_default();
    let path = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    let place = [format!("/proc/{thread}/{}/", path_start(folder, path)).as_bytes(), path].concat();
    fs::metadata(OsStr::from_bytes(&place)).is_ok_and(|found| found.file_type().is_fifo())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_runs_another_program_is_inside_the_call_that_does_so() {
        // Thread 7 does it, and has the number of its process from then on. Its first thread was in no call.
        let mut stops = Stops { inside: HashSet::from([7]) };
        stops.executed(7, 3);
        assert_eq!(stops.inside, HashSet::from([3]));
    }

    #[test]
    fn starts_of_processes_are_known_in_programs_of_32_bits() {
        assert_eq!(native(NATIVE, 1), 1);
        assert_eq!(native(I386, 120), libc::SYS_clone);
        assert_eq!(native(I386, 4), FOREIGN);
    }
}
