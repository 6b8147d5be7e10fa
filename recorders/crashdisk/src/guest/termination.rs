//! Makes sure that no guest outlives this process.
//!
//! UML runs helper processes that outlive its main process. All processes of a guest are in one process group, which is
//! killed when this process ends. On SIGTERM (also the signal of the harness's death) a handler kills it. If this
//! process ends in any other way, a watcher kills it. The watcher is a process of its own. It learns of each guest
//! through a pipe before the guest's program starts, and the pipe ends when this process does.

use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// Process group of the running guest. 0 if there is none.
static GUEST: AtomicI32 = AtomicI32::new(0);
/// The end of the watcher's pipe into which process groups are written. -1 if there is no watcher.
static WATCHER: AtomicI32 = AtomicI32::new(-1);

/// From now on, no guest outlives this process. This must be called while the process has one thread.
pub fn prepare() -> io::Result<()> {
    start_watcher()?;
    let handler: extern "C" fn(i32) = end;
    // SAFETY: the handler makes async-signal-safe calls only. All else is plain numbers.
    unsafe {
        libc::signal(libc::SIGTERM, handler as libc::sighandler_t);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
    }
    Ok(())
}

fn start_watcher() -> io::Result<()> {
    let mut ends: [RawFd; 2] = [-1; 2];
    // SAFETY: the array takes two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both descriptors are new and ours.
    let [groups, tell] = ends.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    // SAFETY: there is no other thread that could hold a lock in the child.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            drop(tell);
            watch(File::from(groups))
        }
        _ => {
            WATCHER.store(tell.into_raw_fd(), Ordering::SeqCst);
            Ok(())
        }
    }
}

/// The watcher: once the pipe has ended, kill the guest that was named last.
fn watch(mut groups: File) -> ! {
    // SAFETY: these are plain numbers and a terminated string. The watcher has a session of its own, so a signal to the
    // harness's or this process's group does not end it. It closes its standard streams, because otherwise a reader of
    // our events would keep waiting.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"guest-watcher".as_ptr());
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::signal(signal, libc::SIG_IGN);
        }
        for stream in 0..=2 {
            libc::close(stream);
        }
    }
    let mut group = [0; 4];
    while io::Read::read_exact(&mut groups, &mut group).is_ok() {}
    kill_group(i32::from_ne_bytes(group));
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(0) }
}

/// Remember the calling process as the leader of a guest's group. A child calls this before its program starts, so this
/// makes async-signal-safe calls only.
pub fn announce() -> io::Result<()> {
    // SAFETY: the call takes no arguments.
    tell_watcher(unsafe { libc::getpid() })
}

fn tell_watcher(group: i32) -> io::Result<()> {
    let bytes = group.to_ne_bytes();
    // SAFETY: the call writes four bytes of a local. A pipe takes so few bytes whole or not at all.
    match unsafe { libc::write(WATCHER.load(Ordering::SeqCst), bytes.as_ptr().cast(), bytes.len()) } {
        4 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Remember the group of the running guest.
pub fn watch_over(group: i32) {
    GUEST.store(group, Ordering::SeqCst);
}

/// Forget the group of a guest that has ended, unless another guest is running by now.
pub fn forget(group: i32) {
    if GUEST.compare_exchange(group, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
        // If the watcher is gone, there is nothing to forget.
        let _ = tell_watcher(0);
    }
}

/// Kill every process of a guest.
pub fn kill_group(group: i32) {
    if group > 0 {
        // SAFETY: the group was made for a guest that this process started.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
}

extern "C" fn end(_signal: i32) {
    kill_group(GUEST.load(Ordering::SeqCst));
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(128 + libc::SIGTERM) };
}
