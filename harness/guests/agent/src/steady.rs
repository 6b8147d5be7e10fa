//! Make one workload always give one recording, by fixing the guest's clock and the order in which its threads run.
//!
//! Time stamps are not only data. A second change of a file within one tick of the kernel's clock leaves the file's
//! time stamp as it is. So it may leave the inode out of a transaction or a log, and then less is written and flushed.
//! This must not depend on the host. So a fixed clock goes back to the start of its second before each operation. All
//! operations then come in one tick, unless one of them sleeps.
//!
//! The scheduler gives the CPU to the thread that has had least of it so far, which depends on the speed of the host.
//! While a workload runs, the agent and the kernel's workers therefore take turns in the order in which they become
//! ready. A turn has 100 ms (SCHED_RR), so that a thread that waits for another one in a loop does not block it.

use std::io;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::sys::check;

/// The time when the set-up starts. It is in the past for every host, because fsck objects to mount times in the
/// future.
const EPOCH_S: i64 = 1_500_000_000;
const NANOSECONDS: i64 = 1_000_000_000;
/// All threads have the same priority, because only the order among them matters.
const PRIORITY: i32 = 1;
/// Threads up to this number take turns already.
static LAST_THREAD: AtomicI32 = AtomicI32::new(0);

/// Steadies a guest while a workload runs. After the drop, the guest's clock goes on as if it had never been changed.
pub struct Steady {
    real: libc::timespec,
    since_boot: libc::timespec,
}

impl Steady {
    /// Call this before the target is mounted. Threads that the mount starts, such as btrfs' cleaner, then run when no
    /// other thread is ready.
    ///
    /// Without `in_turn` the scheduler chooses the order. A disk that completes writes late is meant to show other
    /// orders.
    pub fn start(in_turn: bool) -> io::Result<Steady> {
        let steady = Steady { real: now(libc::CLOCK_REALTIME)?, since_boot: now(libc::CLOCK_MONOTONIC)? };
        set(EPOCH_S, 0)?;
        if in_turn {
            take_turns()?;
        }
        Ok(steady)
    }

    /// Put the next operation into the same tick as the last one.
    pub fn operation(&self) -> io::Result<()> {
        set(now(libc::CLOCK_REALTIME)?.tv_sec, 0)
    }

    fn restore(&self) -> io::Result<()> {
        let passed = now(libc::CLOCK_MONOTONIC)?;
        let nanoseconds = self.real.tv_nsec + passed.tv_nsec - self.since_boot.tv_nsec;
        let seconds = self.real.tv_sec + passed.tv_sec - self.since_boot.tv_sec;
        set(seconds + nanoseconds.div_euclid(NANOSECONDS), nanoseconds.rem_euclid(NANOSECONDS))?;
        out_of_turn(0)
    }
}

impl Drop for Steady {
    fn drop(&mut self) {
        // The clock could be set once, so it can be set again.
        let _ = self.restore();
    }
}

fn now(clock: libc::clockid_t) -> io::Result<libc::timespec> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives through the call.
    check(unsafe { libc::clock_gettime(clock, &mut time) }).map(|_| time)
}

fn set(tv_sec: i64, tv_nsec: i64) -> io::Result<()> {
    // SAFETY: as above.
    check(unsafe { libc::clock_settime(libc::CLOCK_REALTIME, &libc::timespec { tv_sec, tv_nsec }) }).map(|_| ())
}

fn take_turns() -> io::Result<()> {
    schedule(0, libc::SCHED_RR, PRIORITY)?;
    let last = LAST_THREAD.load(Ordering::Relaxed);
    for entry in std::fs::read_dir("/proc")? {
        let Some(thread) = entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        if thread > last {
            LAST_THREAD.fetch_max(thread, Ordering::Relaxed);
            // The thread may have ended since.
            let _ = schedule(thread, libc::SCHED_RR, PRIORITY);
        }
    }
    Ok(())
}

/// Have the scheduler choose when a process runs.
pub fn out_of_turn(process: i32) -> io::Result<()> {
    schedule(process, libc::SCHED_OTHER, 0)
}

fn schedule(thread: i32, policy: i32, sched_priority: i32) -> io::Result<()> {
    // SAFETY: the structure lives through the call.
    check(unsafe { libc::sched_setscheduler(thread, policy, &libc::sched_param { sched_priority }) }).map(|_| ())
}
