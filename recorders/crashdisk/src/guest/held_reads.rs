//! Reads that are held back until the guest stands still for one.
//!
//! Kernels read ahead: jbd2 fetches eight journal blocks that it may never look at. A read that nobody waits for
//! should not decide anything, so a read of an undecided block is kept until the guest sleeps; then one is answered.
//! What is still held when the observation arrives has influenced nothing. Answering one too early costs time, never
//! truth: a decision more, with the same outcome on both sides.
//!
//! Which one? The oldest, but those last that were answered before and the guest just slept on: ext4 reads ahead inode
//! tables before it asks for the block that it waits for. One execution of a crash interval is run to learn that.

use std::collections::{HashSet, VecDeque};

use crate::virtio::block::{Request, RequestKind};

#[derive(Default)]
pub struct HeldReads {
    reads: VecDeque<Request>,
    /// Start sectors of reads that the guest did not wait for.
    unawaited: HashSet<u64>,
    /// Start sector of the last read that was answered, until the guest does something.
    answered: Option<u64>,
}

impl HeldReads {
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    pub fn hold(&mut self, request: Request) {
        self.reads.push_back(request);
    }

    /// The guest did something: it had waited for the read that was answered last.
    pub fn awaited(&mut self) {
        self.answered = None;
    }

    /// Whether the guest waits for a read that starts at that sector, as far as was seen.
    pub fn awaits(&self, sector: u64) -> bool {
        !self.unawaited.contains(&sector)
    }

    /// The read that the guest is most likely to stand still for.
    pub fn next(&mut self) -> Option<Request> {
        self.unawaited.extend(self.answered.take());
        let awaited = |request: &Request| start(request).is_none_or(|sector| self.awaits(sector));
        let position = self.reads.iter().position(awaited).unwrap_or(0);
        let request = self.reads.remove(position)?;
        self.answered = start(&request);
        Some(request)
    }

    /// All reads, oldest first.
    pub fn take_all(&mut self) -> Vec<Request> {
        self.answered = None;
        self.reads.drain(..).collect()
    }

    /// Reads of any of `sectors` from `sector` on: they must be answered before these change.
    pub fn overlapping(&mut self, sector: u64, sectors: u64) -> Vec<Request> {
        let overlaps = |request: &Request| match request.kind {
            RequestKind::Read { sector: start, bytes } => {
                start < sector + sectors && sector < start + (bytes / 512) as u64
            }
            _ => false,
        };
        let (now, later) = self.reads.drain(..).partition(overlaps);
        self.reads = later;
        Vec::from(now)
    }
}

fn start(request: &Request) -> Option<u64> {
    match request.kind {
        RequestKind::Read { sector, .. } => Some(sector),
        _ => None,
    }
}
