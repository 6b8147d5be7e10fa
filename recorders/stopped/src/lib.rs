//! Looking at a thread that ptrace has stopped: its registers, its memory and its mappings; and waiting for one to stop.
//! `system_calls` is the table of system calls, and `unfollowed` says which programs no tracer can follow.

pub mod system_calls;
pub mod unfollowed;

use std::io;
use std::ops::Range;
use std::time::Duration;

/// Have ptrace tell of system calls, and of programs and threads that are started. Tracees end with their tracer.
pub const TRACE_THREADS: libc::c_int =
    libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_TRACEEXEC | libc::PTRACE_O_EXITKILL;
/// The same for processes that are started.
pub const TRACE_PROCESSES: libc::c_int = libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK;

/// What the status of a traced thread tells, as waitpid(2) has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The thread has ended. Whether the kernel has written its memory to a file.
    End { dumped: bool },
    /// A system call begins or ends.
    Call,
    /// The thread runs another program.
    Exec,
    /// The thread has started another one, or a process.
    Start,
    /// Another event of ptrace.
    Event,
    /// The thread is about to get this signal.
    Signal(libc::c_int),
}

impl Stop {
    pub fn of(status: libc::c_int) -> Stop {
        if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
            return Stop::End { dumped: libc::WIFSIGNALED(status) && libc::WCOREDUMP(status) };
        }
        match (libc::WSTOPSIG(status), status >> 16) {
            (signal, _) if signal == libc::SIGTRAP | 0x80 => Stop::Call,
            (libc::SIGTRAP, libc::PTRACE_EVENT_EXEC) => Stop::Exec,
            (libc::SIGTRAP, libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE) => {
                Stop::Start
            }
            (libc::SIGTRAP, event) if event != 0 => Stop::Event,
            (signal, _) => Stop::Signal(signal),
        }
    }
}

/// The result of a system call that returns a negative number on failure.
pub fn check(result: impl Into<i64>) -> io::Result<i64> {
    match result.into() {
        negative if negative < 0 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}

/// Let a stopped thread go on to its next system call, with a signal unless it is 0. Of a thread that is gone the next
/// wait tells.
pub fn resume(thread: libc::pid_t, signal: libc::c_int) {
    // SAFETY: plain numbers.
    unsafe { libc::ptrace(libc::PTRACE_SYSCALL, thread, 0, signal) };
}

/// The registers of a thread that this process traces.
pub fn registers(thread: libc::pid_t) -> io::Result<libc::user_regs_struct> {
    // SAFETY: the structure holds plain numbers, and the kernel fills it. It lives through the call.
    unsafe {
        let mut registers: libc::user_regs_struct = std::mem::zeroed();
        check(libc::ptrace(libc::PTRACE_GETREGS, thread, 0, &mut registers)).map(|_| registers)
    }
}

/// Bytes of a thread's memory, fewer than `length` if it has no more there. A page that is not in memory is waited for.
pub fn read(thread: libc::pid_t, address: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let here = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let there = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes.len() };
    // SAFETY: the kernel writes at most the vector's length into it, and checks the other process's range.
    let count = check(unsafe { libc::process_vm_readv(thread, &here, 1, &there, 1, 0) } as i64)?;
    bytes.truncate(count as usize);
    Ok(bytes)
}

/// The part of a file that a thread has mapped: a line of /proc/PID/maps.
#[derive(Debug, PartialEq)]
pub struct Mapping {
    pub addresses: Range<u64>,
    /// Such as `r-xp`.
    pub mode: String,
    /// Where the part begins in the file.
    pub offset: u64,
    pub device: u64,
    pub inode: u64,
    pub path: String,
}

impl Mapping {
    /// The bytes of the file that are changed by stores to these addresses.
    pub fn shared_bytes(&self, addresses: &Range<u64>) -> Option<Range<u64>> {
        let start = self.addresses.start.max(addresses.start);
        let end = self.addresses.end.min(addresses.end);
        let in_file = |address| address - self.addresses.start + self.offset;
        (start < end && self.mode.ends_with('s')).then(|| in_file(start)..in_file(end))
    }
}

/// What a thread has mapped of files.
pub fn mappings(thread: libc::pid_t) -> io::Result<Vec<Mapping>> {
    let maps = std::fs::read_to_string(format!("/proc/{thread}/maps"))?;
    Ok(maps.lines().filter_map(mapping).collect())
}

/// From a line such as `7f00-7f01 rw-s 00001000 00:21 77 /mnt/log`. None if it is about no file.
fn mapping(line: &str) -> Option<Mapping> {
    let hexadecimal = |field| u64::from_str_radix(field, 16).ok();
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let mode = fields.next()?.to_owned();
    let offset = hexadecimal(fields.next()?)?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let device = libc::makedev(hexadecimal(major)? as u32, hexadecimal(minor)? as u32);
    let inode = fields.next()?.parse().ok()?;
    let path = line[line.find('/')?..].to_owned();
    Some(Mapping { addresses: hexadecimal(start)?..hexadecimal(end)?, mode, offset, device, inode, path })
}

/// Which thread it was that runs another program now, and has the number of its process for that: PTRACE_EVENT_EXEC.
pub fn former(thread: libc::pid_t) -> libc::pid_t {
    let mut former: libc::c_ulong = 0;
    // SAFETY: the kernel writes one number.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, thread, 0, &mut former) };
    if result < 0 {
        thread
    } else {
        former as libc::pid_t
    }
}

/// Sleep until a child, or a thread that is traced, stops or ends, or for this long, less than a second. Whether one did.
pub fn wait_for_child(time: Duration) -> bool {
    // SAFETY: the set and the time live through the calls.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        let time = libc::timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
        libc::sigtimedwait(&set, std::ptr::null_mut(), &time) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_tells_why_a_thread_has_stopped() {
        let stopped = |signal: libc::c_int, event: libc::c_int| Stop::of(event << 16 | signal << 8 | 0x7f);
        assert_eq!(stopped(libc::SIGTRAP | 0x80, 0), Stop::Call);
        assert_eq!(stopped(libc::SIGTRAP, libc::PTRACE_EVENT_EXEC), Stop::Exec);
        assert_eq!(stopped(libc::SIGTRAP, libc::PTRACE_EVENT_VFORK), Stop::Start);
        assert_eq!(stopped(libc::SIGTRAP, libc::PTRACE_EVENT_STOP), Stop::Event);
        assert_eq!(stopped(libc::SIGTRAP, 0), Stop::Signal(libc::SIGTRAP));
        assert_eq!(stopped(libc::SIGTERM, 0), Stop::Signal(libc::SIGTERM));
        assert_eq!(Stop::of(0x300), Stop::End { dumped: false });
        assert_eq!(Stop::of(libc::SIGSEGV | 0x80), Stop::End { dumped: true });
    }

    #[test]
    fn memory_is_read_as_far_as_there_is_any() {
        let here = std::process::id() as libc::pid_t;
        let text = *b"some text";
        assert_eq!(read(here, text.as_ptr() as u64, 4).expect("there"), b"some");
        assert!(read(here, 16, 4).is_err());
        // SAFETY: two new pages, of which the second one is taken away again.
        let page = unsafe {
            let place =
                libc::mmap(std::ptr::null_mut(), 8192, libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
            assert_ne!(place, libc::MAP_FAILED);
            assert_eq!(libc::munmap(place.byte_add(4096), 4096), 0);
            place as u64
        };
        assert_eq!(read(here, page, 8192).expect("the first page").len(), 4096);
    }

    #[test]
    fn stores_reach_a_file_where_its_mapping_is_shared() {
        let line = "7f00-7f80 rw-s 00001000 0a:21 77   /mnt/a log";
        let found = mapping(line).expect("a file");
        assert_eq!((found.device, found.inode, found.path.as_str()), (libc::makedev(0xa, 0x21), 77, "/mnt/a log"));
        assert_eq!(found.shared_bytes(&(0x7f10..0x8000)), Some(0x1010..0x1080));
        assert_eq!(found.shared_bytes(&(0..0x7f10)), Some(0x1000..0x1010));
        assert_eq!(found.shared_bytes(&(0x7f80..0x8000)), None);
        let private = mapping(&line.replace("rw-s", "rw-p")).expect("a file");
        assert_eq!(private.shared_bytes(&(0x7f10..0x8000)), None);
        assert_eq!(mapping("7f00-7f80 rw-p 00000000 00:00 0   [heap]"), None);
    }

    #[test]
    fn a_thread_that_is_not_traced_has_no_registers() {
        assert!(registers(std::process::id() as libc::pid_t).is_err());
    }
}
