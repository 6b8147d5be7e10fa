//! Crash intervals: the stretches of a recording between two events that make something stable.
//!
//! Within one interval only the latest instant is looked at: the crash states there include those of every
//! earlier instant, and the operations that had returned are the most, so every promise is at its strongest.
//!
//! The flush in a PREFLUSH write ends at a moment that the recording does not show: before its write starts. While such
//! writes are under way, one crash interval is handed out for each stage: none of those flushes is done, the first is,
//! the first two are, and so on. Each covers what the one before it covers, so no other combination adds a state.
//! Where pieces are kept in order there is one stage: a PREFLUSH write stands behind all that its flush covers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use num_bigint::BigUint;
use num_traits::One;

use crate::component::{groups, Component, TooManyVersions};
use crate::device::{DeviceModel, Order};
use crate::history::in_order;
use crate::mapped::release_pages;
use crate::recording::{Event, Recording};
use crate::view::{Content, Ground, Stable};
use crate::{BLOCK_SECTORS, SECTOR_BYTES};

/// Building components touches pages of recording and base image; after so many it is looked whether too many are
/// resident. One access may map a whole folio of the page cache, of a megabyte and more.
const COMPONENTS_BETWEEN_LOOKS: usize = 64;
const UNWRITTEN: [Source; BLOCK_SECTORS as usize] = [Source::BASE; BLOCK_SECTORS as usize];

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

    /// Source of the sector so many further on.
    pub(crate) fn sector(self, index: u64) -> Source {
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
    pub(crate) source: Source,
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
    /// Components with more than one version, by their first sector. The others decide nothing.
    pub components: Vec<Component>,
    /// Why the interval cannot be explored, if so.
    pub too_large: Option<TooManyVersions>,
    states: BigUint,
}

impl Interval {
    /// How many crash states there are: choices of which pieces are kept.
    pub fn states(&self) -> BigUint {
        self.states.clone()
    }

    /// How many crash states agree with `choices` (component, version).
    pub fn covered(&self, choices: &[(u32, u32)]) -> BigUint {
        let (mut chosen, mut count) = (BigUint::one(), BigUint::one());
        for &(component, version) in choices {
            let component = &self.components[component as usize];
            chosen *= component.states();
            count *= component.weight(version);
        }
        count * (&self.states / chosen)
    }

    /// How many different disk contents there are.
    pub fn contents(&self) -> BigUint {
        let mut components_with: BTreeMap<usize, u32> = BTreeMap::new();
        for component in &self.components {
            *components_with.entry(component.versions.len()).or_default() += 1;
        }
        components_with.into_iter().map(|(versions, count)| BigUint::from(versions).pow(count)).product()
    }

    pub fn component_at(&self, sector: u64) -> Option<u32> {
        let index = self.components.partition_point(|component| component.sector <= sector).checked_sub(1)?;
        self.components[index].has(sector).then_some(index as u32)
    }

    /// Pieces that a state with `choices` has lost; components without a choice keep all.
    pub fn lost(&self, choices: &[(u32, u32)]) -> Vec<u32> {
        let lost = |&(component, version): &(u32, u32)| self.components[component as usize].lost(version);
        let mut lost: Vec<u32> = choices.iter().flat_map(lost).collect();
        lost.sort_unstable();
        lost
    }

    /// How many writes a state that has `lost` these pieces keeps only in part.
    pub fn torn(&self, lost: &[u32]) -> usize {
        let event = |index: usize| self.pieces[index].event;
        let mut writes: HashMap<usize, (usize, usize)> = HashMap::new();
        for at in lost.iter().map(|&index| index as usize) {
            // The pieces of a write stand side by side.
            let all = || {
                let before = (0..at).rev().take_while(|&other| event(other) == event(at)).count();
                before + (at..self.pieces.len()).take_while(|&other| event(other) == event(at)).count()
            };
            writes.entry(event(at)).or_insert_with(|| (all(), 0)).1 += 1;
        }
        writes.values().filter(|(all, lost)| lost < all).count()
    }
}

/// A write, discard or write-zeroes in flight.
struct InFlight {
    sector: u64,
    sectors: u64,
    /// Source of the first sector.
    source: Source,
    /// The event that completed it.
    completed: Option<usize>,
}

impl InFlight {
    fn blocks(&self) -> impl Iterator<Item = u64> {
        self.sector / BLOCK_SECTORS..(self.sector + self.sectors).div_ceil(BLOCK_SECTORS)
    }

    /// Put the write into `stable`: over everything if it is `last` to persist, else not over what was submitted later.
    fn stabilise(&self, stable: &mut Stable, last: bool) {
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
struct Request {
    /// The event that submitted it.
    event: usize,
    /// It is a flush or has one before it (PREFLUSH): one that covers what had completed before `event`.
    flush: bool,
    fua: bool,
}

/// Walks a recording from crash interval to crash interval. Writes are told apart by the events that submitted them.
pub struct Cursor<'a> {
    recording: &'a Recording,
    ground: &'a dyn Ground,
    model: &'static dyn DeviceModel,
    at: usize,
    index: u32,
    stable: Stable,
    in_flight: BTreeMap<usize, InFlight>,
    /// Writes in flight by the event that completed them.
    completed: BTreeMap<usize, usize>,
    /// Requests under way by their id.
    under_way: HashMap<u32, Request>,
    /// PREFLUSH writes under way that stand behind what their flush covers.
    waiting: BTreeSet<usize>,
    /// The stage handed out last of the crash before event `at`: what had completed before this event is stable in it.
    stage: Option<usize>,
    /// What the blocks that are stable only in that stage were before.
    before_stage: Stable,
    durable: bool,
    started: u32,
    returned: u32,
}

impl<'a> Cursor<'a> {
    pub fn new(recording: &'a Recording, ground: &'a dyn Ground, model: &'static dyn DeviceModel) -> Self {
        Cursor {
            recording,
            ground,
            model,
            at: 0,
            index: 0,
            stable: Stable::new(),
            in_flight: BTreeMap::new(),
            completed: BTreeMap::new(),
            under_way: HashMap::new(),
            waiting: BTreeSet::new(),
            stage: None,
            before_stage: Stable::new(),
            durable: false,
            started: 0,
            returned: 0,
        }
    }

    /// Ground, recorded bytes and what is stable in the interval handed out last.
    pub fn content(&self) -> Content<'_> {
        Content { ground: self.ground, recorded: self.recording.bytes(), stable: &self.stable }
    }

    /// The next crash interval, or none after the last.
    pub fn next_interval(&mut self) -> Option<Interval> {
        let events = self.recording.events();
        while self.at < events.len() {
            if self.durable && self.made_stable(&events[self.at]).next().is_some() {
                if let Some(interval) = self.next_stage() {
                    return Some(interval);
                }
            }
            self.leave_stage();
            self.apply(&events[self.at]);
            self.at += 1;
        }
        self.durable.then(|| self.next_stage()).flatten()
    }

    /// The first stage has no flush of a PREFLUSH write done; each later one makes stable more than the one before it.
    fn next_stage(&mut self) -> Option<Interval> {
        let stage = match self.stage {
            None => 0,
            Some(last) => {
                let more = |event: &usize| self.completed.range(last..*event).next().is_some();
                self.waiting.range(last..).copied().find(more)?
            }
        };
        for event in self.completed.range(self.stage.unwrap_or(0)..stage).map(|(_, event)| event) {
            let write = &self.in_flight[event];
            for block in write.blocks() {
                let known = self.stable.get(&block).copied().unwrap_or(UNWRITTEN);
                self.before_stage.entry(block).or_insert(known);
            }
            write.stabilise(&mut self.stable, false);
        }
        self.stage = Some(stage);
        self.index += 1;
        Some(self.build(self.index - 1, stage))
    }

    fn leave_stage(&mut self) {
        self.stage = None;
        self.stable.extend(self.before_stage.drain());
    }

    /// Writes in flight that had completed before `event`.
    fn completed_before(&self, event: usize) -> impl Iterator<Item = usize> + '_ {
        self.completed.range(..event).map(|(_, &write)| write)
    }

    /// Writes in flight that `event` makes stable; if pieces are kept in order, more may become so with them.
    fn made_stable(&self, event: &Event) -> impl Iterator<Item = usize> + '_ {
        let request = match *event {
            Event::Complete { id } => self.under_way.get(&id),
            _ => None,
        };
        let flush = request.filter(|request| request.flush && self.model.honours_flush());
        let fua = request.filter(|request| request.fua && self.model.honours_fua());
        let own = fua.map(|request| request.event).filter(|write| self.in_flight.contains_key(write));
        self.completed_before(flush.map_or(0, |request| request.event)).chain(own)
    }

    fn apply(&mut self, event: &Event) {
        let at = self.at;
        match *event {
            Event::Write { id, sector, ref data, fua, preflush } => {
                if preflush && self.model.order() == Order::Free && self.model.honours_flush() {
                    self.waiting.insert(at);
                }
                self.under_way.insert(id, Request { event: at, flush: preflush, fua });
                self.submit(sector, (data.len() / SECTOR_BYTES) as u64, Source::written(data.start));
            }
            Event::Zero { id, sector, sectors, order, .. } => {
                self.under_way.insert(id, Request { event: at, flush: false, fua: false });
                self.submit(sector, sectors, Source::zeroed(order));
            }
            Event::Flush { id } => {
                self.under_way.insert(id, Request { event: at, flush: true, fua: false });
            }
            Event::Complete { id } => self.complete(id, event),
            Event::Started { .. } => self.started += 1,
            Event::Returned { .. } => self.returned += 1,
            Event::Durable => {
                self.durable = true;
                self.stabilise(self.completed_before(at).collect());
            }
        }
    }

    fn submit(&mut self, sector: u64, sectors: u64, source: Source) {
        self.in_flight.insert(self.at, InFlight { sector, sectors, source, completed: None });
    }

    fn complete(&mut self, id: u32, event: &Event) {
        let stable = self.made_stable(event).collect();
        let Some(request) = self.under_way.remove(&id) else { return };
        if let Some(write) = self.in_flight.get_mut(&request.event) {
            write.completed = Some(self.at);
            self.completed.insert(self.at, request.event);
        }
        self.waiting.remove(&request.event);
        self.stabilise(stable);
    }

    /// Make `writes` stable, and where writes persist in order, all that come before one of them.
    fn stabilise(&mut self, writes: Vec<usize>) {
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
            write.stabilise(&mut self.stable, order != Order::Free);
        }
    }

    /// Writes in flight in `stage`, in the order in which they persist, those that can. In no order: as they were submitted.
    fn in_order(&self, stage: usize) -> Box<dyn Iterator<Item = (usize, &InFlight)> + '_> {
        let writes = self.in_flight.iter().map(|(&event, write)| (event, write));
        match self.model.order() {
            Order::Free => Box::new(writes.filter(move |(event, write)| self.is_open(*event, write, stage))),
            Order::Submission => Box::new(writes),
            Order::Completion => Box::new(self.completed.values().map(|&event| (event, &self.in_flight[&event]))),
        }
    }

    /// Whether a write is neither stable in `stage` nor still waiting for the flush before it.
    fn is_open(&self, event: usize, write: &InFlight, stage: usize) -> bool {
        match write.completed {
            Some(completed) => completed >= stage,
            None if event > stage && self.waiting.contains(&event) => {
                self.completed.range(stage..event).next().is_none()
            }
            None => true,
        }
    }

    /// Pieces in flight in `stage`.
    fn pieces(&self, stage: usize) -> Vec<Piece> {
        let unit = self.model.atomic_unit_sectors();
        let pieces = |(event, write): (usize, &InFlight)| {
            let (sector, source) = (write.sector, write.source);
            cut(sector..sector + write.sectors, unit).map(move |part| Piece {
                sector: part.start,
                sectors: part.end - part.start,
                source: source.sector(part.start - sector),
                event,
            })
        };
        self.in_order(stage).flat_map(pieces).collect()
    }

    /// The crash states of that stage.
    fn build(&self, index: u32, stage: usize) -> Interval {
        let content = self.content();
        let look = || release_pages(&[self.recording.mapped(), self.ground.mapped()]);
        let pieces = self.pieces(stage);
        let mut components = Vec::new();
        let mut too_large = None;
        let states = match self.model.order() {
            Order::Free => {
                for (number, group) in groups(&pieces).enumerate() {
                    if number % COMPONENTS_BETWEEN_LOOKS == 0 {
                        look();
                    }
                    match Component::build(&group, &pieces, &content) {
                        Ok(component) => components.extend(component.filter(|known| known.versions.len() > 1)),
                        Err(error) => too_large = Some(error),
                    }
                }
                BigUint::one() << pieces.len()
            }
            Order::Submission | Order::Completion => {
                let component = in_order(&pieces, &content, &look);
                components.extend(Some(component).filter(|known| known.versions.len() > 1));
                BigUint::from(pieces.len() + 1)
            }
        };
        components.shrink_to_fit();
        let (event, started, returned) = (self.at, self.started, self.returned);
        Interval { index, event, started, returned, pieces, components, too_large, states }
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
