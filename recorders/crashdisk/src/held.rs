//! Reads that are held back until the guest stands still for one.
//!
//! Kernels read ahead: jbd2 fetches eight journal blocks that it may never look at. A read that nobody waits for
//! should not decide anything, so a read of an undecided block is kept until the guest sleeps; then the oldest is
//! answered. What is still held when the observation arrives has influenced nothing. Answering one too early costs
//! time, never truth: a decision more, with the same outcome on both sides.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use crate::block::{Kind, Request};

/// The guest must have slept this long: long enough for an interrupt that is on its way to arrive.
const ASLEEP: Duration = Duration::from_micros(20);
/// rt_sigsuspend on x86-64: where UML's idle loop waits.
const IDLE_SYSCALL: &[u8] = b"130 ";

#[derive(Default)]
pub struct HeldReads {
    reads: VecDeque<Request>,
}

impl HeldReads {
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    pub fn hold(&mut self, request: Request) {
        self.reads.push_back(request);
    }

    /// The read that has waited longest.
    pub fn oldest(&mut self) -> Option<Request> {
        self.reads.pop_front()
    }

    /// Reads of any of `sectors` from `sector` on: they must be answered before these change.
    pub fn overlapping(&mut self, sector: u64, sectors: u64) -> Vec<Request> {
        let overlaps = |request: &Request| match request.kind {
            Kind::Read { sector: start, bytes } => start < sector + sectors && sector < start + (bytes / 512) as u64,
            _ => false,
        };
        let (now, later) = self.reads.drain(..).partition(overlaps);
        self.reads = later;
        Vec::from(now)
    }
}

/// Tells whether a guest stands still.
pub struct Sleep {
    syscall: File,
    since: Option<Instant>,
}

impl Sleep {
    /// Watch the guest's main process.
    pub fn of(pid: u32) -> io::Result<Sleep> {
        Ok(Sleep { syscall: File::open(format!("/proc/{pid}/syscall"))?, since: None })
    }

    /// The guest did something.
    pub fn disturb(&mut self) {
        self.since = None;
    }

    /// Whether the guest has been idle at every look for long enough. Gives up the CPU if it is busy.
    pub fn is_sound(&mut self) -> bool {
        let mut start = [0; IDLE_SYSCALL.len()];
        let idle = matches!(self.syscall.read_at(&mut start, 0), Ok(n) if start[..n] == *IDLE_SYSCALL);
        if !idle {
            self.since = None;
            std::thread::yield_now();
            return false;
        }
        self.since.get_or_insert_with(Instant::now).elapsed() >= ASLEEP
    }
}
