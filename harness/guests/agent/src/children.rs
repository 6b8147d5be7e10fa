//! What the kernel tells of children, and of threads that are traced. A program stops thousands of times, so each wait is
//! one system call: a timer ends those that take long.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::sys::check;

/// How long a wait for a child may take: less than a second.
const TICK: Duration = Duration::from_millis(200);
static TICKED: AtomicBool = AtomicBool::new(false);

/// What there is to tell.
pub enum Next {
    /// The status of a child or of a thread that is traced, as waitpid(2) has it.
    Event(libc::pid_t, libc::c_int),
    /// There is no child any more.
    Nothing,
    /// Nothing has happened for a while.
    Tick,
    /// The time is over.
    Late,
}

/// Waits for children. There is one at a time, because it takes SIGALRM for itself, and only its own thread waits.
pub struct Children(libc::timer_t);

impl Children {
    pub fn new() -> io::Result<Children> {
        let mut timer = std::ptr::null_mut();
        // SAFETY: structures of plain data, for which zeros are an empty mask and no flags: a wait is not begun again
        // after the signal. The handler only stores. The kernel writes the timer.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = ticked as extern "C" fn(libc::c_int) as usize;
            check(libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut()))?;
            let mut event: libc::sigevent = std::mem::zeroed();
            (event.sigev_notify, event.sigev_signo) = (libc::SIGEV_THREAD_ID, libc::SIGALRM);
            event.sigev_notify_thread_id = libc::gettid();
            check(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer))?;
        }
        let children = Children(timer);
        let time = libc::timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
        let ticks = libc::itimerspec { it_interval: time, it_value: time };
        // SAFETY: the timer is there, and the times live through the call.
        check(unsafe { libc::timer_settime(timer, 0, &ticks, std::ptr::null_mut()) })?;
        Ok(children)
    }

    /// Wait for what happens next. Children of other threads do not count.
    pub fn next(&self, end: Instant) -> io::Result<Next> {
        if TICKED.swap(false, Ordering::Relaxed) && Instant::now() >= end {
            return Ok(Next::Late);
        }
        let mut status = 0;
        // SAFETY: the status lives through the call.
        match check(unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD) }) {
            Ok(thread) => Ok(Next::Event(thread as libc::pid_t, status)),
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => Ok(Next::Nothing),
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            Err(_) if Instant::now() >= end => Ok(Next::Late),
            Err(_) => Ok(Next::Tick),
        }
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        // SAFETY: the timer is there.
        unsafe { libc::timer_delete(self.0) };
    }
}

extern "C" fn ticked(_: libc::c_int) {
    TICKED.store(true, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_wait_tells_of_ends_gives_up_now_and_then_and_is_late() {
        let children = Children::new().expect("a timer");
        let soon = Instant::now() + 4 * TICK;
        let mut child = Command::new("sleep").arg("0.5").spawn().expect("it starts");
        let (mut ticks, mut ends) = (0, 0);
        loop {
            match children.next(soon).expect("told") {
                Next::Tick => ticks += 1,
                Next::Event(thread, 0) if thread == child.id() as libc::pid_t => ends += 1,
                Next::Event(..) => panic!("another child"),
                Next::Nothing => break,
                Next::Late => panic!("it ends before"),
            }
        }
        assert_eq!(ends, 1);
        assert!(child.wait().is_err(), "it was waited for");
        assert!((1..=3).contains(&ticks), "{ticks}");
        let mut other = Command::new("sleep").arg("60").spawn().expect("it starts");
        let soon = Instant::now() + TICK;
        while !matches!(children.next(soon).expect("told"), Next::Late) {}
        assert!(Instant::now() >= soon);
        other.kill().expect("killed");
        other.wait().expect("ended");
    }
}
