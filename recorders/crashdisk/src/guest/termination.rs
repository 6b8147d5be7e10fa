//! Leaving no guest behind.
//!
//! UML runs helper processes that outlive its main process. All processes of a guest are in one process group, which is
//! killed when this process ends: on SIGTERM (also the signal of the harness's death) by a handler, and whatever else
//! ends this process, by a watcher. The watcher is a process of its own that learns of each guest before the guest's
//! program starts, through a pipe. The pipe comes to its end when this process does.

use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// Process group of the running guest; 0 for none.
static GUEST: AtomicI32 = AtomicI32::new(0);
/// The end of the watcher's pipe that takes process groups; -1 without a watcher.
static WATCHER: AtomicI32 = AtomicI32::new(-1);

/// From now on, no guest outlives this process. To be called while it has one thread.
pub fn prepare() -> io::Result<()> {
    start_watcher()?;
    let handler: extern "C" fn(i32) = end;
    // SAFETY: the handler makes async-signal-safe calls only; plain numbers otherwise.
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
    // SAFETY: both are new and ours.
    let [groups, tell] = ends.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    // SAFETY: there is no other thread whose locks the child could find taken.
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

/// The watcher: kill the guest that was named last once the pipe has come to its end.
fn watch(mut groups: File) -> ! {
    // SAFETY: plain numbers and a string that ends. A session of its own: what ends the harness's or this process's group
    // does not end the watcher. Standard streams would keep a reader of our events waiting.
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

/// Remember the calling process as the leader of a guest's group. For a child before its program starts: it makes
/// async-signal-safe calls only.
pub fn announce() -> io::Result<()> {
    // SAFETY: takes nothing.
    tell_watcher(unsafe { libc::getpid() })
}

fn tell_watcher(group: i32) -> io::Result<()> {
    let bytes = group.to_ne_bytes();
    // SAFETY: four bytes from a local; a pipe takes so few whole or not at all.
    match unsafe { libc::write(WATCHER.load(Ordering::SeqCst), bytes.as_ptr().cast(), bytes.len()) } {
        4 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Remember the group of the running guest.
pub fn watch_over(group: i32) {
    GUEST.store(group, Ordering::SeqCst);
}

/// Forget the group of a guest that has ended, unless another one runs by now.
pub fn forget(group: i32) {
    if GUEST.compare_exchange(group, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
        // A watcher that is gone has nothing to forget.
        let _ = tell_watcher(0);
    }
}

/// Kill every process of a guest.
pub fn kill_group(group: i32) {
    if group > 0 {
        // SAFETY: the group was made for a guest that we started.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
}

extern "C" fn end(_signal: i32) {
    kill_group(GUEST.load(Ordering::SeqCst));
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(128 + libc::SIGTERM) };
}
