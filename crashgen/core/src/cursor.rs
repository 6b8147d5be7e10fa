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
//! If every request is stable when it completes, many complete in a row. A completion takes crash states away. So a
//! crash is left out if nothing was submitted and no operation was marked since the one that was handed out last: that
//! one has all its states.
//!
//! If flushes order and do not persist (`device/barrier.rs`), every flush since the set-up has a stage, and the states of
//! a stage that are also states of the next one are counted there. No event makes anything stable. But once no later
//! write can add to a stage, its states are the same at all instants from there on. So this stage is handed out once
//! more, with all these instants, and then the walk goes on as if what the next stage keeps were stable. A judge must
//! still see the states of an old stage at each later instant, because by then more has been promised. With several
//! disks, an old stage of one disk goes with new stages of the others, and all are handed out each time.
//!
//! A crash takes all disks at one instant. What each of them keeps says nothing about the others.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use num_bigint::BigUint;
use num_traits::One;
use postcrash_wire::units::SECTOR_BYTES;

use crate::barriers::Barriers;
use crate::component::{groups, Component};
use crate::device::{DeviceModel, Order};
use crate::drive::{Drive, InFlight, OpenRequest, UNWRITTEN};
use crate::ground::{Content, Ground, Stable};
use crate::interval::{DiskStates, Instant, Interval};
use crate::mapped::release_pages;
use crate::piece::{Piece, Source};
use crate::recording::{Event, Recording};

/// Check the resident memory after this many components. Building them touches pages of recording and base image, and
/// one access may map a whole folio of the page cache, of a megabyte and more.
const COMPONENTS_BETWEEN_LOOKS: usize = 64;

/// Walks a recording from crash interval to crash interval.
pub struct Cursor<'a> {
    recording: &'a Recording,
    ground: &'a dyn Ground,
    model: &'static dyn DeviceModel,
    /// If flushes order and do not persist.
    barriers: Option<Barriers>,
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
    /// The event that submitted a write last.
    submitted: usize,
    /// What had completed before this event is kept in all stages that are still to be handed out.
    settled: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(recording: &'a Recording, ground: &'a dyn Ground, model: &'static dyn DeviceModel) -> Self {
        Cursor {
            recording,
            ground,
            model,
            barriers: model.flush_orders().then(|| Barriers::new(recording)),
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
            submitted: 0,
            settled: 0,
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
            self.keep_settled();
            self.apply(event?);
            self.at += 1;
        }
    }

    /// Whether crashes just before the next event are handed out. None stands for the end of the recording.
    fn is_handed_out(&self, event: Option<&Event>) -> bool {
        let ends = match event {
            None | Some(Event::Started { .. } | Event::Returned { .. }) => true,
            Some(event) => self.makes_stable(event) && self.may_be_new(),
        };
        self.durable && self.at >= self.handed_out && ends
    }

    /// Whether a crash before the next event may leave what the one that was handed out last did not, or later in the
    /// operations. This is asked only if every request is stable when it completes.
    fn may_be_new(&self) -> bool {
        let is_known = |last: &Instant| {
            (last.started, last.returned) == (self.started, self.returned) && self.submitted < last.event
        };
        !self.model.writes_through() || !self.instants.last().is_some_and(is_known)
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
        let mut interval = self.build(self.index - 1);
        if let Some(instants) = self.settle() {
            interval.instants = instants;
        }
        Some(interval)
    }

    /// If no later write can add to the stage of the only disk, its instants up to the end of the recording. Then it is
    /// not handed out again.
    fn settle(&mut self) -> Option<Vec<Instant>> {
        let barriers = self.barriers.as_ref().filter(|_| self.drives.len() == 1)?;
        let next = self.drives[0].stage_after(self.stages[0]);
        if !barriers.is_past(next.unwrap_or(usize::MAX), self.at) {
            return None;
        }
        match next {
            Some(next) => self.settled = next,
            None => self.handed_out = usize::MAX,
        }
        Some(barriers.instants_from(self.at).to_vec())
    }

    fn keep_settled(&mut self) {
        let drive = &mut self.drives[0];
        drive.stabilise(drive.completed_before(self.settled).collect(), &mut self.stable);
        while drive.waiting.first().is_some_and(|&flush| flush < self.settled) {
            drive.waiting.pop_first();
        }
    }

    fn leave_stages(&mut self) {
        self.stable.extend(self.before_stages.drain());
    }

    fn apply(&mut self, event: &Event) {
        let at = self.at;
        match *event {
            Event::Write { id, sector, ref data, fua, preflush } => {
                let waits = preflush && self.model.order() == Order::Free && self.model.honours_flush();
                let behind = if waits { at } else { self.barrier() };
                let disk = self.submit(sector, (data.len() / SECTOR_BYTES) as u64, Source::written(data.start), behind);
                self.under_way.insert(id, OpenRequest { event: at, disk, flush: preflush, fua });
            }
            Event::Zero { id, sector, sectors, order, .. } => {
                let disk = self.submit(sector, sectors, Source::zeroed(order), self.barrier());
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

    /// The barrier of the write that the event at hand submits. 0 if flushes persist or do nothing.
    fn barrier(&self) -> usize {
        self.barriers.as_ref().map_or(0, |barriers| barriers.of(self.at))
    }

    /// Put a write into what is in flight on its disk. Returns the disk.
    fn submit(&mut self, sector: u64, sectors: u64, source: Source, behind: usize) -> usize {
        let disk = self.recording.disks().of(sector);
        if behind > 0 {
            self.drives[disk].waiting.insert(behind);
        }
        self.submitted = self.at;
        self.drives[disk].in_flight.insert(self.at, InFlight { sector, sectors, source, behind, completed: None });
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
        if self.barriers.is_none() {
            drive.waiting.remove(&request.event);
        }
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
        let kept_next = self.kept_next();
        let is_kept_next = |piece: &Piece| kept_next.iter().flatten().any(|kept| kept.contains(&piece.event));
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
                    match Component::build(&group, &pieces, &content, &is_kept_next) {
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
        let states = match self.barriers {
            Some(_) => self.states_of_disks(&pieces, &kept_next),
            None => vec![DiskStates { end: u64::MAX, all: states, next: BigUint::ZERO }],
        };
        let absent = self.drives.iter().zip(&self.stages).flat_map(|(drive, &stage)| drive.absent(stage)).collect();
        Interval { index, instants: self.instants.clone(), pieces, absent, components, too_large, states }
    }

    /// For each disk, the writes that its next stage keeps.
    fn kept_next(&self) -> Vec<Option<HashSet<usize>>> {
        self.drives.iter().zip(&self.stages).map(|(drive, &stage)| drive.kept_next(stage)).collect()
    }

    /// How many choices of `pieces` each disk has, and how many of these are counted with its next stage.
    fn states_of_disks(&self, pieces: &[Piece], kept_next: &[Option<HashSet<usize>>]) -> Vec<DiskStates> {
        let of_disk = |(sectors, kept): (Range<u64>, &Option<HashSet<usize>>)| {
            let own = || pieces.iter().filter(|piece| sectors.contains(&piece.sector));
            let free = |kept: &HashSet<usize>| own().filter(|piece| !kept.contains(&piece.event)).count();
            let next = kept.as_ref().map_or(BigUint::ZERO, |kept| BigUint::one() << free(kept));
            DiskStates { end: sectors.end, all: BigUint::one() << own().count(), next }
        };
        self.recording.disks().ranges().zip(kept_next).map(of_disk).collect()
    }
}
