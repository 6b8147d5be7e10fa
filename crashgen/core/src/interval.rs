//! Crash intervals: the stretches of a recording between two events that make something stable.
//!
//! Within one interval only the latest instant is looked at: the crash states there include those of every
//! earlier instant, and the operations that had returned are the most, so every promise is at its strongest.
//!
//! The flush in a PREFLUSH write ends at a moment that the recording does not show: before its write starts. While such
//! writes are under way, one crash interval is handed out for each stage: none of those flushes is done, the first is,
//! the first two are, and so on. Each covers what the one before it covers, so no other combination adds a state.

use std::collections::HashMap;
use std::ops::Range;

use num_bigint::BigUint;
use num_traits::One;

use crate::component::{group, Component, TooManyVersions};
use crate::device::DeviceModel;
use crate::recording::{Event, Recording};
use crate::view::{Base, Content, Stable};
use crate::{BLOCK_SECTORS, SECTOR_BYTES};

/// Where the content of a sector comes from. Sources compare in submission order; the base image is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source(u64);

impl Source {
    pub const BASE: Source = Source(0);

    fn written(start: usize) -> Source {
        Source((start as u64) << 1)
    }

    fn zeroed(order: usize) -> Source {
        Source((order as u64) << 1 | 1)
    }

    /// Start of the sector's bytes in the recording; none for zeros and for the base image.
    pub fn data(self) -> Option<usize> {
        (self.0 & 1 == 0 && self != Source::BASE).then_some((self.0 >> 1) as usize)
    }

    fn sector(self, index: u64) -> Source {
        match self.data() {
            Some(start) => Source::written(start + index as usize * SECTOR_BYTES),
            None => self,
        }
    }
}

/// The part of a write that persists whole or not at all.
#[derive(Debug, Clone)]
pub struct Piece {
    pub sector: u64,
    pub sectors: u64,
    /// Source of the first sector.
    source: Source,
    /// Index of the submitting event in the recording.
    pub event: usize,
}

impl Piece {
    pub fn end(&self) -> u64 {
        self.sector + self.sectors
    }

    /// Put the piece into `sources` (from sector `start` on) wherever nothing submitted later is stable.
    pub fn show(&self, sources: &mut [Source], stable: &[Source], start: u64) {
        for i in 0..self.sectors {
            let at = (self.sector + i - start) as usize;
            let source = self.source.sector(i);
            if source > stable[at] {
                sources[at] = source;
            }
        }
    }
}

/// The crash states of one interval, at its latest instant.
pub struct Interval {
    pub index: u32,
    /// The crash comes just before this event of the recording (the number of events: after its end). Intervals
    /// that share it differ in how many PREFLUSH writes under way have had their flush.
    pub event: usize,
    /// Operations (set-up included) that had been started, and that had returned.
    pub started: u32,
    pub returned: u32,
    pub pieces: Vec<Piece>,
    /// Components with more than one version. The others decide nothing.
    pub components: Vec<Component>,
    /// Why the interval cannot be explored, if so.
    pub too_large: Option<TooManyVersions>,
    by_sector: HashMap<u64, u32>,
}

impl Interval {
    /// How many crash states there are: assignments of keep or lose to the pieces.
    pub fn states(&self) -> BigUint {
        BigUint::one() << self.pieces.len()
    }

    /// How many crash states agree with `choices` (component, version).
    pub fn covered(&self, choices: &[(u32, u32)]) -> BigUint {
        let mut free = self.pieces.len();
        let mut count = BigUint::one();
        for &(component, version) in choices {
            let component = &self.components[component as usize];
            free -= component.pieces as usize;
            count *= &component.versions[version as usize].weight;
        }
        count << free
    }

    /// How many different disk contents there are.
    pub fn contents(&self) -> BigUint {
        self.components.iter().map(|component| BigUint::from(component.versions.len())).product()
    }

    pub fn component_at(&self, sector: u64) -> Option<u32> {
        self.by_sector.get(&sector).copied()
    }

    /// Pieces that a state with `choices` has lost; components without a choice keep all they can.
    pub fn lost(&self, choices: &[(u32, u32)]) -> Vec<u32> {
        let chosen: HashMap<u32, u32> = choices.iter().copied().collect();
        let version = |(i, component): (usize, &Component)| {
            component.versions[chosen.get(&(i as u32)).map_or(0, |&v| v as usize)].lost.clone()
        };
        let mut lost: Vec<u32> = self.components.iter().enumerate().flat_map(version).collect();
        lost.sort_unstable();
        lost
    }
}

struct InFlight {
    id: u32,
    completed: bool,
    fua: bool,
    pieces: Vec<Piece>,
}

impl InFlight {
    /// Put the write into `stable`, but not over what was submitted later.
    fn stabilise(&self, stable: &mut Stable) {
        for piece in &self.pieces {
            for i in 0..piece.sectors {
                let sector = piece.sector + i;
                let block = stable.entry(sector / BLOCK_SECTORS).or_insert([Source::BASE; 8]);
                let known = &mut block[(sector % BLOCK_SECTORS) as usize];
                *known = (*known).max(piece.source.sector(i));
            }
        }
    }
}

/// Walks a recording from crash interval to crash interval.
pub struct Cursor<'a> {
    recording: &'a Recording,
    base: &'a Base,
    model: &'static dyn DeviceModel,
    at: usize,
    /// How many stages of the crash before event `at` have been handed out.
    stages_done: usize,
    index: u32,
    stable: Stable,
    /// What is stable in the stage handed out last, where that is more than `stable`.
    stage_stable: Option<Stable>,
    in_flight: Vec<InFlight>,
    /// Flushes (and writes with PREFLUSH) under way: the ids of the requests in flight that they cover.
    flushes: HashMap<u32, Vec<u32>>,
    durable: bool,
    started: u32,
    returned: u32,
}

impl<'a> Cursor<'a> {
    pub fn new(recording: &'a Recording, base: &'a Base, model: &'static dyn DeviceModel) -> Self {
        Cursor {
            recording,
            base,
            model,
            at: 0,
            stages_done: 0,
            index: 0,
            stable: Stable::new(),
            stage_stable: None,
            in_flight: Vec::new(),
            flushes: HashMap::new(),
            durable: false,
            started: 0,
            returned: 0,
        }
    }

    /// Base, recorded bytes and what is stable in the interval handed out last.
    pub fn content(&self) -> Content<'_> {
        let stable = self.stage_stable.as_ref().unwrap_or(&self.stable);
        Content { base: self.base, recorded: self.recording.bytes(), stable }
    }

    /// The next crash interval, or none after the last.
    pub fn next_interval(&mut self) -> Option<Interval> {
        let events = self.recording.events();
        while self.at < events.len() {
            if self.durable && !self.made_stable(&events[self.at]).is_empty() {
                if let Some(interval) = self.next_stage() {
                    return Some(interval);
                }
            }
            self.apply(&events[self.at]);
            self.at += 1;
            self.stages_done = 0;
            self.stage_stable = None;
        }
        self.durable.then(|| self.next_stage()).flatten()
    }

    fn next_stage(&mut self) -> Option<Interval> {
        let covered = self.stages().into_iter().nth(self.stages_done)?;
        self.stages_done += 1;
        self.stage_stable = (!covered.is_empty()).then(|| {
            let mut stable = self.stable.clone();
            self.in_flight.iter().filter(|w| covered.contains(&w.id)).for_each(|w| w.stabilise(&mut stable));
            stable
        });
        self.index += 1;
        Some(self.build(self.index - 1, &covered))
    }

    /// For each stage of the PREFLUSH writes under way, the ids of the requests that their flushes have made stable.
    fn stages(&self) -> Vec<Vec<u32>> {
        let mut stages = vec![Vec::new()];
        for write in &self.in_flight {
            let covered = self.covered(write.id);
            if covered.len() > stages[stages.len() - 1].len() {
                stages.push(covered.to_vec());
            }
        }
        stages
    }

    /// Ids of the in-flight requests that the flush (or the flush in the PREFLUSH write) `id` makes stable.
    fn covered(&self, id: u32) -> &[u32] {
        self.flushes.get(&id).filter(|_| self.model.honours_flush()).map_or(&[], |ids| ids)
    }

    /// Ids of the in-flight requests that `event` makes stable.
    fn made_stable(&self, event: &Event) -> Vec<u32> {
        let Event::Complete { id } = *event else { return Vec::new() };
        let covered = self.covered(id);
        let fua = self.model.honours_fua();
        let stable = |w: &&InFlight| (fua && w.fua && w.id == id) || covered.contains(&w.id);
        self.in_flight.iter().filter(stable).map(|w| w.id).collect()
    }

    fn apply(&mut self, event: &Event) {
        match *event {
            Event::Write { id, sector, ref data, fua, preflush } => {
                if preflush {
                    self.flushes.insert(id, self.completed());
                }
                self.submit(id, sector, (data.len() / SECTOR_BYTES) as u64, Source::written(data.start), fua);
            }
            Event::Zero { id, sector, sectors, order, .. } => {
                self.submit(id, sector, sectors, Source::zeroed(order), false);
            }
            Event::Flush { id } => {
                self.flushes.insert(id, self.completed());
            }
            Event::Complete { id } => self.complete(id, event),
            Event::Started { .. } => self.started += 1,
            Event::Returned { .. } => self.returned += 1,
            Event::Durable => {
                self.durable = true;
                let ids = self.completed();
                self.stabilise(&ids);
            }
        }
    }

    fn submit(&mut self, id: u32, sector: u64, sectors: u64, source: Source, fua: bool) {
        let unit = self.model.atomic_unit_sectors();
        let pieces = cut(sector..sector + sectors, unit)
            .map(|part| Piece {
                sector: part.start,
                sectors: part.end - part.start,
                source: source.sector(part.start - sector),
                event: self.at,
            })
            .collect();
        self.in_flight.push(InFlight { id, completed: false, fua, pieces });
    }

    fn completed(&self) -> Vec<u32> {
        self.in_flight.iter().filter(|w| w.completed).map(|w| w.id).collect()
    }

    fn complete(&mut self, id: u32, event: &Event) {
        let stable = self.made_stable(event);
        if let Some(write) = self.in_flight.iter_mut().find(|w| w.id == id) {
            write.completed = true;
        }
        self.flushes.remove(&id);
        self.stabilise(&stable);
    }

    fn stabilise(&mut self, ids: &[u32]) {
        let stable = &mut self.stable;
        self.in_flight.retain(|write| {
            let stays = !ids.contains(&write.id);
            if !stays {
                write.stabilise(stable);
            }
            stays
        });
        for covered in self.flushes.values_mut() {
            covered.retain(|id| !ids.contains(id));
        }
    }

    /// The crash states of the stage in which the flushes of PREFLUSH writes have made `covered` stable.
    fn build(&self, index: u32, covered: &[u32]) -> Interval {
        let started = |write: &&InFlight| self.covered(write.id).len() <= covered.len();
        let in_flight = self.in_flight.iter().filter(|write| !covered.contains(&write.id)).filter(started);
        let pieces: Vec<Piece> = in_flight.flat_map(|write| write.pieces.iter().cloned()).collect();
        let content = self.content();
        let mut components = Vec::new();
        let mut too_large = None;
        for members in group(&pieces) {
            match Component::build(&members, &pieces, &content) {
                Ok(component) if component.versions.len() > 1 => components.push(component),
                Ok(_) => {}
                Err(error) => too_large = Some(error),
            }
        }
        let mut by_sector = HashMap::new();
        for (i, component) in components.iter().enumerate() {
            by_sector.extend((component.sector..component.sector + component.sectors).map(|s| (s, i as u32)));
        }
        Interval {
            index,
            event: self.at,
            started: self.started,
            returned: self.returned,
            pieces,
            components,
            too_large,
            by_sector,
        }
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
