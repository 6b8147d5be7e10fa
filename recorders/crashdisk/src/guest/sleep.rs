//! Finds out from outside whether a guest stands still, by what its threads wait for.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// The guest must have slept this long, so that an interrupt on its way can arrive.
const ASLEEP: Duration = Duration::from_micros(20);
/// If nothing can be seen, a guest that has been silent for this long counts as asleep.
const SILENT: Duration = Duration::from_micros(500);
/// A guest that is silent for this long and is never seen asleep sleeps in a way that this module does not know. One
/// that was seen asleep before is busy, and may be spinning for what the disk holds back.
const UNSEEN: Duration = Duration::from_millis(1000);
/// How long a guest that spins waits for each further thing.
const SPINNING: Duration = Duration::from_millis(10);

/// A system call that a thread is blocked in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Syscall {
    pub number: i64,
    /// Its first two arguments.
    pub arguments: [u64; 2],
}

impl Syscall {
    /// Read a line of /proc/PID/task/TID/syscall: `202 0x7f00 0x189 …`. None for a thread that runs.
    fn parse(line: &str) -> Option<Syscall> {
        let mut words = line.split_ascii_whitespace();
        let number = words.next()?.parse().ok()?;
        let mut argument = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
        Some(Syscall { number, arguments: [argument()?, argument()?] })
    }
}

/// One thread of a guest, and how to tell that it has nothing to do.
pub struct Thread {
    syscall: File,
    is_idle: fn(Syscall) -> bool,
}

impl Thread {
    pub fn of(pid: u32, tid: u32, is_idle: fn(Syscall) -> bool) -> io::Result<Thread> {
        Ok(Thread { syscall: File::open(format!("/proc/{pid}/task/{tid}/syscall"))?, is_idle })
    }

    fn waits(&self) -> bool {
        let mut line = [0; 64];
        let length = match self.syscall.read_at(&mut line, 0) {
            Ok(length) => length,
            // A thread that has ended does nothing.
            Err(error) => return error.raw_os_error() == Some(libc::ESRCH),
        };
        std::str::from_utf8(&line[..length]).ok().and_then(Syscall::parse).is_some_and(self.is_idle)
    }
}

/// Tells whether a guest stands still.
pub struct Sleep {
    threads: Vec<Thread>,
    disturbed: Instant,
    since: Option<Instant>,
    /// Whether the guest was ever seen asleep.
    seen: bool,
    /// Whether it has been late since it was last seen asleep.
    spins: bool,
}

impl Sleep {
    /// Watch these threads. If there are none, or if nothing can be seen of them, only silence counts.
    pub fn watching(threads: Vec<Thread>) -> Sleep {
        Sleep { threads, disturbed: Instant::now(), since: None, seen: false, spins: false }
    }

    /// The guest did something.
    pub fn disturb(&mut self) {
        self.disturbed = Instant::now();
        self.since = None;
    }

    /// Whether the guest has been idle at every check for long enough. Gives up the CPU if the guest is busy.
    pub fn is_sound(&mut self) -> bool {
        if !self.threads.iter().all(Thread::waits) {
            self.since = None;
            if self.disturbed.elapsed() >= UNSEEN && !self.seen {
                self.threads.clear();
            }
            std::thread::yield_now();
            return false;
        }
        let enough = if self.threads.is_empty() { SILENT } else { ASLEEP };
        let sound = self.since.get_or_insert_with(Instant::now).elapsed() >= enough;
        if sound {
            self.seen = !self.threads.is_empty();
            self.spins = false;
        }
        sound
    }

    /// Whether a guest that sleeps at other times has been busy for so long that it may spin for what is held back.
    /// This says nothing of whether it has come to rest.
    pub fn is_late(&mut self) -> bool {
        let late = self.seen && self.disturbed.elapsed() >= if self.spins { SPINNING } else { UNSEEN };
        self.spins |= late;
        late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_thread_has_a_system_call_and_a_running_one_has_none() {
        let blocked = Syscall { number: 202, arguments: [0x7f12, 0x189] };
        assert_eq!(Syscall::parse("202 0x7f12 0x189 0x0 0x0 0x7f13 0x0 0x7f14 0x7f15\n"), Some(blocked));
        for line in ["running\n", "-1 0x7f14 0x7f15\n", "202", "", "202 12 13"] {
            assert!(Syscall::parse(line).is_none_or(|call| call.number < 0), "{line}");
        }
    }

    #[test]
    fn a_thread_that_waits_as_it_should_lets_the_guest_sleep() {
        let (_keep, wait) = std::sync::mpsc::channel::<()>();
        let (tell, tid) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            // SAFETY: a plain system call.
            tell.send(unsafe { libc::gettid() } as u32).expect("the test waits");
            let _ = wait.recv();
        });
        let tid = tid.recv().expect("its number");
        let of = |is_idle| Sleep::watching(vec![Thread::of(std::process::id(), tid, is_idle).expect("it runs")]);
        let mut seen = of(|call| call.number == libc::SYS_futex);
        while !seen.is_sound() {}
        assert!(!seen.threads.is_empty());
        let mut unseen = of(|call| call.number == libc::SYS_ppoll);
        assert!(!unseen.is_sound() && !unseen.threads.is_empty());
        disturbed_before(&mut unseen, UNSEEN);
        while !unseen.is_sound() {}
        assert!(unseen.threads.is_empty());
        // It computes for long. If it were no longer watched, it would count as asleep whenever the host is busy.
        seen.threads[0].is_idle = |_| false;
        disturbed_before(&mut seen, SPINNING);
        assert!(!seen.is_late());
        disturbed_before(&mut seen, UNSEEN);
        assert!(!seen.is_sound() && seen.is_late() && !seen.threads.is_empty());
        seen.disturb();
        disturbed_before(&mut seen, SPINNING);
        assert!(seen.is_late(), "what it spins for comes soon after the first");
        seen.threads[0].is_idle = |_| true;
        while !seen.is_sound() {}
        disturbed_before(&mut seen, SPINNING);
        assert!(!seen.is_late(), "it was asleep in between");
    }

    /// As if the guest had done something for the last time so long ago.
    fn disturbed_before(sleep: &mut Sleep, time: Duration) {
        sleep.disturbed = Instant::now() - time;
    }

    #[test]
    fn where_nothing_can_be_seen_silence_must_last() {
        let mut sleep = Sleep::watching(Vec::new());
        assert!(!sleep.is_sound());
        std::thread::sleep(SILENT);
        assert!(sleep.is_sound());
        sleep.disturb();
        assert!(!sleep.is_sound());
    }
}
