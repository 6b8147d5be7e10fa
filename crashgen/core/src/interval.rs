//! Crash intervals: the stretches of a recording between two events that make something stable.
//!
//! Within one interval only the latest instant is looked at: the crash states there include those of every
//! earlier instant, and the operations that had returned are the most, so every promise is at its strongest.
//!
//! The flush in a PREFLUSH write ends at a moment that the recording does not show: before its write starts. While such
//! writes are under way, one crash interval is handed out for each stage: none of those flushes is done, the first is,
//! the first two are, and so on. Each covers what the one before it covers, so no other combination adds a state.
//! Where pieces are kept in order there is one stage: a PREFLUSH write stands behind all that its flush covers.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use num_bigint::BigUint;
use num_traits::One;

use crate::component::{group, Component, TooManyVersions};
use crate::device::{DeviceModel, Order};
use crate::history::in_order;
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

    /// Its sectors, each with its source.
    pub fn sources(&self) -> impl Iterator<Item = (u64, Source)> + '_ {
        (0..self.sectors).map(|i| (self.sector + i, self.source.sector(i)))
    }

    /// Put the piece into `sources` (from sector `start` on) wherever nothing submitted later is stable.
    pub fn show(&self, sources: &mut [Source], stable: &[Source], start: u64) {
        for (sector, source) in self.sources() {
            let at = (sector - start) as usize;
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
    /// What is in flight, in submission order; where pieces are kept in another order, in that one.
    pub pieces: Vec<Piece>,
    /// Components with more than one version. The others decide nothing.
    pub components: Vec<Component>,
    /// Why the interval cannot be explored, if so.
    pub too_large: Option<TooManyVersions>,
    states: BigUint,
    by_sector: HashMap<u64, u32>,
}

impl Interval {
    /// How many crash states there are: choices of which pieces are kept.
    pub fn states(&self) -> BigUint {
        self.states.clone()
    }

    /// How many crash states agree with `choices` (component, version).
    pub fn covered(&self, choices: &[(u32, u32)]) -> BigUint {
        let mut free = self.states.clone();
        let mut count = BigUint::one();
        for &(component, version) in choices {
            let component = &self.components[component as usize];
            free /= &component.states;
            count *= &component.versions[version as usize].weight;
        }
        count * free
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
        let version = |(i, component): (usize, &Component)| component.lost(chosen.get(&(i as u32)).map_or(0, |&v| v));
        let mut lost: Vec<u32> = self.components.iter().enumerate().flat_map(version).collect();
        lost.sort_unstable();
        lost
    }

    /// How many writes a state that has `lost` these pieces keeps only in part.
    pub fn torn(&self, lost: &[u32]) -> usize {
        let mut pieces: HashMap<usize, (usize, usize)> = HashMap::new();
        self.pieces.iter().for_each(|piece| pieces.entry(piece.event).or_default().0 += 1);
        lost.iter().for_each(|&index| pieces.entry(self.pieces[index as usize].event).or_default().1 += 1);
        pieces.values().filter(|(all, lost)| (1..*all).contains(lost)).count()
    }
}

struct InFlight {
    id: u32,
    /// The event that completed it.
    completed: Option<usize>,
    fua: bool,
    pieces: Vec<Piece>,
}

impl InFlight {
    /// Put the write into `stable`: over everything if it is `last` to persist, else not over what was submitted later.
    fn stabilise(&self, stable: &mut Stable, last: bool) {
        for (sector, source) in self.pieces.iter().flat_map(Piece::sources) {
            let block = stable.entry(sector / BLOCK_SECTORS).or_insert([Source::BASE; 8]);
            let known = &mut block[(sector % BLOCK_SECTORS) as usize];
            *known = if last { source } else { (*known).max(source) };
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
            self.in_flight.iter().filter(|w| covered.contains(&w.id)).for_each(|w| w.stabilise(&mut stable, false));
            stable
        });
        self.index += 1;
        Some(self.build(self.index - 1, &covered))
    }

    /// For each stage of the PREFLUSH writes under way, the ids of the requests that their flushes have made stable.
    fn stages(&self) -> Vec<Vec<u32>> {
        let mut stages = vec![Vec::new()];
        if self.model.order() != Order::Free {
            return stages;
        }
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

    /// Writes in flight in the order in which they persist, those that can. In no order: as they were submitted.
    fn in_order(&self) -> Vec<&InFlight> {
        let mut writes: Vec<&InFlight> = self.in_flight.iter().collect();
        if self.model.order() == Order::Completion {
            writes.retain(|write| write.completed.is_some());
            writes.sort_by_key(|write| write.completed);
        }
        writes
    }

    /// Ids of the in-flight requests that `event` makes stable; if pieces are kept in order, more may become so with them.
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
        self.in_flight.push(InFlight { id, completed: None, fua, pieces });
    }

    fn completed(&self) -> Vec<u32> {
        self.in_flight.iter().filter(|w| w.completed.is_some()).map(|w| w.id).collect()
    }

    fn complete(&mut self, id: u32, event: &Event) {
        let stable = self.made_stable(event);
        if let Some(write) = self.in_flight.iter_mut().find(|w| w.id == id) {
            write.completed = Some(self.at);
        }
        self.flushes.remove(&id);
        self.stabilise(&stable);
    }

    /// Make the writes `ids` stable, and where writes persist in order, all that come before one of them.
    fn stabilise(&mut self, ids: &[u32]) {
        if ids.is_empty() {
            return;
        }
        let ordered = self.model.order() != Order::Free;
        let mut stable = std::mem::take(&mut self.stable);
        let writes = self.in_order();
        let count = writes.iter().rposition(|write| ids.contains(&write.id)).map_or(0, |last| last + 1);
        let kept = |write: &&&InFlight| ordered || ids.contains(&write.id);
        let kept: Vec<&InFlight> = writes[..count].iter().filter(kept).copied().collect();
        kept.iter().for_each(|write| write.stabilise(&mut stable, ordered));
        let ids: HashSet<u32> = kept.iter().map(|write| write.id).collect();
        self.stable = stable;
        self.in_flight.retain(|write| !ids.contains(&write.id));
        for covered in self.flushes.values_mut() {
            covered.retain(|id| !ids.contains(id));
        }
    }

    /// Pieces in flight in the stage in which the flushes of PREFLUSH writes have made `covered` stable.
    fn pieces(&self, covered: &[u32]) -> Vec<Piece> {
        let started = |write: &&InFlight| self.covered(write.id).len() <= covered.len();
        let open = |write: &&InFlight| !covered.contains(&write.id) && started(write);
        let in_order = self.in_order();
        let ordered = self.model.order() != Order::Free;
        let writes = in_order.into_iter().filter(|write| ordered || open(write));
        writes.flat_map(|write| write.pieces.iter().cloned()).collect()
    }

    /// The crash states of that stage.
    fn build(&self, index: u32, covered: &[u32]) -> Interval {
        let content = self.content();
        let pieces = self.pieces(covered);
        let (built, states): (Vec<_>, BigUint) = match self.model.order() {
            Order::Free => {
                let build = |members: &Vec<u32>| Component::build(members, &pieces, &content);
                (group(&pieces).iter().map(build).collect(), BigUint::one() << pieces.len())
            }
            Order::Submission | Order::Completion => {
                (vec![Ok(in_order(&pieces, &content))], BigUint::from(pieces.len() + 1))
            }
        };
        let mut components = Vec::new();
        let mut too_large = None;
        for component in built {
            match component {
                Ok(component) if component.versions.len() > 1 => components.push(component),
                Ok(_) => {}
                Err(error) => too_large = Some(error),
            }
        }
        let mut by_sector = HashMap::new();
        for (i, component) in (0..).zip(&components) {
            component.each_sector(|sector| {
                by_sector.insert(sector, i);
            });
        }
        let (event, started, returned) = (self.at, self.started, self.returned);
        Interval { index, event, started, returned, pieces, components, too_large, states, by_sector }
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
