//! What is in flight on one disk, and what makes it stable.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;

use postcrash_wire::units::{blocks_of, BLOCK_SECTORS};

use crate::device::{DeviceModel, Order};
use crate::ground::Stable;
use crate::piece::{Piece, Source};

pub const UNWRITTEN: [Source; BLOCK_SECTORS as usize] = [Source::BASE; BLOCK_SECTORS as usize];

/// A write, discard or write-zeroes in flight.
pub struct InFlight {
    pub sector: u64,
    pub sectors: u64,
    /// Source of the first sector.
    pub source: Source,
    /// The flush that it comes behind, by its event: it persists only after all that had completed before. 0 for none.
    pub behind: usize,
    /// The event that completed it. None while the write is under way.
    pub completed: Option<usize>,
}

impl InFlight {
    pub fn blocks(&self) -> impl Iterator<Item = u64> {
        blocks_of(self.sector, self.sectors)
    }

    /// Put the write into `stable`. If it is `last` to persist, it goes over everything; if not, only over what was
    /// submitted earlier.
    pub fn stabilise(&self, stable: &mut Stable, last: bool) {
        for block in self.blocks() {
            let known = stable.entry(block).or_insert(UNWRITTEN);
            let start = (block * BLOCK_SECTORS).max(self.sector);
            for sector in start..((block + 1) * BLOCK_SECTORS).min(self.sector + self.sectors) {
                let source = self.source.sector(sector - self.sector);
                let known = &mut known[(sector % BLOCK_SECTORS) as usize];
                *known = if last { source } else { (*known).max(source) };
            }
        }
    }
}

/// A request that has not been completed.
pub struct OpenRequest {
    /// The event that submitted it.
    pub event: usize,
    /// Its disk.
    pub disk: usize,
    /// It is a flush or has one before it (PREFLUSH). That flush covers what had completed before `event`.
    pub flush: bool,
    pub fua: bool,
}

/// What is in flight on one disk. A write is identified by the event that submitted it.
pub struct Drive {
    model: &'static dyn DeviceModel,
    sectors: Range<u64>,
    pub in_flight: BTreeMap<usize, InFlight>,
    /// Writes in flight, by the event that completed each.
    pub completed: BTreeMap<usize, usize>,
    /// The flushes that writes in flight come behind: each flush may be done or not at the crash.
    pub waiting: BTreeSet<usize>,
}

impl Drive {
    pub fn new(model: &'static dyn DeviceModel, sectors: Range<u64>) -> Self {
        let (in_flight, completed, waiting) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Drive { model, sectors, in_flight, completed, waiting }
    }

    /// Writes in flight that had completed before `event`.
    pub fn completed_before(&self, event: usize) -> impl Iterator<Item = usize> + '_ {
        self.completed.range(..event).map(|(_, &write)| write)
    }

    /// Writes in flight that the end of `request` makes stable. If pieces are kept in order, these may make further
    /// writes stable.
    pub fn made_stable(&self, request: &OpenRequest) -> impl Iterator<Item = usize> + '_ {
        let covered = if request.flush && self.model.honours_flush() { request.event } else { 0 };
        let is_own = self.model.writes_through() || request.fua && self.model.honours_fua();
        let own = Some(request.event).filter(|_| is_own);
        self.completed_before(covered).chain(own.filter(|write| self.in_flight.contains_key(write)))
    }

    /// The next later stage, if the flush that a write in flight comes behind covers more than the stage `last` does.
    pub fn stage_after(&self, last: usize) -> Option<usize> {
        let more = |event: &usize| self.completed.range(last..*event).next().is_some();
        self.waiting.range(last..).copied().find(more)
    }

    /// Make `writes` stable. If writes persist in order, all that come before one of them become stable too.
    pub fn stabilise(&mut self, writes: Vec<usize>, stable: &mut Stable) {
        let order = self.model.order();
        let writes = match order {
            Order::Free => writes,
            Order::Submission => match writes.into_iter().max() {
                Some(last) => self.in_flight.range(..=last).map(|(&write, _)| write).collect(),
                None => Vec::new(),
            },
            Order::Completion => match writes.into_iter().filter_map(|write| self.in_flight[&write].completed).max() {
                Some(last) => self.completed_before(last + 1).collect(),
                None => Vec::new(),
            },
        };
        for event in writes {
            let Some(write) = self.in_flight.remove(&event) else { continue };
            if let Some(completed) = write.completed {
                self.completed.remove(&completed);
            }
            write.stabilise(stable, order != Order::Free);
        }
    }

    /// The writes in flight in `stage` that can persist, in the order in which they do. If there is no order, they come
    /// as they were submitted.
    fn in_order(&self, stage: usize) -> Box<dyn Iterator<Item = (usize, &InFlight)> + '_> {
        let writes = self.in_flight.iter().map(|(&event, write)| (event, write));
        match self.model.order() {
            Order::Free => Box::new(writes.filter(move |(_, write)| self.is_open(write, stage))),
            Order::Submission => Box::new(writes),
            Order::Completion => Box::new(self.completed.values().map(|&event| (event, &self.in_flight[&event]))),
        }
    }

    /// Whether a write is neither stable in `stage` nor still waiting for the flush before it.
    fn is_open(&self, write: &InFlight, stage: usize) -> bool {
        let waits = write.behind > stage && self.completed.range(stage..write.behind).next().is_some();
        !waits && write.completed.is_none_or(|completed| completed >= stage)
    }

    /// The writes in flight that no crash in `stage` keeps, by their events.
    pub fn absent(&self, stage: usize) -> impl Iterator<Item = usize> + '_ {
        let is_absent = move |write: &InFlight| match self.model.order() {
            Order::Free => write.completed.is_none_or(|completed| completed >= stage) && !self.is_open(write, stage),
            Order::Submission => false,
            Order::Completion => write.completed.is_none(),
        };
        self.in_flight.iter().filter(move |(_, write)| is_absent(write)).map(|(&event, _)| event)
    }

    /// The writes in flight in `stage` that the next stage keeps, if states of both are to be counted there.
    pub fn kept_next(&self, stage: usize) -> Option<HashSet<usize>> {
        let next = self.stage_after(stage).filter(|_| self.model.flush_orders())?;
        Some(self.completed.range(stage..next).map(|(_, &write)| write).collect())
    }

    /// Pieces in flight in `stage`.
    pub fn pieces(&self, stage: usize) -> impl Iterator<Item = Piece> + '_ {
        let (unit, start) = (self.model.atomic_unit_sectors(), self.sectors.start);
        self.in_order(stage).flat_map(move |(event, write)| {
            let (sector, source) = (write.sector, write.source);
            cut(sector - start..sector - start + write.sectors, unit).map(move |part| Piece {
                sector: start + part.start,
                sectors: part.end - part.start,
                source: source.sector(start + part.start - sector),
                event,
            })
        })
    }
}

/// Cut `sectors` at multiples of `unit`.
fn cut(sectors: Range<u64>, unit: u64) -> impl Iterator<Item = Range<u64>> {
    let mut at = sectors.start;
    std::iter::from_fn(move || {
        if at >= sectors.end {
            return None;
        }
        let end = ((at / unit + 1) * unit).min(sectors.end);
        let part = at..end;
        at = end;
        Some(part)
    })
}
