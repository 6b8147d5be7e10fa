//! What a system call can do to the folder, by its number.

/// What a step is called that is no call: what was stored through mappings.
pub const STORE: &str = "store";

/// What has to be looked at when a call of this kind ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing: the call changes neither names nor contents.
    Harmless,
    /// The content of the file behind this argument, which is a descriptor.
    Content(usize),
    /// Names, and the contents of files that have another size.
    Names,
    /// The file behind this argument, a descriptor, is made durable.
    Flush(usize),
    /// All that is mapped in the range of memory that the first two arguments give is made durable.
    FlushMemory,
    /// Everything is made durable; with an argument, a descriptor, all of the file system behind it.
    FlushAll(Option<usize>),
    /// The program says something.
    Says,
    /// A file may be mapped: stores to it are no system calls.
    Map,
    /// Anything. It is not known what the call does.
    Unknown,
}

/// The kind of the call with this number and these arguments.
pub fn kind_of(number: i64, arguments: &[u64; 6]) -> Kind {
    match number {
        libc::SYS_write
        | libc::SYS_pwrite64
        | libc::SYS_writev
        | libc::SYS_pwritev
        | libc::SYS_pwritev2
        | libc::SYS_ftruncate
        | libc::SYS_fallocate
        | libc::SYS_sendfile => Kind::Content(0),
        libc::SYS_copy_file_range | libc::SYS_splice => Kind::Content(2),
        libc::SYS_open => opening(arguments[1]),
        libc::SYS_openat => opening(arguments[2]),
        libc::SYS_openat2
        | libc::SYS_creat
        | libc::SYS_rename
        | libc::SYS_renameat
        | libc::SYS_renameat2
        | libc::SYS_link
        | libc::SYS_linkat
        | libc::SYS_symlink
        | libc::SYS_symlinkat
        | libc::SYS_unlink
        | libc::SYS_unlinkat
        | libc::SYS_rmdir
        | libc::SYS_mkdir
        | libc::SYS_mkdirat
        | libc::SYS_mknod
        | libc::SYS_mknodat
        | libc::SYS_truncate => Kind::Names,
        libc::SYS_fsync | libc::SYS_fdatasync => Kind::Flush(0),
        libc::SYS_msync => flushing(arguments[2]),
        libc::SYS_sync => Kind::FlushAll(None),
        libc::SYS_syncfs => Kind::FlushAll(Some(0)),
        libc::SYS_mmap => Kind::Map,
        number if HARMLESS.contains(&number) => Kind::Harmless,
        _ => Kind::Unknown,
    }
}

/// Whether a call writes, so that it waits for the disk if its file was opened with O_DSYNC.
pub fn is_write(number: i64) -> bool {
    matches!(kind_of(number, &[0; 6]), Kind::Content(_)) && !matches!(number, libc::SYS_ftruncate | libc::SYS_fallocate)
}

/// Whether a call may last until another thread does something.
pub fn may_last(number: i64) -> bool {
    matches!(number, libc::SYS_splice | libc::SYS_sendfile)
}

/// Whether this write waits for the disk, whatever its file's flags are.
pub fn writes_through(number: i64, arguments: &[u64; 6]) -> bool {
    number == libc::SYS_pwritev2 && arguments[5] & (libc::RWF_DSYNC | libc::RWF_SYNC) as u64 != 0
}

/// Whether a call gives a file or directory an extended attribute.
pub fn sets_attribute(number: i64) -> bool {
    matches!(number, libc::SYS_setxattr | libc::SYS_lsetxattr | libc::SYS_fsetxattr)
}

/// Where a write begins, if its arguments say so.
pub fn offset(number: i64, arguments: &[u64; 6]) -> Option<u64> {
    let is_given = matches!(number, libc::SYS_pwrite64 | libc::SYS_pwritev | libc::SYS_pwritev2);
    (is_given && arguments[3] != u64::MAX).then_some(arguments[3])
}

/// Whether a call returns a descriptor.
pub fn opens(number: i64) -> bool {
    matches!(number, libc::SYS_open | libc::SYS_openat | libc::SYS_openat2)
}

/// Whether a call opens a file to write to it. The flags of openat2 lie in memory.
pub fn opens_to_write(number: i64, arguments: &[u64; 6]) -> bool {
    let flags = match number {
        libc::SYS_open => arguments[1],
        libc::SYS_openat => arguments[2],
        _ => return matches!(number, libc::SYS_openat2 | libc::SYS_creat),
    };
    flags & libc::O_ACCMODE as u64 != libc::O_RDONLY as u64
}

fn opening(flags: u64) -> Kind {
    let changing = libc::O_CREAT | libc::O_TRUNC | libc::O_TMPFILE;
    if flags & changing as u64 == 0 {
        Kind::Harmless
    } else {
        Kind::Names
    }
}

fn flushing(flags: u64) -> Kind {
    if flags & libc::MS_SYNC as u64 == 0 {
        Kind::Harmless
    } else {
        Kind::FlushMemory
    }
}

/// Calls after which names and contents are what they were. A call that is not here costs a look at the whole folder.
const HARMLESS: [i64; 128] = [
    libc::SYS_read,
    libc::SYS_close,
    libc::SYS_stat,
    libc::SYS_fstat,
    libc::SYS_lstat,
    libc::SYS_poll,
    libc::SYS_lseek,
    libc::SYS_mprotect,
    libc::SYS_munmap,
    libc::SYS_brk,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_pread64,
    libc::SYS_readv,
    libc::SYS_access,
    libc::SYS_pipe,
    libc::SYS_select,
    libc::SYS_sched_yield,
    libc::SYS_mremap,
    libc::SYS_mincore,
    libc::SYS_madvise,
    libc::SYS_dup,
    libc::SYS_dup2,
    libc::SYS_pause,
    libc::SYS_nanosleep,
    libc::SYS_getitimer,
    libc::SYS_alarm,
    libc::SYS_setitimer,
    libc::SYS_getpid,
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_accept,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_shutdown,
    libc::SYS_listen,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_socketpair,
    libc::SYS_setsockopt,
    libc::SYS_getsockopt,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_execve,
    libc::SYS_exit,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_uname,
    libc::SYS_fcntl,
    libc::SYS_flock,
    libc::SYS_getdents,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_chdir,
    libc::SYS_fchdir,
    libc::SYS_readlink,
    libc::SYS_readlinkat,
    libc::SYS_umask,
    libc::SYS_gettimeofday,
    libc::SYS_getrlimit,
    libc::SYS_setrlimit,
    libc::SYS_prlimit64,
    libc::SYS_getrusage,
    libc::SYS_sysinfo,
    libc::SYS_times,
    libc::SYS_getuid,
    libc::SYS_getgid,
    libc::SYS_geteuid,
    libc::SYS_getegid,
    libc::SYS_setpgid,
    libc::SYS_getppid,
    libc::SYS_getpgrp,
    libc::SYS_getpgid,
    libc::SYS_setsid,
    libc::SYS_getsid,
    libc::SYS_capget,
    libc::SYS_capset,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigsuspend,
    libc::SYS_sigaltstack,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_utimensat,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_sched_getparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_getaffinity,
    libc::SYS_mlock,
    libc::SYS_munlock,
    libc::SYS_prctl,
    libc::SYS_arch_prctl,
    libc::SYS_gettid,
    libc::SYS_readahead,
    libc::SYS_time,
    libc::SYS_futex,
    libc::SYS_set_tid_address,
    libc::SYS_fadvise64,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_exit_group,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_newfstatat,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_pselect6,
    libc::SYS_ppoll,
    libc::SYS_set_robust_list,
    libc::SYS_eventfd2,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    libc::SYS_getrandom,
    libc::SYS_statx,
];
