//! System calls that neither std nor rustix wraps, made safe.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use rustix::process::Pid;

/// The result of a system call that returns a negative number on failure.
pub fn check(result: impl Into<i64>) -> io::Result<i64> {
    match result.into() {
        negative if negative < 0 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}

/// A descriptor that a system call has just returned.
pub fn owned(result: impl Into<i64>) -> io::Result<OwnedFd> {
    // SAFETY: the kernel has made this descriptor for us.
    check(result).map(|fd| unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Fork into the new namespaces `flags` (`CLONE_NEW…`). `None` in the child. Only a process with one thread may do so.
pub fn fork(flags: i32) -> io::Result<Option<Pid>> {
    let flags = i64::from(flags | libc::SIGCHLD);
    // SAFETY: without a stack of its own the child is a copy of this process, as after fork(2).
    let pid = check(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) })?;
    Ok(Pid::from_raw(pid as i32))
}

/// End this process at once, without its buffers and destructors.
pub fn leave(status: i32) -> ! {
    // SAFETY: a plain number.
    unsafe { libc::_exit(status) }
}

/// Hold back every signal, or let every signal in.
pub fn block_signals(is_blocked: bool) -> io::Result<()> {
    // SAFETY: a set that lives through the calls.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        let how = if is_blocked { libc::SIG_BLOCK } else { libc::SIG_UNBLOCK };
        check(libc::sigprocmask(how, &all, std::ptr::null_mut())).map(drop)
    }
}

/// A descriptor from which the signals that are sent to this process can be read. They must be blocked.
pub fn signals(numbers: &[i32]) -> io::Result<OwnedFd> {
    // SAFETY: a set that lives through the calls.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for &number in numbers {
            libc::sigaddset(&mut set, number);
        }
        owned(libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))
    }
}

/// The next signal that `signals` has, if there is one.
pub fn next_signal(signals: &OwnedFd) -> Option<i32> {
    let mut info = [0u8; std::mem::size_of::<libc::signalfd_siginfo>()];
    let read = rustix::io::read(signals, &mut info).ok()?;
    (read == info.len()).then(|| i32::from_ne_bytes(info[..4].try_into().expect("four bytes")))
}

/// Signals do what they do in a fresh process.
pub fn reset_signals() -> io::Result<()> {
    for number in 1..=64 {
        // SAFETY: plain numbers. Signals whose action cannot be set are refused.
        unsafe { libc::signal(number, libc::SIG_DFL) };
    }
    block_signals(false)
}

/// Close these descriptors, or only when another program is run.
pub fn close_from(first: u32, is_at_exec: bool) -> io::Result<()> {
    let flags = if is_at_exec { libc::CLOSE_RANGE_CLOEXEC } else { 0 };
    // SAFETY: plain numbers.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, flags) }).map(drop)
}

#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Set flags (`MOUNT_ATTR_…`) of the mount whose root `place` is.
pub fn set_mount_flags(place: &OwnedFd, flags: u64) -> io::Result<()> {
    let attributes = MountAttributes { set: flags, clear: 0, propagation: 0, user_namespace: 0 };
    // SAFETY: the structure lives through the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            place.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &attributes,
            std::mem::size_of::<MountAttributes>(),
        )
    })
    .map(drop)
}
