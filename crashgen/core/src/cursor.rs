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
//!
//! A crash takes all disks at one instant. What each of them keeps says nothing about the others.

use std::collections::HashMap;

use num_bigint::BigUint;
use num_traits::One;
use postcrash_wire::units::SECTOR_BYTES;

use crate::component::{groups, Component};
use crate::device::{DeviceModel, Order};
use crate::drive::{Drive, InFlight, OpenRequest, UNWRITTEN};
use crate::ground::{Content, Ground, Stable};
use crate::interval::{Instant, Interval};
use crate::mapped::release_pages;
use crate::piece::Source;
use crate::recording::{Event, Recording};

/// Check the resident memory after this many components. Building them touches pages of recording and base image, and
/// one access may map a whole folio of the page cache, of a megabyte and more.
const COMPONENTS_BETWEEN_LOOKS: usize = 64;

/// Walks a recording from crash interval to crash interval.
pub struct Cursor<'a> {
    recording: &'a Recording,
    ground: &'a dyn Ground,
    model: &'static dyn DeviceModel,
    at: usize,
    index: u32,
    stable: Stable,
    drives: Vec<Drive>,
    /// Requests under way by their id.
    under_way: HashMap<u32, OpenRequest>,
    /// The stage of each disk that was handed out last for the crash before event `at`: in this stage, what had
    /// completed on the disk before this event is stable. Empty if none was.
    stages: Vec<usize>,
    /// The blocks that are stable only in these stages, as they were before them.
    before_stages: Stable,
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
            drives: recording.disks().ranges().map(|sectors| Drive::new(model, sectors)).collect(),
            under_way: HashMap::new(),
            stages: Vec::new(),
            before_stages: Stable::default(),
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
            if !self.stages.is_empty() || self.is_handed_out(event) {
                if let Some(interval) = self.next_stages() {
                    return Some(interval);
                }
            }
            self.leave_stages();
            self.stages.clear();
            self.apply(event?);
            self.at += 1;
        }
    }

    /// Whether crashes just before the next event are handed out. None stands for the end of the recording.
    fn is_handed_out(&self, event: Option<&Event>) -> bool {
        let ends = match event {
            None | Some(Event::Started { .. } | Event::Returned { .. }) => true,
            Some(event) => self.makes_stable(event),
        };
        self.durable && self.at >= self.handed_out && ends
    }

    fn makes_stable(&self, event: &Event) -> bool {
        let Event::Complete { id } = event else { return false };
        self.under_way.get(id).is_some_and(|request| self.drives[request.disk].made_stable(request).next().is_some())
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
        if instants.len() > 1 && next.is_some_and(|event| !self.makes_stable(event)) {
            instants.pop();
        }
        instants
    }

    /// In the first stage of a disk, no PREFLUSH write has its flush done. Each later stage makes more stable than the
    /// one before it. Disks flush independently, so that an interval is handed out for each choice of their stages.
    fn next_stages(&mut self) -> Option<Interval> {
        if self.stages.is_empty() {
            self.instants = self.instants();
            self.handed_out = self.instants.last().map_or(0, |instant| instant.event + 1);
            self.stages = vec![0; self.drives.len()];
        } else {
            self.leave_stages();
            let mut later = self.drives.iter().zip(&self.stages).map(|(drive, &last)| drive.stage_after(last));
            let (disk, stage) = later.by_ref().enumerate().find_map(|(disk, stage)| Some((disk, stage?)))?;
            drop(later);
            self.stages[..disk].fill(0);
            self.stages[disk] = stage;
        }
        for (drive, &stage) in self.drives.iter().zip(&self.stages) {
            for write in drive.completed_before(stage).map(|event| &drive.in_flight[&event]) {
                for block in write.blocks() {
                    let known = self.stable.get(&block).copied().unwrap_or(UNWRITTEN);
                    self.before_stages.entry(block).or_insert(known);
                }
                write.stabilise(&mut self.stable, false);
            }
        }
        self.index += 1;
        Some(self.build(self.index - 1))
    }

    fn leave_stages(&mut self) {
        self.stable.extend(self.before_stages.drain());
    }

    fn apply(&mut self, event: &Event) {
        let at = self.at;
        match *event {
            Event::Write { id, sector, ref data, fua, preflush } => {
                let disk = self.submit(sector, (data.len() / SECTOR_BYTES) as u64, Source::written(data.start));
                if preflush && self.model.order() == Order::Free && self.model.honours_flush() {
                    self.drives[disk].waiting.insert(at);
                }
                self.under_way.insert(id, OpenRequest { event: at, disk, flush: preflush, fua });
            }
            Event::Zero { id, sector, sectors, order, .. } => {
                let disk = self.submit(sector, sectors, Source::zeroed(order));
                self.under_way.insert(id, OpenRequest { event: at, disk, flush: false, fua: false });
            }
            Event::Flush { id, disk } => {
                self.under_way.insert(id, OpenRequest { event: at, disk: disk as usize, flush: true, fua: false });
            }
            Event::Complete { id } => self.complete(id),
            Event::Started { .. } => self.started += 1,
            Event::Returned { .. } => self.returned += 1,
            Event::Durable => {
                self.durable = true;
                for drive in &mut self.drives {
                    drive.stabilise(drive.completed_before(at).collect(), &mut self.stable);
                }
            }
        }
    }

    /// Put a write into what is in flight on its disk. Returns the disk.
    fn submit(&mut self, sector: u64, sectors: u64, source: Source) -> usize {
        let disk = self.recording.disks().of(sector);
        self.drives[disk].in_flight.insert(self.at, InFlight { sector, sectors, source, completed: None });
        disk
    }

    fn complete(&mut self, id: u32) {
        let Some(request) = self.under_way.remove(&id) else { return };
        let drive = &mut self.drives[request.disk];
        let stable = drive.made_stable(&request).collect();
        if let Some(write) = drive.in_flight.get_mut(&request.event) {
            write.completed = Some(self.at);
            drive.completed.insert(self.at, request.event);
        }
        drive.waiting.remove(&request.event);
        drive.stabilise(stable, &mut self.stable);
    }

    /// The crash interval of the stages.
    fn build(&self, index: u32) -> Interval {
        let content = self.content();
        let look = || release_pages(&[self.recording.mapped(), self.ground.mapped()]);
        let of_disks = self.drives.iter().zip(&self.stages).map(|(drive, &stage)| drive.pieces(stage));
        let mut pieces = Vec::new();
        let mut components = Vec::new();
        let mut too_large = None;
        let mut states = BigUint::one();
        match self.model.order() {
            Order::Free => {
                pieces.extend(of_disks.flatten());
                if self.drives.len() > 1 {
                    pieces.sort_by_key(|piece| piece.event);
                }
                for (number, group) in groups(&pieces).enumerate() {
                    if number % COMPONENTS_BETWEEN_LOOKS == 0 {
                        look();
                    }
                    match Component::build(&group, &pieces, &content) {
                        Ok(component) => components.extend(component.filter(|known| known.versions.len() > 1)),
                        Err(error) => too_large = Some(error),
                    }
                }
                states <<= pieces.len();
            }
            Order::Submission | Order::Completion => {
                for of_disk in of_disks {
                    let first = pieces.len();
                    pieces.extend(of_disk);
                    let component = Component::in_order(&pieces[first..], first as u32, &content, &look);
                    states *= component.states();
                    components.extend(Some(component).filter(|known| known.versions.len() > 1));
                }
            }
        }
        components.shrink_to_fit();
        Interval { index, instants: self.instants.clone(), pieces, components, too_large, states }
    }
}
