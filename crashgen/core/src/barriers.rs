//! For drives on which a flush orders and does not persist: the barrier of each write, and the instants of the crashes.
//!
//! `device/barrier.rs` has the rules.

use std::collections::HashMap;

use crate::interval::Instant;
use crate::recording::{Event, Recording};

/// Known for all events of a recording before the walk through it begins.
pub(crate) struct Barriers {
    /// For each event that submits a write, the event that submitted its barrier; 0 if it has none.
    of: Vec<usize>,
    /// For each event, the earliest barrier of the writes that are submitted from there on. MAX if there are none.
    earliest: Vec<usize>,
    /// The instants at which a crash is judged: just before each mark of an operation, and at the end.
    instants: Vec<Instant>,
}

impl Barriers {
    pub fn new(recording: &Recording) -> Barriers {
        let (of, events) = (barriers(recording), recording.events());
        let mut earliest = vec![usize::MAX; events.len() + 1];
        for (at, event) in events.iter().enumerate().rev() {
            let writes = matches!(event, Event::Write { .. } | Event::Zero { .. });
            earliest[at] = if writes { earliest[at + 1].min(of[at]) } else { earliest[at + 1] };
        }
        Barriers { of, earliest, instants: instants(events) }
    }

    /// The barrier of the write that `event` submits.
    pub fn of(&self, event: usize) -> usize {
        self.of[event]
    }

    /// Whether no write that `event` or a later one submits has a barrier before `barrier`.
    pub fn is_past(&self, barrier: usize, event: usize) -> bool {
        self.earliest[event] >= barrier
    }

    /// The instants from just before `event` on.
    pub fn instants_from(&self, event: usize) -> &[Instant] {
        &self.instants[self.instants.partition_point(|instant| instant.event < event)..]
    }
}

fn barriers(recording: &Recording) -> Vec<usize> {
    let (disks, events) = (recording.disks(), recording.events());
    // Flushes under way, with their disks.
    let mut flushes: HashMap<u32, (usize, usize)> = HashMap::new();
    let mut last = vec![0; disks.len()];
    let mut of = vec![0; events.len()];
    for (at, event) in events.iter().enumerate() {
        match *event {
            Event::Write { id, sector, preflush: true, .. } => {
                flushes.insert(id, (disks.of(sector), at));
                of[at] = at;
            }
            Event::Write { sector, .. } | Event::Zero { sector, .. } => of[at] = last[disks.of(sector)],
            Event::Flush { id, disk } => {
                flushes.insert(id, (disk as usize, at));
            }
            Event::Complete { id } => {
                if let Some((disk, flush)) = flushes.remove(&id) {
                    last[disk] = flush.max(last[disk]);
                }
            }
            Event::Started { .. } | Event::Returned { .. } | Event::Durable => {}
        }
    }
    of
}

fn instants(events: &[Event]) -> Vec<Instant> {
    let mut instant = Instant { event: 0, started: 0, returned: 0 };
    let mut instants = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let before = Instant { event: at, ..instant };
        match event {
            Event::Started { .. } => instant.started += 1,
            Event::Returned { .. } => instant.returned += 1,
            _ => continue,
        }
        instants.push(before);
    }
    instants.push(Instant { event: events.len(), ..instant });
    instants
}
