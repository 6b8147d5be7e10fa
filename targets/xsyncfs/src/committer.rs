//! Commits: one at a time, when an output waits for one, when one was asked for, and at the latest every five seconds.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::event::{eventfd, EventfdFlags};

use crate::buffer::Buffer;
use crate::canary::{self, Canary};
use crate::release::Output;

/// Without output a commit comes after this time, as in ext3 and in the paper.
const INTERVAL: Duration = Duration::from_secs(5);
/// While more bytes than this wait, nothing more is taken from the box, so that its writes block.
const WAITING_BYTES_MAX: usize = 4 << 20;

/// What has left the box and waits. Shared by the thread that collects and the one that commits.
pub struct Outbox {
    state: Mutex<State>,
    changed: Condvar,
    bytes: AtomicUsize,
    /// Readable when something was released, or when a commit has failed.
    pub news: OwnedFd,
}

#[derive(Default)]
struct State {
    buffer: Buffer<Output>,
    /// A commit is wanted without an output.
    is_wanted: bool,
    has_failed: bool,
}

impl Outbox {
    pub fn new() -> io::Result<Outbox> {
        Ok(Outbox {
            state: Mutex::default(),
            changed: Condvar::new(),
            bytes: AtomicUsize::new(0),
            news: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    /// An output has left the box.
    pub fn arrive(&self, output: Output) {
        self.bytes.fetch_add(output.bytes(), Ordering::Relaxed);
        self.state().buffer.arrive(output);
        self.changed.notify_one();
    }

    /// Something was modified, and is to be committed soon.
    pub fn want_commit(&self) {
        self.state().is_wanted = true;
        self.changed.notify_one();
    }

    /// Whether more may be taken from the box.
    pub fn has_room(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) < WAITING_BYTES_MAX
    }

    pub fn has_failed(&self) -> bool {
        self.state().has_failed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it has the lock")
    }

    /// Wait until a commit is due, and begin it. Whether an output waits for it.
    fn begin(&self, due: Instant) -> bool {
        let mut state = self.state();
        while !state.buffer.wants_commit() && !state.is_wanted {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.changed.wait_timeout(state, left).expect("no thread panics while it has the lock").0;
        }
        state.is_wanted = false;
        state.buffer.begin()
    }

    /// The output is outside, or is lost.
    fn is_gone(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        // The counter of this descriptor overflows after 2^64 outputs.
        let _ = rustix::io::write(&self.news, &1u64.to_ne_bytes());
    }

    fn fail(&self) -> usize {
        let mut state = self.state();
        state.has_failed = true;
        let dropped = state.buffer.fail().iter().map(Output::bytes).sum();
        drop(state);
        self.is_gone(0);
        dropped
    }
}

/// A commit that failed.
#[derive(Debug)]
pub struct Failure {
    pub error: io::Error,
    /// So many bytes of output were dropped.
    pub dropped: usize,
}

/// Commit by `commit` and give what this releases to `release`, until that returns the status with which all ends.
pub fn run(
    outbox: &Outbox,
    mut commit: impl FnMut() -> io::Result<()>,
    mut release: impl FnMut(Output) -> Option<u8>,
) -> Result<u8, Failure> {
    let mut due = Instant::now() + INTERVAL;
    let mut is_early = canary::is(Canary::EarlyOutput);
    loop {
        let has_outputs = outbox.begin(due);
        due = Instant::now() + INTERVAL;
        let result = if has_outputs && std::mem::take(&mut is_early) { Ok(()) } else { commit() };
        if let Err(error) = result {
            return Err(Failure { error, dropped: outbox.fail() });
        }
        let released = outbox.state().buffer.succeed();
        for output in released {
            let bytes = output.bytes();
            if let Some(status) = release(output) {
                return Ok(status);
            }
            outbox.is_gone(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn an_output_comes_after_its_commit() {
        let outbox = Outbox::new().unwrap();
        outbox.arrive(Output::Taken(1));
        outbox.arrive(Output::Exit(7));
        let log = RefCell::new(Vec::new());
        let commit = || {
            log.borrow_mut().push("commit".to_owned());
            Ok(())
        };
        let release = |output| {
            log.borrow_mut().push(format!("{output:?}"));
            if let Output::Exit(status) = output {
                Some(status)
            } else {
                None
            }
        };
        assert_eq!(run(&outbox, commit, release).unwrap(), 7);
        assert_eq!(*log.borrow(), ["commit", "Taken(1)", "Exit(7)"]);
    }

    #[test]
    fn a_failed_commit_drops_what_is_held() {
        let outbox = Outbox::new().unwrap();
        outbox.arrive(Output::Bytes(1, b"abc".to_vec()));
        let commit = || {
            outbox.arrive(Output::Bytes(1, b"de".to_vec()));
            Err(io::Error::from_raw_os_error(libc::EIO))
        };
        let failure = run(&outbox, commit, |_| panic!("nothing may be released")).unwrap_err();
        assert_eq!(failure.dropped, 5);
        assert!(outbox.has_failed());
    }

    #[test]
    fn a_commit_that_is_wanted_comes_without_an_output() {
        let outbox = Outbox::new().unwrap();
        outbox.want_commit();
        let commit = || {
            outbox.arrive(Output::Exit(0));
            Ok(())
        };
        assert_eq!(run(&outbox, commit, |_| Some(0)).unwrap(), 0);
    }

    #[test]
    fn what_is_held_has_a_limit() {
        let outbox = Outbox::new().unwrap();
        assert!(outbox.has_room());
        outbox.arrive(Output::Bytes(1, vec![0; WAITING_BYTES_MAX]));
        assert!(!outbox.has_room());
        outbox.is_gone(WAITING_BYTES_MAX);
        assert!(outbox.has_room());
    }
}
