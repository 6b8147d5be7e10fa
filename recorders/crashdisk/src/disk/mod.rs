//! What the guest's test disk is at the moment: zeros, a base image, a recording run, or a crash state.

pub mod contents;
pub mod memo;
pub mod overlay;
pub mod random;

use std::collections::HashMap;
use std::ops::Range;

use postcrash_core::explore::Explorer;
use postcrash_core::ground::{Base, Ground};
use postcrash_core::interval::Interval;
use postcrash_core::recording::{RecordingError, RecordingWriter};
use postcrash_core::space::Space;
use postcrash_wire::units::SECTOR_BYTES;
use postcrash_wire::Message;
use serde::{Deserialize, Serialize};

use crate::disk::contents::resolved;
use crate::disk::memo::Footprint;
use crate::disk::overlay::Overlay;
use crate::disk::random::Random;
use crate::virtio::block::{RequestKind, SPLIT_BYTES};

/// How far the operations (set-up included) had got at a crash.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marks {
    pub started: u32,
    pub returned: u32,
}

/// Id of requests that are not recorded.
const UNRECORDED: u32 = u32::MAX;
/// With fewer components than this, running all their versions is cheaper than waiting for the guest to fall asleep.
const HELD_COMPONENTS_MIN: usize = 4;

/// Whether reads that would decide a component are held back until the guest waits for them.
pub fn holds_reads(interval: &Interval) -> bool {
    interval.components.len() > HELD_COMPONENTS_MIN
}

/// A disk that serves one guest. Requests come in submission order.
pub trait Disk {
    /// Requests were submitted together. The returned numbers, one for each, are handed to `completed`.
    fn submitted(&mut self, requests: &[&RequestKind]) -> Result<Vec<u32>, RecordingError> {
        Ok(vec![0; requests.len()])
    }
    fn completed(&mut self, _id: u32) -> Result<(), RecordingError> {
        Ok(())
    }
    /// Whether writes and flushes are completed only when the guest stands still (see `pending`). If not, each is
    /// completed at once.
    fn completes_at_rest(&self) -> bool {
        false
    }
    /// Which of `count` runs of finished writes is completed next. None: all of them, in order.
    fn next_completion(&mut self, _count: usize) -> Option<usize> {
        None
    }
    /// Whether the guest's kernel must come to rest before a message of the agent is handled.
    fn wants_rest(&self) -> bool {
        false
    }
    /// The agent sent a message, at this place in the order of requests.
    fn message(&mut self, _message: &Message) -> Result<(), RecordingError> {
        Ok(())
    }
    /// Whether reading there would decide a component. Such a read is held back until the guest waits for it.
    fn undecided(&self, _sector: u64, _sectors: u64) -> bool {
        false
    }
    fn read(&mut self, sector: u64, out: &mut [u8]);
    fn overlay(&mut self) -> &mut Overlay;
}

/// Zeros: what a guest sees while it boots.
#[derive(Default)]
pub struct EmptyDisk {
    overlay: Overlay,
}

impl Disk for EmptyDisk {
    fn read(&mut self, sector: u64, out: &mut [u8]) {
        self.overlay.read(sector, out, &mut |_, chunk| chunk.fill(0));
    }
    fn overlay(&mut self) -> &mut Overlay {
        &mut self.overlay
    }
}

/// A base image. What the guest writes is forgotten when this value is dropped.
pub struct PlainDisk<'a> {
    pub base: &'a Base,
    pub overlay: Overlay,
}

impl Disk for PlainDisk<'_> {
    fn read(&mut self, sector: u64, out: &mut [u8]) {
        self.overlay.read(sector, out, &mut |s, chunk| {
            self.base.read(s, chunk, &mut |_| unreachable!("an image has no components"));
        });
    }
    fn overlay(&mut self) -> &mut Overlay {
        &mut self.overlay
    }
}

/// A recording under way.
pub struct OpenRecording {
    writer: RecordingWriter,
    sectors: Range<u64>,
    next_id: u32,
    /// For requests that were recorded as one: how many of them are not completed yet.
    outstanding: HashMap<u32, usize>,
    /// Off once the agent is done: unmounting is not part of the recording.
    recording: bool,
    /// How far the operations have got.
    pub marks: Marks,
    /// The first operation that failed.
    failed: Option<FailedOperation>,
}

/// An operation of the workload that returned an error.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FailedOperation {
    /// Its number.
    pub operation: u32,
    pub errno: u32,
}

/// What became of a recording.
pub struct RecordingSummary {
    pub requests: u32,
    /// The first operation that failed.
    pub failed: Option<FailedOperation>,
}

impl OpenRecording {
    /// A recording of disks that have so many sectors together.
    pub fn new(writer: RecordingWriter, sectors: u64) -> Self {
        let marks = Marks { started: 0, returned: 0 };
        OpenRecording {
            writer,
            sectors: 0..sectors,
            next_id: 0,
            outstanding: HashMap::new(),
            recording: true,
            marks,
            failed: None,
        }
    }

    pub fn finish(self) -> Result<RecordingSummary, RecordingError> {
        self.writer.finish()?;
        Ok(RecordingSummary { requests: self.next_id, failed: self.failed })
    }

    fn submitted(&mut self, requests: &[&RequestKind]) -> Result<Vec<u32>, RecordingError> {
        let mut ids = Vec::new();
        while let Some(rest) = requests.get(ids.len()..).filter(|rest| !rest.is_empty()) {
            let parts = split_parts(rest, &self.sectors);
            let id = self.record(&rest[..parts])?;
            if id != UNRECORDED {
                self.outstanding.insert(id, parts);
            }
            ids.extend(std::iter::repeat_n(id, parts));
        }
        Ok(ids)
    }

    /// Record one request, or a write that came in parts. Returns its id.
    fn record(&mut self, parts: &[&RequestKind]) -> Result<u32, RecordingError> {
        // A request that does not fit will fail, so it never reaches the disk.
        if !self.recording || parts.iter().any(|part| !part.fits(&self.sectors)) {
            return Ok(UNRECORDED);
        }
        let id = self.next_id;
        match parts[0] {
            RequestKind::Write { sector, .. } => self.writer.write(id, *sector, &joined(parts), false, false)?,
            RequestKind::Zero { sector, sectors, discard } => self.writer.zero(id, *sector, *sectors, *discard)?,
            RequestKind::Flush { disk } => self.writer.flush(id, *disk)?,
            RequestKind::Read { .. } | RequestKind::Identify | RequestKind::Unsupported => return Ok(UNRECORDED),
        }
        self.next_id += 1;
        Ok(id)
    }

    fn completed(&mut self, id: u32) -> Result<(), RecordingError> {
        let Some(parts) = self.outstanding.get_mut(&id) else { return Ok(()) };
        *parts -= 1;
        if *parts > 0 {
            return Ok(());
        }
        self.outstanding.remove(&id);
        if self.recording {
            self.writer.complete(id)
        } else {
            Ok(())
        }
    }

    fn message(&mut self, message: &Message) -> Result<(), RecordingError> {
        match *message {
            Message::Started { op } => {
                self.marks.started = op + 1;
                self.writer.started(op)
            }
            Message::Returned { op, errno } => {
                self.marks.returned = op + 1;
                if errno != 0 {
                    self.failed.get_or_insert(FailedOperation { operation: op, errno });
                }
                self.writer.returned(op, errno)
            }
            Message::Durable => self.writer.durable(),
            Message::Called { .. } | Message::CallEnded { .. } if !self.recording => Ok(()),
            Message::Called { thread, ref program, ref call } => self.writer.call_begins(thread, program, call),
            Message::CallEnded { thread, result } => self.writer.call_ends(thread, result),
            Message::Done(_) | Message::Failed { .. } => {
                self.recording = false;
                Ok(())
            }
        }
    }
}

/// A base image whose requests and marks go into a recording.
pub struct RecordingDisk<'a> {
    pub plain: PlainDisk<'a>,
    pub log: OpenRecording,
    /// Draws the order of completions that are held back until the guest stands still.
    order: Option<Random>,
}

impl<'a> RecordingDisk<'a> {
    /// With `held`, writes are completed only when the guest stands still, one run at a time, in an order drawn from
    /// this seed.
    pub fn new(base: &'a Base, writer: RecordingWriter, held: Option<u64>) -> Self {
        RecordingDisk::of(base, OpenRecording::new(writer, base.sectors()), held)
    }

    /// The same, with a recording that is already under way.
    pub fn of(base: &'a Base, log: OpenRecording, held: Option<u64>) -> Self {
        let plain = PlainDisk { base, overlay: Overlay::default() };
        RecordingDisk { plain, log, order: held.map(Random::new) }
    }
}

/// How many of `requests`, from the first on, are parts of one write that our own limit on requests has split. The
/// parts are full requests, and each is followed by the next of the disk's `sectors`.
fn split_parts(requests: &[&RequestKind], sectors: &Range<u64>) -> usize {
    let continues = |pair: &[&RequestKind]| match pair {
        [part @ RequestKind::Write { data, .. }, next @ RequestKind::Write { sector, .. }] => {
            let is_followed = part.written().is_some_and(|written| written.end == *sector);
            data.len() == SPLIT_BYTES && is_followed && next.fits(sectors)
        }
        _ => false,
    };
    1 + requests.windows(2).take_while(|pair| continues(pair)).count()
}

fn joined(parts: &[&RequestKind]) -> Vec<u8> {
    let data = parts.iter().filter_map(|part| match part {
        RequestKind::Write { data, .. } => Some(data.as_slice()),
        _ => None,
    });
    data.collect::<Vec<_>>().concat()
}

impl Disk for RecordingDisk<'_> {
    fn submitted(&mut self, requests: &[&RequestKind]) -> Result<Vec<u32>, RecordingError> {
        self.log.submitted(requests)
    }

    fn completed(&mut self, id: u32) -> Result<(), RecordingError> {
        self.log.completed(id)
    }

    fn completes_at_rest(&self) -> bool {
        self.log.recording
    }

    fn next_completion(&mut self, count: usize) -> Option<usize> {
        let order = self.order.as_mut().filter(|_| self.log.recording)?;
        // The youngest in half of the cases: what nobody waits for is mostly older than what the kernel goes on with.
        Some(order.last_or_any(count as u64) as usize)
    }

    fn wants_rest(&self) -> bool {
        self.log.recording && self.order.is_none()
    }

    fn message(&mut self, message: &Message) -> Result<(), RecordingError> {
        self.log.message(message)
    }

    fn read(&mut self, sector: u64, out: &mut [u8]) {
        self.plain.read(sector, out);
    }

    fn overlay(&mut self) -> &mut Overlay {
        &mut self.plain.overlay
    }
}

/// A crash state, chosen by an explorer as the guest reads it.
pub struct StateDisk<'a> {
    space: Space<'a>,
    explorer: &'a mut dyn Explorer,
    overlay: Overlay,
    /// Hold back reads that would decide a component.
    hold: bool,
    /// The recording of the recovery, if it is recorded.
    pub log: Option<OpenRecording>,
    /// What was read of the crash state, if that is wanted.
    pub footprint: Option<Footprint>,
    /// What the agent reported, with contents filled in. Reads after the report have influenced nothing.
    pub report: Option<Vec<u8>>,
}

impl<'a> StateDisk<'a> {
    pub fn new(
        space: Space<'a>,
        explorer: &'a mut dyn Explorer,
        overlay: Overlay,
        log: Option<OpenRecording>,
        footprint: Option<Footprint>,
    ) -> Self {
        let hold = holds_reads(space.interval);
        StateDisk { space, explorer, overlay, hold, log, footprint, report: None }
    }
}

impl Disk for StateDisk<'_> {
    fn submitted(&mut self, requests: &[&RequestKind]) -> Result<Vec<u32>, RecordingError> {
        self.log.as_mut().map_or_else(|| Ok(vec![UNRECORDED; requests.len()]), |log| log.submitted(requests))
    }

    fn completed(&mut self, id: u32) -> Result<(), RecordingError> {
        self.log.as_mut().map_or(Ok(()), |log| log.completed(id))
    }

    fn completes_at_rest(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.recording)
    }

    fn message(&mut self, message: &Message) -> Result<(), RecordingError> {
        if let Message::Done(report) = message {
            if let Some(footprint) = &mut self.footprint {
                footprint.answered(report, &self.overlay);
            }
            self.report = Some(resolved(self.space, &self.overlay, self.explorer, report));
        }
        self.log.as_mut().map_or(Ok(()), |log| log.message(message))
    }

    fn undecided(&self, sector: u64, sectors: u64) -> bool {
        let open =
            |s| !self.overlay.has(s) && self.space.open(s, &|component| self.explorer.chosen(component)).is_some();
        let may_be = || !self.space.is_image(sector, sectors) && (sector..sector.saturating_add(sectors)).any(open);
        self.hold && self.report.is_none() && may_be()
    }

    fn read(&mut self, sector: u64, out: &mut [u8]) {
        let StateDisk { space, explorer, overlay, footprint, report, .. } = self;
        overlay.read(sector, out, &mut |s, chunk| {
            space.read(s, chunk, &mut |component| match report {
                None => explorer.choose(component, &|| space.options(component)),
                Some(_) => explorer.chosen(component).unwrap_or(0),
            });
        });
        if let (Some(footprint), None) = (footprint, report) {
            footprint.read(sector, (out.len() / SECTOR_BYTES) as u64, overlay);
        }
    }

    fn overlay(&mut self) -> &mut Overlay {
        &mut self.overlay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART_SECTORS: u64 = (SPLIT_BYTES / SECTOR_BYTES) as u64;

    fn parts(writes: &[(u64, usize)], sectors: u64) -> usize {
        let kinds: Vec<_> =
            writes.iter().map(|&(sector, bytes)| RequestKind::Write { sector, data: vec![0; bytes] }).collect();
        split_parts(&kinds.iter().collect::<Vec<_>>(), &(0..sectors))
    }

    #[test]
    fn full_writes_and_what_follows_on_them_are_one() {
        let (next, after) = (8 + PART_SECTORS, 8 + 2 * PART_SECTORS);
        assert_eq!(parts(&[(8, SPLIT_BYTES), (next, SPLIT_BYTES), (after, 512), (after + 1, 512)], 1 << 20), 3);
        assert_eq!(parts(&[(8, SPLIT_BYTES), (next + 1, 512)], 1 << 20), 1);
        assert_eq!(parts(&[(8, SPLIT_BYTES - 512), (next - 1, 512)], 1 << 20), 1);
    }

    #[test]
    fn a_write_beyond_the_end_is_no_part() {
        assert_eq!(parts(&[(8, SPLIT_BYTES), (8 + PART_SECTORS, 512)], 8 + PART_SECTORS), 1);
        assert_eq!(parts(&[(u64::MAX - PART_SECTORS + 1, SPLIT_BYTES), (0, 512)], 1 << 20), 1);
    }
}
