//! Leaving no guest behind.
//!
//! UML runs helper processes that outlive its main process. All are in one process group, which is killed when this
//! process ends, be it by SIGTERM or by the death of the harness (whose signal is SIGTERM too).

use std::sync::atomic::{AtomicI32, Ordering};

/// Process group of the running guest; 0 for none.
static GUEST: AtomicI32 = AtomicI32::new(0);

/// From now on SIGTERM, also that of the harness's death, kills the guest's group.
pub fn prepare() {
    let handler: extern "C" fn(i32) = end;
    // SAFETY: the handler makes async-signal-safe calls only; plain numbers otherwise.
    unsafe {
        libc::signal(libc::SIGTERM, handler as libc::sighandler_t);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
    }
}

/// Remember the group of the running guest.
pub fn watch_over(group: i32) {
    GUEST.store(group, Ordering::SeqCst);
}

/// Forget the group of a guest that has ended, unless another one runs by now.
pub fn forget(group: i32) {
    let _ = GUEST.compare_exchange(group, 0, Ordering::SeqCst, Ordering::SeqCst);
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
