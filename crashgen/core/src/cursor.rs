//! The walk through a recording, from crash interval to crash interval.
//!
//! A crash can come at any instant. What the operations had promised by then depends on which of them had returned, and
//! which one had started and may excuse something. Between two events that make something stable the crash states only
//! grow, because more is submitted. So among the instants at which the same operations had started and returned, the
//! latest one has all crash states of the others, and only this one is examined. An interval is handed out before each
//! event that makes something stable, and before each mark of an operation. Nothing is submitted between marks in a
//! row, so they are instants of one interval, and its crash states count for each of them.
//!
//! A PREFLUSH write flushes before it starts writing. The recording does not show when this flush ends. While such
//! writes are under way, one crash interval is handed out for each stage: no flush is done, the first is done, the
//! first two are done, and so on. Each stage covers what the one before it covers, so no other combination adds a
//! state. In a model that keeps pieces in order there is one stage, because a PREFLUSH write comes after everything
//! that its flush covers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use num_bigint::BigUint;
use num_traits::One;
use postcrash_wire::units::{blocks_of, BLOCK_SECTORS, SECTOR_BYTES};

use crate::component::{groups, Component};
use crate::device::{DeviceModel, Order};
use crate::ground::{Content, Ground, Stable};
use crate::interval::{Instant, Interval};
use crate::mapped::release_pages;
use crate::piece::{Piece, Source};
use crate::recording::{Event, Recording};

/// Check the resident memory after this many components. Building them touches pages of recording and base image, and
/// one access may map a whole folio of the page cache, of a megabyte and more.
const COMPONENTS_BETWEEN_LOOKS: usize = 64;
const UNWRITTEN: [Source; BLOCK_SECTORS as usize] = [Source::BASE; BLOCK_SECTORS as usize];

/// A write, discard or write-zeroes in flight.
struct InFlight {
    sector: u64,
    sectors: u64,
    /// Source of the first sector.
    source: Source,
    /// The event that completed it. None while the write is under way.
    completed: Option<usize>,
}

impl InFlight {
    fn blocks(&self) -> impl Iterator<Item = u64> {
        blocks_of(self.sector, self.sectors)
    }

    /// Put the write into `stable`. If it is `last` to persist, it goes over everything; if not, only over what was
    /// submitted earlier.
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
struct OpenRequest {
    /// The event that submitted it.
    event: usize,
    /// It is a flush or has one before it (PREFLUSH). That flush covers what had completed before `event`.
    flush: bool,
    fua: bool,
}

/// Walks a recording from crash interval to crash interval. A write is identified by the event that submitted it.
pub struct Cursor<'a> {
    recording: &'a Recording,
    ground: &'a dyn Ground,
    model: &'static dyn DeviceModel,
    at: usize,
    index: u32,
    stable: Stable,
    in_flight: BTreeMap<usize, InFlight>,
    /// Writes in flight, by the event that completed each.
    completed: BTreeMap<usize, usize>,
    /// Requests under way by their id.
    under_way: HashMap<u32, OpenRequest>,
    /// PREFLUSH writes under way that persist only after what their flush covers.
    waiting: BTreeSet<usize>,
    /// The stage that was handed out last for the crash before event `at`: in this stage, what had completed before
    /// this event is stable.
    stage: Option<usize>,
    /// The blocks that are stable only in that stage, as they were before it.
    before_stage: Stable,
    durable: bool,
    started: u32,
    returned: u32,
    /// Instants of the interval handed out last.
    instants: Vec<Instant>,
    /// Crashes just before the events that precede this one have been handed out.
    handed_out: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(recording: &'a Recording, ground: &'a dyn Ground, model: &'static dyn DeviceModel) -> Self {
        Cursor {
            recording,
            ground,
            model,
            at: 0,
            index: 0,
            stable: Stable::default(),
            in_flight: BTreeMap::new(),
            completed: BTreeMap::new(),
            under_way: HashMap::new(),
            waiting: BTreeSet::new(),
            stage: None,
            before_stage: Stable::default(),
            durable: false,
            started: 0,
            returned: 0,
            instants: Vec::new(),
            handed_out: 0,
        }
    }

    /// Ground, recorded bytes, and what is stable in the interval that was handed out last.
    pub fn content(&self) -> Content<'_> {
        Content { ground: self.ground, recording: self.recording.bytes(), stable: &self.stable }
    }

    /// The next crash interval, or none after the last.
    pub fn next_interval(&mut self) -> Option<Interval> {
        loop {
            let event = self.recording.events().get(self.at);
            if self.stage.is_some() || self.is_handed_out(event) {
                if let Some(interval) = self.next_stage() {
                    return Some(interval);
                }
            }
            self.leave_stage();
            self.apply(event?);
            self.at += 1;
        }
    }

    /// Whether crashes just before the next event are handed out. None stands for the end of the recording.
    fn is_handed_out(&self, event: Option<&Event>) -> bool {
        let ends = match event {
            None | Some(Event::Started { .. } | Event::Returned { .. }) => true,
            Some(event) => self.made_stable(event).next().is_some(),
        };
        self.durable && self.at >= self.handed_out && ends
    }

    /// The instants that have the crash states of this one: those before the marks that come next. The instant after
    /// these marks belongs to a later interval, which has these crash states too, unless the event after the marks
    /// makes something stable.
    fn instants(&self) -> Vec<Instant> {
        let mut instant = Instant { event: self.at, started: self.started, returned: self.returned };
        let mut instants = vec![instant];
        for event in &self.recording.events()[self.at..] {
            match event {
                Event::Started { .. } => instant.started += 1,
                Event::Returned { .. } => instant.returned += 1,
                _ => break,
            }
            instant.event += 1;
            instants.push(instant);
        }
        let next = self.recording.events().get(instant.event);
        if instants.len() > 1 && next.is_some_and(|event| self.made_stable(event).next().is_none()) {
            instants.pop();
        }
        instants
    }

    /// In the first stage, no PREFLUSH write has its flush done. Each later stage makes more stable than the one before
    /// it.
    fn next_stage(&mut self) -> Option<Interval> {
        if self.stage.is_none() {
            self.instants = self.instants();
            self.handed_out = self.instants.last().map_or(0, |instant| instant.event + 1);
        }
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

    /// Writes in flight that `event` makes stable. If pieces are kept in order, these may make further writes stable.
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
                self.under_way.insert(id, OpenRequest { event: at, flush: preflush, fua });
                self.submit(sector, (data.len() / SECTOR_BYTES) as u64, Source::written(data.start));
            }
            Event::Zero { id, sector, sectors, order, .. } => {
                self.under_way.insert(id, OpenRequest { event: at, flush: false, fua: false });
                self.submit(sector, sectors, Source::zeroed(order));
            }
            Event::Flush { id } => {
                self.under_way.insert(id, OpenRequest { event: at, flush: true, fua: false });
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

    /// Make `writes` stable. If writes persist in order, all that come before one of them become stable too.
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

    /// The writes in flight in `stage` that can persist, in the order in which they do. If there is no order, they come
    /// as they were submitted.
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

    /// The crash interval of that stage.
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
                let component = Component::in_order(&pieces, &content, &look);
                components.extend(Some(component).filter(|known| known.versions.len() > 1));
                BigUint::from(pieces.len() + 1)
            }
        };
        components.shrink_to_fit();
        Interval { index, instants: self.instants.clone(), pieces, components, too_large, states }
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
