//! Names of system calls.

macro_rules! names {
    ($($name:ident),* $(,)?) => {
        const NAMES: &[(i64, &str)] = &[$((libc::$name, stringify!($name))),*];
    };
}

names!(
    SYS_write,
    SYS_pwrite64,
    SYS_writev,
    SYS_pwritev,
    SYS_pwritev2,
    SYS_ftruncate,
    SYS_fallocate,
    SYS_sendfile,
    SYS_copy_file_range,
    SYS_splice,
    SYS_open,
    SYS_openat,
    SYS_openat2,
    SYS_creat,
    SYS_rename,
    SYS_renameat,
    SYS_renameat2,
    SYS_link,
    SYS_linkat,
    SYS_symlink,
    SYS_symlinkat,
    SYS_unlink,
    SYS_unlinkat,
    SYS_rmdir,
    SYS_mkdir,
    SYS_mkdirat,
    SYS_mknod,
    SYS_mknodat,
    SYS_truncate,
    SYS_fsync,
    SYS_fdatasync,
    SYS_msync,
    SYS_sync,
    SYS_syncfs,
    SYS_chmod,
    SYS_fchmod,
    SYS_fchmodat,
    SYS_io_uring_enter,
    SYS_io_submit,
    SYS_io_getevents,
    SYS_bind,
);

/// The name of a system call that can change a folder, or its number.
pub fn name_of(number: i64) -> String {
    let found = NAMES.iter().find(|(known, _)| *known == number);
    found.map_or_else(|| format!("call {number}"), |(_, name)| name.trim_start_matches("SYS_").to_owned())
}
