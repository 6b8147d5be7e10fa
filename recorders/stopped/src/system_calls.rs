//! The table of system calls: what each can do to files, and where its arguments stand.
//!
//! There is no other one. `postcrash-calls` and the agent look calls up here, and so does the importer of strace's output,
//! through `postcrash._core`. A call that is not in the table may do anything.

/// What a call can do to files. Numbers are the places of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Names and contents stay as they are.
    Harmless,
    /// Writes blocks of the file behind a descriptor, from the first to the last.
    Write(usize),
    /// Changes the size or the allocation of the file behind a descriptor.
    Resize(usize),
    /// Changes the size of a file that is given by its path.
    Truncate,
    /// Makes, moves or removes names.
    Names,
    /// Opens a file with the flags in an argument, and may make or truncate it. None: the flags lie in memory.
    Open(Option<usize>),
    /// Starts to write back the file behind a descriptor, and makes nothing durable.
    WriteBack(usize),
    /// Makes the file behind a descriptor durable.
    Flush(usize),
    /// Makes everything durable that is mapped in the range of memory that the first two arguments give.
    FlushMemory,
    /// Makes everything durable; with an argument, all of the file system behind that descriptor.
    FlushAll(Option<usize>),
    /// Maps a file: stores to it are no system calls.
    Map,
    /// Gives a file or directory an extended attribute.
    SetAttribute,
    /// Anything else.
    Other,
}

impl Effect {
    /// The effect in a word, without its arguments.
    pub fn word(self) -> &'static str {
        match self {
            Effect::Harmless => "harmless",
            Write(_) => "write",
            Resize(_) => "resize",
            Truncate => "truncate",
            Names => "names",
            Effect::Open(_) => "open",
            WriteBack(_) => "write-back",
            Flush(_) => "flush",
            FlushMemory => "flush-memory",
            FlushAll(_) => "flush-all",
            Map => "map",
            SetAttribute => "set-attribute",
            Other => "other",
        }
    }
}

/// What an argument of a call means. Numbers are the places of arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The file behind a descriptor.
    File(usize),
    /// A path.
    Path(usize),
    /// A path that starts at the folder behind a descriptor: descriptor, path.
    PathAt(usize, usize),
    /// The file that is mapped, shared, at an address, for a number of bytes.
    Mapped(usize, usize),
    /// A number of bytes.
    Bytes(usize),
    /// A number of bytes and the offset in the file: bytes, offset.
    BytesAt(usize, usize),
    /// How a file is opened.
    Flags(usize),
}

/// A system call.
#[derive(Debug)]
pub struct SystemCall {
    pub number: i64,
    /// Its name in the crate libc.
    constant: &'static str,
    pub effect: Effect,
    pub parts: &'static [Part],
}

impl SystemCall {
    pub fn name(&self) -> &'static str {
        self.constant.trim_start_matches("SYS_")
    }

    /// The places of its paths, each with that of the descriptor of the folder from which it starts, if there is one.
    pub fn paths(&self) -> Vec<(Option<usize>, usize)> {
        let paths = self.parts.iter().filter_map(|part| match *part {
            Path(path) => Some((None, path)),
            PathAt(folder, path) => Some((Some(folder), path)),
            _ => None,
        });
        paths.collect()
    }

    /// Whether the call names a file, by a descriptor, a path or a range of memory.
    pub fn names_a_file(&self) -> bool {
        self.parts.iter().any(|part| !matches!(part, Bytes(_) | BytesAt(..) | Flags(_)))
    }
}

use Effect::{Flush, FlushAll, FlushMemory, Map, Names, Other, Resize, SetAttribute, Truncate, Write, WriteBack};
use Part::{Bytes, BytesAt, File, Flags, Mapped, Path, PathAt};

macro_rules! system_calls {
    ({ $($constant:ident: $effect:expr, [$($part:expr),*];)* } harmless { $($harmless:ident)* }) => {
        pub const SYSTEM_CALLS: &[SystemCall] = &[
            $(system_calls!(@call $constant, $effect, &[$($part),*]),)*
            $(system_calls!(@call $harmless, Effect::Harmless, &[]),)*
        ];
    };
    (@call $constant:ident, $effect:expr, $parts:expr) => {
        SystemCall { number: libc::$constant, constant: stringify!($constant), effect: $effect, parts: $parts }
    };
}

system_calls! {
    {
        SYS_write: Write(0), [File(0), Bytes(2)];
        SYS_pwrite64: Write(0), [File(0), BytesAt(2, 3)];
        SYS_writev: Write(0), [File(0)];
        SYS_pwritev: Write(0), [File(0)];
        SYS_pwritev2: Write(0), [File(0)];
        SYS_sendfile: Write(0), [File(0), Bytes(3)];
        SYS_copy_file_range: Write(2), [File(2), Bytes(4)];
        SYS_splice: Write(2), [File(2), Bytes(4)];
        SYS_ftruncate: Resize(0), [File(0), Bytes(1)];
        SYS_fallocate: Resize(0), [File(0), BytesAt(3, 2)];
        SYS_truncate: Truncate, [Path(0), Bytes(1)];
        SYS_open: Effect::Open(Some(1)), [Path(0), Flags(1)];
        SYS_openat: Effect::Open(Some(2)), [PathAt(0, 1), Flags(2)];
        SYS_openat2: Effect::Open(None), [PathAt(0, 1)];
        SYS_creat: Names, [Path(0)];
        SYS_rename: Names, [Path(0), Path(1)];
        SYS_renameat: Names, [PathAt(0, 1), PathAt(2, 3)];
        SYS_renameat2: Names, [PathAt(0, 1), PathAt(2, 3)];
        SYS_link: Names, [Path(0), Path(1)];
        SYS_linkat: Names, [PathAt(0, 1), PathAt(2, 3)];
        SYS_symlink: Names, [Path(1)];
        SYS_symlinkat: Names, [PathAt(1, 2)];
        SYS_unlink: Names, [Path(0)];
        SYS_unlinkat: Names, [PathAt(0, 1)];
        SYS_rmdir: Names, [Path(0)];
        SYS_mkdir: Names, [Path(0)];
        SYS_mkdirat: Names, [PathAt(0, 1)];
        SYS_mknod: Names, [Path(0)];
        SYS_mknodat: Names, [PathAt(0, 1)];
        SYS_fsync: Flush(0), [File(0)];
        SYS_fdatasync: Flush(0), [File(0)];
        SYS_msync: FlushMemory, [Mapped(0, 1), Bytes(1)];
        SYS_sync: FlushAll(None), [];
        SYS_syncfs: FlushAll(Some(0)), [File(0)];
        SYS_sync_file_range: WriteBack(0), [File(0), BytesAt(2, 1)];
        SYS_mmap: Map, [File(4), BytesAt(1, 5)];
        SYS_setxattr: SetAttribute, [Path(0)];
        SYS_lsetxattr: SetAttribute, [Path(0)];
        SYS_fsetxattr: SetAttribute, [File(0)];
        SYS_removexattr: Other, [Path(0)];
        SYS_lremovexattr: Other, [Path(0)];
        SYS_fremovexattr: Other, [File(0)];
        SYS_chmod: Other, [Path(0)];
        SYS_fchmod: Other, [File(0)];
        SYS_fchmodat: Other, [PathAt(0, 1)];
        SYS_bind: Other, [];
        SYS_io_submit: Other, [];
        SYS_io_getevents: Other, [];
        SYS_io_uring_enter: Other, [];
    } harmless {
        SYS_read SYS_close SYS_stat SYS_fstat SYS_lstat SYS_poll SYS_lseek SYS_mprotect SYS_munmap SYS_brk
        SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_pread64 SYS_readv SYS_access SYS_pipe SYS_select
        SYS_sched_yield SYS_mremap SYS_mincore SYS_madvise SYS_dup SYS_dup2 SYS_pause SYS_nanosleep SYS_getitimer
        SYS_alarm SYS_setitimer SYS_getpid SYS_socket SYS_connect SYS_accept SYS_sendto SYS_recvfrom SYS_sendmsg
        SYS_recvmsg SYS_shutdown SYS_listen SYS_getsockname SYS_getpeername SYS_socketpair SYS_setsockopt
        SYS_getsockopt SYS_clone SYS_clone3 SYS_fork SYS_vfork SYS_execve SYS_exit SYS_wait4 SYS_waitid SYS_kill
        SYS_tkill SYS_tgkill SYS_uname SYS_fcntl SYS_flock SYS_getdents SYS_getdents64 SYS_getcwd SYS_chdir SYS_fchdir
        SYS_readlink SYS_readlinkat SYS_umask SYS_gettimeofday SYS_getrlimit SYS_setrlimit SYS_prlimit64 SYS_getrusage
        SYS_sysinfo SYS_times SYS_getuid SYS_getgid SYS_geteuid SYS_getegid SYS_setpgid SYS_getppid SYS_getpgrp
        SYS_getpgid SYS_setsid SYS_getsid SYS_capget SYS_capset SYS_rt_sigpending SYS_rt_sigtimedwait
        SYS_rt_sigsuspend SYS_sigaltstack SYS_utime SYS_utimes SYS_utimensat SYS_statfs SYS_fstatfs SYS_sched_getparam
        SYS_sched_setscheduler SYS_sched_getscheduler SYS_sched_setaffinity SYS_sched_getaffinity SYS_mlock
        SYS_munlock SYS_prctl SYS_arch_prctl SYS_gettid SYS_readahead SYS_time SYS_futex SYS_set_tid_address
        SYS_fadvise64 SYS_clock_gettime SYS_clock_getres SYS_clock_nanosleep SYS_exit_group SYS_epoll_create1
        SYS_epoll_ctl SYS_epoll_wait SYS_epoll_pwait SYS_newfstatat SYS_faccessat SYS_faccessat2 SYS_pselect6
        SYS_ppoll SYS_set_robust_list SYS_eventfd2 SYS_dup3 SYS_pipe2 SYS_getrandom SYS_statx
    }
}

/// The call with this number, if it is in the table.
pub fn system_call(number: i64) -> Option<&'static SystemCall> {
    SYSTEM_CALLS.iter().find(|call| call.number == number)
}

/// The name of the call with this number, or its number.
pub fn name_of(number: i64) -> String {
    system_call(number).map_or_else(|| format!("call {number}"), |call| call.name().to_owned())
}

/// What the call with this number can do.
pub fn effect_of(number: i64) -> Effect {
    system_call(number).map_or(Other, |call| call.effect)
}

/// Whether a call with these arguments makes something durable and does nothing else.
pub fn is_flush(number: i64, arguments: &[u64; 6]) -> bool {
    match effect_of(number) {
        Flush(_) | FlushAll(_) => true,
        FlushMemory => arguments[2] & libc::MS_SYNC as u64 != 0,
        _ => false,
    }
}

/// The entry of /proc/PID from which a path of a thread starts. `folder` is a descriptor, or AT_FDCWD.
pub fn path_start(folder: i32, path: &[u8]) -> String {
    match folder {
        _ if path.starts_with(b"/") => "root".to_owned(),
        libc::AT_FDCWD => "cwd".to_owned(),
        folder => format!("fd/{folder}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_there_once() {
        for (place, call) in SYSTEM_CALLS.iter().enumerate() {
            assert_eq!(SYSTEM_CALLS.iter().position(|other| other.number == call.number), Some(place), "{call:?}");
        }
    }

    #[test]
    fn what_makes_durable_and_nothing_else_is_a_flush() {
        assert!(is_flush(libc::SYS_fdatasync, &[0; 6]));
        assert!(is_flush(libc::SYS_msync, &[0, 0, libc::MS_SYNC as u64, 0, 0, 0]));
        assert!(!is_flush(libc::SYS_msync, &[0, 0, libc::MS_ASYNC as u64, 0, 0, 0]));
        assert!(!is_flush(libc::SYS_write, &[0; 6]));
    }
}
