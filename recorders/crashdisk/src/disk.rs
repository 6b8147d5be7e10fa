//! What the guest's test disk is at the moment: nothing but a base image, a recording run, or a crash state.

use postcrash_core::explore::Explorer;
use postcrash_core::interval::Interval;
use postcrash_core::recording::{RecordingError, RecordingWriter};
use postcrash_core::view::{Base, Content};
use postcrash_wire::Message;

use crate::block::Kind;
use crate::overlay::Overlay;

/// With so few choices, running them all is cheaper than waiting for the guest to fall asleep.
const HELD_COMPONENTS_MIN: usize = 4;

/// A disk that serves one guest. Requests come in submission order.
pub trait Disk {
    /// A request was submitted; the number is handed to `completed`.
    fn submitted(&mut self, _kind: &Kind) -> Result<u32, RecordingError> {
        Ok(0)
    }
    fn completed(&mut self, _id: u32) -> Result<(), RecordingError> {
        Ok(())
    }
    /// The agent said something, at this place in the order of requests.
    fn message(&mut self, _message: &Message) -> Result<(), RecordingError> {
        Ok(())
    }
    /// Whether reading there would decide something; such a read is held back until the guest waits for it.
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

/// A base image; the guest's writes are forgotten with the value.
pub struct PlainDisk<'a> {
    pub base: &'a Base,
    pub overlay: Overlay,
}

impl Disk for PlainDisk<'_> {
    fn read(&mut self, sector: u64, out: &mut [u8]) {
        self.overlay.read(sector, out, &mut |s, chunk| self.base.read(s, chunk));
    }
    fn overlay(&mut self) -> &mut Overlay {
        &mut self.overlay
    }
}

/// A base image whose requests and marks go into a recording.
pub struct RecordingDisk<'a> {
    pub plain: PlainDisk<'a>,
    pub writer: RecordingWriter,
    next_id: u32,
    /// Off once the run is done: unmounting is not part of the recording.
    recording: bool,
}

impl<'a> RecordingDisk<'a> {
    pub fn new(base: &'a Base, writer: RecordingWriter) -> Self {
        RecordingDisk { plain: PlainDisk { base, overlay: Overlay::default() }, writer, next_id: 0, recording: true }
    }
}

impl Disk for RecordingDisk<'_> {
    fn submitted(&mut self, kind: &Kind) -> Result<u32, RecordingError> {
        let id = self.next_id;
        self.next_id += 1;
        match kind {
            _ if !self.recording => {}
            // It will fail, so it never reaches the disk.
            kind if !kind.fits(self.plain.base.sectors()) => return Ok(u32::MAX),
            Kind::Write { sector, data } => self.writer.write(id, *sector, data, false, false)?,
            Kind::Zero { sector, sectors, discard } => self.writer.zero(id, *sector, *sectors, *discard)?,
            Kind::Flush => self.writer.flush(id)?,
            Kind::Read { .. } | Kind::Identify | Kind::Unsupported => return Ok(u32::MAX),
        }
        Ok(id)
    }

    fn completed(&mut self, id: u32) -> Result<(), RecordingError> {
        match id {
            u32::MAX => Ok(()),
            _ if !self.recording => Ok(()),
            id => self.writer.complete(id),
        }
    }

    fn message(&mut self, message: &Message) -> Result<(), RecordingError> {
        match *message {
            Message::Started { op } => self.writer.started(op),
            Message::Returned { op, errno } => self.writer.returned(op, errno),
            Message::Durable => self.writer.durable(),
            Message::Done(_) | Message::Failed(_) => {
                self.recording = false;
                Ok(())
            }
        }
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
    pub content: Content<'a>,
    pub interval: &'a Interval,
    pub explorer: &'a mut dyn Explorer,
    pub overlay: Overlay,
    /// The observation has been reported: what is read now has influenced nothing.
    reported: bool,
    hold: bool,
}

impl<'a> StateDisk<'a> {
    pub fn new(content: Content<'a>, interval: &'a Interval, explorer: &'a mut dyn Explorer) -> Self {
        let hold = interval.components.len() > HELD_COMPONENTS_MIN;
        StateDisk { content, interval, explorer, overlay: Overlay::default(), reported: false, hold }
    }
}

impl Disk for StateDisk<'_> {
    fn message(&mut self, message: &Message) -> Result<(), RecordingError> {
        self.reported |= matches!(message, Message::Done(_));
        Ok(())
    }

    fn undecided(&self, sector: u64, sectors: u64) -> bool {
        let open = |s| {
            let component = self.interval.component_at(s);
            component.is_some_and(|c| self.explorer.chosen(c).is_none()) && !self.overlay.has(s)
        };
        self.hold && !self.reported && (sector..sector.saturating_add(sectors)).any(open)
    }

    fn read(&mut self, sector: u64, out: &mut [u8]) {
        let StateDisk { content, interval, explorer, overlay, reported, .. } = self;
        overlay.read(sector, out, &mut |s, chunk| {
            content.read(interval, s, chunk, &mut |component| {
                let versions = interval.components[component as usize].versions.len() as u32;
                match reported {
                    false => explorer.choose(component, versions),
                    true => explorer.chosen(component).unwrap_or(0),
                }
            });
        });
    }

    fn overlay(&mut self) -> &mut Overlay {
        &mut self.overlay
    }
}
