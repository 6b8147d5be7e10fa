//! The recording: an immutable file with every request of one run, in order, the marks of its operations, and notes of the
//! system calls of its programs.
//!
//! Layout (little-endian): magic, disk size in sectors (u64), length of the metadata (u32), the metadata (JSON,
//! opaque here), the events, an end byte, the number of events (u64), SHA-256 of all that came before. A recording of
//! several disks has another magic, the number of disks (u32), and the size of each. A file that is cut short or was
//! changed does not open. A file is written under another name and then renamed, so that a recording is whole or
//! absent.

use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use thiserror::Error;

use crate::calls::{CallNote, CallStep, Threads, TEXT_BYTES_MAX};
use crate::disks::{Disks, DISKS_MAX};
use crate::mapped::{release_pages, MappedFile};
use order::EventOrder;

mod order;

const MAGIC: &[u8; 8] = b"PCREC01\n";
const MAGIC_OF_SEVERAL: &[u8; 8] = b"PCREC02\n";
const HEADER_BYTES: usize = 20;
const TRAILER_BYTES: usize = 1 + 8 + 32;
const METADATA_BYTES_MAX: usize = 16 << 20;
/// A guest decides how much it writes.
const BYTES_MAX: u64 = 16 << 30;
/// Check the resident memory after reading this many bytes of the file.
const BYTES_BETWEEN_LOOKS: usize = 1 << 24;
const EVENTS_BETWEEN_LOOKS: usize = 1024;

/// An event at the disk, or a mark of the agent. Events stand in the order in which the disk saw them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A write was submitted. `data` is its range in the file.
    Write { id: u32, sector: u64, data: Range<usize>, fua: bool, preflush: bool },
    /// A discard or write-zeroes was submitted. The sectors read as zeros if it persists. `order` is the event's
    /// position in the file, which can be compared with the start of a write's data.
    Zero { id: u32, sector: u64, sectors: u64, discard: bool, order: usize },
    /// A flush of the disk with this number was submitted.
    Flush { id: u32, disk: u32 },
    /// Request `id` was completed.
    Complete { id: u32 },
    /// Operation `op` (set-up included, from 0) is about to start.
    Started { op: u32 },
    /// Operation `op` returned with `errno` (0: success).
    Returned { op: u32, errno: u32 },
    /// The set-up is durable: everything completed so far counts as stable, and crashes are considered from here on.
    Durable,
}

#[derive(Debug, Error)]
pub enum RecordingError {
    #[error("{path}: {}", crate::io_error::in_words(source))]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{path}: not a recording: {reason} (byte {at})")]
    Malformed { path: PathBuf, at: usize, reason: String },
    #[error("{path}: cannot be recorded: {reason}")]
    Refused { path: PathBuf, reason: String },
}

/// An open recording. Data stays in the mapped file.
pub struct Recording {
    map: MappedFile,
    path: PathBuf,
    disks: Disks,
    metadata: Range<usize>,
    events: Vec<Event>,
    calls: Vec<CallNote>,
}

impl Recording {
    /// Open and check a recording.
    pub fn open(path: &Path) -> Result<Recording, RecordingError> {
        let map = MappedFile::open(path).map_err(|source| RecordingError::Io { path: path.to_owned(), source })?;
        let mut parser = Parser { bytes: &map, at: 0, path };
        let (disks, metadata) = parser.header()?;
        let (events, calls) = parser.events(&disks)?;
        Ok(Recording { path: path.to_owned(), disks, metadata, events, calls, map })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn disks(&self) -> &Disks {
        &self.disks
    }

    /// Sectors of all disks together.
    pub fn disk_sectors(&self) -> u64 {
        self.disks.sectors()
    }

    /// The metadata, JSON text.
    pub fn metadata(&self) -> &str {
        std::str::from_utf8(&self.map[self.metadata.clone()]).expect("checked when opened")
    }

    pub fn events(&self) -> &[Event] {
        &self.events
    }

    pub fn calls(&self) -> &[CallNote] {
        &self.calls
    }

    /// Text of a call's note.
    pub fn text(&self, range: &Range<usize>) -> &str {
        std::str::from_utf8(&self.map[range.clone()]).expect("checked when opened")
    }

    pub fn mapped(&self) -> &MappedFile {
        &self.map
    }

    /// The bytes of the file. A write's data is a slice of them.
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// SHA-256 of the content, as the trailer holds it.
    pub fn digest(&self) -> &[u8] {
        &self.map[self.map.len() - 32..]
    }
}

struct Parser<'a> {
    bytes: &'a MappedFile,
    at: usize,
    path: &'a Path,
}

impl Parser<'_> {
    fn malformed(&self, reason: impl Into<String>) -> RecordingError {
        RecordingError::Malformed { path: self.path.to_owned(), at: self.at, reason: reason.into() }
    }

    fn take(&mut self, length: usize) -> Result<Range<usize>, RecordingError> {
        let end = self.at.checked_add(length).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or_else(|| self.malformed("it ends in the middle of a field"))?;
        let range = self.at..end;
        self.at = end;
        Ok(range)
    }

    fn u8(&mut self) -> Result<u8, RecordingError> {
        Ok(self.bytes[self.take(1)?.start])
    }

    fn u32(&mut self) -> Result<u32, RecordingError> {
        let range = self.take(4)?;
        Ok(u32::from_le_bytes(self.bytes[range].try_into().expect("four bytes")))
    }

    fn u64(&mut self) -> Result<u64, RecordingError> {
        let range = self.take(8)?;
        Ok(u64::from_le_bytes(self.bytes[range].try_into().expect("eight bytes")))
    }

    fn header(&mut self) -> Result<(Disks, Range<usize>), RecordingError> {
        let of_several = self.bytes.starts_with(MAGIC_OF_SEVERAL);
        if self.bytes.len() < HEADER_BYTES + TRAILER_BYTES || !(of_several || self.bytes.starts_with(MAGIC)) {
            return Err(self.malformed("it does not start with a recording's header"));
        }
        let body = self.bytes.len() - 32;
        if self.digest(body).as_slice() != &self.bytes[body..] {
            return Err(self.malformed("it is truncated or was changed: the checksum does not match"));
        }
        self.at = MAGIC.len();
        let count = if of_several { self.u32()? as usize } else { 1 };
        let sizes: Vec<u64> = (0..count.min(DISKS_MAX + 1)).map(|_| self.u64()).collect::<Result<_, _>>()?;
        let disks = Disks::new(&sizes).map_err(|reason| self.malformed(reason))?;
        let length = self.u32()? as usize;
        let metadata = self.take(length)?;
        check_metadata(&self.bytes[metadata.clone()]).map_err(|reason| self.malformed(reason))?;
        Ok((disks, metadata))
    }

    fn digest(&self, length: usize) -> [u8; 32] {
        let mut hasher = Sha256::new();
        for chunk in self.bytes[..length].chunks(BYTES_BETWEEN_LOOKS) {
            release_pages(&[self.bytes]);
            hasher.update(chunk);
        }
        hasher.finalize().into()
    }

    fn events(&mut self, disks: &Disks) -> Result<(Vec<Event>, Vec<CallNote>), RecordingError> {
        let (mut events, mut calls) = (Vec::new(), Vec::new());
        let (mut order, mut threads) = (EventOrder::default(), Threads::default());
        loop {
            if (events.len() + calls.len()) % EVENTS_BETWEEN_LOOKS == 0 {
                release_pages(&[self.bytes]);
            }
            let start = self.at;
            let admitted = match self.u8()? {
                tag::END => break,
                kind @ (tag::CALL_BEGINS | tag::CALL_ENDS) => {
                    let note = CallNote { events: events.len(), thread: self.u32()?, step: self.call_step(kind)? };
                    threads.admit(&note).map(|()| calls.push(note))
                }
                kind => {
                    let event = self.event(kind)?;
                    order.admit(&event, disks).map(|()| events.push(event))
                }
            };
            if let Err(reason) = admitted {
                self.at = start;
                return Err(self.malformed(reason));
            }
        }
        if self.u64()? != events.len() as u64 {
            return Err(self.malformed("the number of events does not match"));
        }
        if self.at + 32 != self.bytes.len() {
            return Err(self.malformed("there is more after its end"));
        }
        Ok((events, calls))
    }

    fn call_step(&mut self, kind: u8) -> Result<CallStep, RecordingError> {
        if kind == tag::CALL_ENDS {
            return Ok(CallStep::Ends { result: self.u64()? as i64 });
        }
        Ok(CallStep::Begins { program: self.text()?, call: self.text()? })
    }

    fn text(&mut self) -> Result<Range<usize>, RecordingError> {
        let length = self.u32()? as usize;
        let range = self.take(length)?;
        if length > TEXT_BYTES_MAX {
            return Err(self.malformed(format!("a system call's text of {length} bytes is too long")));
        }
        match std::str::from_utf8(&self.bytes[range.clone()]) {
            Ok(_) => Ok(range),
            Err(error) => Err(self.malformed(format!("a system call's text cannot be read: {error}"))),
        }
    }

    fn event(&mut self, kind: u8) -> Result<Event, RecordingError> {
        let order = self.at;
        match kind {
            tag::WRITE => {
                let (id, flags, sector) = (self.u32()?, self.u8()?, self.u64()?);
                let length = self.u32()? as usize;
                let data = self.take(length)?;
                Ok(Event::Write { id, sector, data, fua: flags & 1 != 0, preflush: flags & 2 != 0 })
            }
            tag::DISCARD | tag::WRITE_ZEROES => {
                let (id, sector, sectors) = (self.u32()?, self.u64()?, self.u64()?);
                Ok(Event::Zero { id, sector, sectors, discard: kind == tag::DISCARD, order })
            }
            tag::FLUSH => Ok(Event::Flush { id: self.u32()?, disk: 0 }),
            tag::FLUSH_OF => Ok(Event::Flush { id: self.u32()?, disk: self.u32()? }),
            tag::COMPLETE => Ok(Event::Complete { id: self.u32()? }),
            tag::STARTED => Ok(Event::Started { op: self.u32()? }),
            tag::RETURNED => Ok(Event::Returned { op: self.u32()?, errno: self.u32()? }),
            tag::DURABLE => Ok(Event::Durable),
            _ => Err(self.malformed(format!("unknown event kind {kind}"))),
        }
    }
}

fn check_metadata(metadata: &[u8]) -> Result<(), String> {
    if metadata.len() > METADATA_BYTES_MAX {
        return Err(format!("metadata of {} bytes is too long", metadata.len()));
    }
    match serde_json::from_slice::<serde_json::Value>(metadata) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("the metadata is not JSON: {error}")),
    }
}

mod tag {
    pub const END: u8 = 0;
    pub const WRITE: u8 = 1;
    pub const DISCARD: u8 = 2;
    pub const WRITE_ZEROES: u8 = 3;
    pub const FLUSH: u8 = 4;
    pub const COMPLETE: u8 = 5;
    pub const STARTED: u8 = 6;
    pub const RETURNED: u8 = 7;
    pub const DURABLE: u8 = 8;
    pub const CALL_BEGINS: u8 = 9;
    pub const CALL_ENDS: u8 = 10;
    /// A flush of another disk than the first.
    pub const FLUSH_OF: u8 = 11;
}

/// Writes a recording. No file exists at `path` until [`RecordingWriter::finish`] has returned. The writer refuses
/// whatever the reader would not open again.
pub struct RecordingWriter {
    out: BufWriter<NamedTempFile>,
    path: PathBuf,
    /// How many more bytes it may have.
    left: u64,
    disks: Disks,
    events: u64,
    order: EventOrder,
    threads: Threads,
    hasher: Sha256,
}

impl RecordingWriter {
    /// Start a recording beside `path`, in a file whose name starts with that of `path`.
    ///
    /// `sizes` are the sectors of each disk. `metadata` is JSON text.
    pub fn create(path: &Path, sizes: &[u64], metadata: &str) -> Result<Self, RecordingError> {
        let refused = |reason| RecordingError::Refused { path: path.to_owned(), reason };
        let disks = Disks::new(sizes).map_err(refused)?;
        check_metadata(metadata.as_bytes()).map_err(refused)?;
        let io = |source| RecordingError::Io { path: path.to_owned(), source };
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut prefix = path.file_name().unwrap_or_default().to_owned();
        prefix.push(".");
        let file = tempfile::Builder::new().prefix(&prefix).tempfile_in(folder).map_err(io)?;
        let mut writer = RecordingWriter {
            out: BufWriter::new(file),
            path: path.to_owned(),
            left: BYTES_MAX,
            disks,
            events: 0,
            order: EventOrder::default(),
            threads: Threads::default(),
            hasher: Sha256::new(),
        };
        match sizes {
            [_] => writer.put(&[MAGIC])?,
            _ => writer.put(&[MAGIC_OF_SEVERAL, &(sizes.len() as u32).to_le_bytes()])?,
        }
        for sectors in sizes {
            writer.put(&[&sectors.to_le_bytes()])?;
        }
        writer.put(&[&(metadata.len() as u32).to_le_bytes(), metadata.as_bytes()])?;
        Ok(writer)
    }

    fn put(&mut self, fields: &[&[u8]]) -> Result<(), RecordingError> {
        for field in fields {
            self.left = self.left.checked_sub(field.len() as u64).ok_or_else(|| {
                let reason = format!("a recording of more than {} GiB", BYTES_MAX >> 30);
                RecordingError::Refused { path: self.path.clone(), reason }
            })?;
            self.hasher.update(field);
            self.out.write_all(field).map_err(|source| RecordingError::Io { path: self.path.clone(), source })?;
        }
        Ok(())
    }

    fn event(&mut self, event: Event, fields: &[&[u8]]) -> Result<(), RecordingError> {
        self.order
            .admit(&event, &self.disks)
            .map_err(|reason| RecordingError::Refused { path: self.path.clone(), reason })?;
        self.events += 1;
        self.put(fields)
    }

    pub fn write(
        &mut self,
        id: u32,
        sector: u64,
        data: &[u8],
        fua: bool,
        preflush: bool,
    ) -> Result<(), RecordingError> {
        let flags = u8::from(fua) | u8::from(preflush) << 1;
        let Ok(length) = u32::try_from(data.len()) else {
            let reason = format!("a write of {} bytes is too long", data.len());
            return Err(RecordingError::Refused { path: self.path.clone(), reason });
        };
        let fields: [&[u8]; 6] =
            [&[tag::WRITE], &id.to_le_bytes(), &[flags], &sector.to_le_bytes(), &length.to_le_bytes(), data];
        self.event(Event::Write { id, sector, data: 0..data.len(), fua, preflush }, &fields)
    }

    pub fn zero(&mut self, id: u32, sector: u64, sectors: u64, discard: bool) -> Result<(), RecordingError> {
        let kind = if discard { tag::DISCARD } else { tag::WRITE_ZEROES };
        let fields: [&[u8]; 4] = [&[kind], &id.to_le_bytes(), &sector.to_le_bytes(), &sectors.to_le_bytes()];
        self.event(Event::Zero { id, sector, sectors, discard, order: 0 }, &fields)
    }

    pub fn flush(&mut self, id: u32, disk: u32) -> Result<(), RecordingError> {
        let event = Event::Flush { id, disk };
        match disk {
            0 => self.event(event, &[&[tag::FLUSH], &id.to_le_bytes()]),
            _ => self.event(event, &[&[tag::FLUSH_OF], &id.to_le_bytes(), &disk.to_le_bytes()]),
        }
    }

    pub fn complete(&mut self, id: u32) -> Result<(), RecordingError> {
        self.event(Event::Complete { id }, &[&[tag::COMPLETE], &id.to_le_bytes()])
    }

    pub fn started(&mut self, op: u32) -> Result<(), RecordingError> {
        self.event(Event::Started { op }, &[&[tag::STARTED], &op.to_le_bytes()])
    }

    pub fn returned(&mut self, op: u32, errno: u32) -> Result<(), RecordingError> {
        self.event(Event::Returned { op, errno }, &[&[tag::RETURNED], &op.to_le_bytes(), &errno.to_le_bytes()])
    }

    pub fn durable(&mut self) -> Result<(), RecordingError> {
        self.event(Event::Durable, &[&[tag::DURABLE]])
    }

    /// A thread of the program named `program` begins a system call.
    pub fn call_begins(&mut self, thread: u32, program: &str, call: &str) -> Result<(), RecordingError> {
        let step = CallStep::Begins { program: 0..program.len(), call: 0..call.len() };
        self.note(thread, step)?;
        self.put(&[&[tag::CALL_BEGINS], &thread.to_le_bytes()])?;
        for text in [program, call] {
            self.put(&[&(text.len() as u32).to_le_bytes(), text.as_bytes()])?;
        }
        Ok(())
    }

    /// It ends with `result`.
    pub fn call_ends(&mut self, thread: u32, result: i64) -> Result<(), RecordingError> {
        self.note(thread, CallStep::Ends { result })?;
        self.put(&[&[tag::CALL_ENDS], &thread.to_le_bytes(), &result.to_le_bytes()])
    }

    fn note(&mut self, thread: u32, step: CallStep) -> Result<(), RecordingError> {
        let note = CallNote { events: self.events as usize, thread, step };
        self.threads.admit(&note).map_err(|reason| RecordingError::Refused { path: self.path.clone(), reason })
    }

    /// Seal the recording and move it to its path.
    pub fn finish(mut self) -> Result<(), RecordingError> {
        let events = self.events.to_le_bytes();
        self.put(&[&[tag::END], &events])?;
        let path = self.path.clone();
        let io = |source| RecordingError::Io { path: path.clone(), source };
        let mut file = self.out.into_inner().map_err(|e| io(e.into_error()))?;
        file.write_all(&self.hasher.finalize()).map_err(io)?;
        file.as_file().sync_all().map_err(io)?;
        file.persist(&path).map_err(|e| io(e.error))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
