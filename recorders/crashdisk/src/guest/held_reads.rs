//! Holds reads back until the guest stands still because it waits for one.
//!
//! Kernels read ahead: jbd2 fetches eight journal blocks that it may never use. A read that nobody waits for should not
//! decide anything, so a read of an undecided block is held until the guest sleeps. Then one held read is answered.
//! Reads that are still held when the observation arrives have influenced nothing. Answering a read too early costs
//! time but is not wrong: it makes one decision more, with the same outcome for each version.
//!
//! The oldest read is answered first, with one exception. Reads come last that were answered before without waking the
//! guest: ext4 reads inode tables ahead before it asks for the block that it waits for. One execution of a crash
//! interval is run to find such reads.

use std::collections::{HashSet, VecDeque};
use std::ops::Range;

use postcrash_wire::units::SECTOR_BYTES;

use crate::virtio::block::{Request, RequestKind};

#[derive(Default)]
pub struct HeldReads {
    reads: VecDeque<Request>,
    /// Start sectors of reads for which the guest did not wait.
    unawaited: HashSet<u64>,
    /// Start sector of the read that was answered last. None once the guest has done something since.
    answered: Option<u64>,
}

impl HeldReads {
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    pub fn hold(&mut self, request: Request) {
        self.reads.push_back(request);
    }

    /// The guest did something, so it had waited for the read that was answered last.
    pub fn awaited(&mut self) {
        self.answered = None;
    }

    /// Whether the guest waits for a read that starts at this sector, as far as has been seen.
    pub fn awaits(&self, sector: u64) -> bool {
        !self.unawaited.contains(&sector)
    }

    /// The read for which the guest most likely stands still.
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

    /// Take the reads of any of `sectors`. They must be answered before these sectors change.
    pub fn overlapping(&mut self, sectors: &Range<u64>) -> Vec<Request> {
        let overlaps = |request: &Request| match request.kind {
            RequestKind::Read { sector, bytes } => {
                sector < sectors.end && sectors.start < sector.saturating_add((bytes / SECTOR_BYTES) as u64)
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
