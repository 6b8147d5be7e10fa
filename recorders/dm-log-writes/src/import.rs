//! Reads a log as a recording.
//!
//! The log has no submission times. So each request counts as submitted when the one before it was completed, and as
//! completed at once. A flush entry is a flush (followed by a write if the entry has data), and it covers everything
//! before it. The import invents nothing that the log does not tell: a write that overlapped a flush or a FUA write
//! could have survived without it, but those crash states are not in the recording. The recording starts with `durable`
//! (the disk before the log is stable) and has no operations. The caller gets each mark with its place among the events
//! and decides about it.

use std::path::Path;

use postcrash_core::recording::RecordingWriter;
use postcrash_wire::units::{blocks_of, BLOCK_SECTORS, SECTOR_BYTES};

use crate::reader::{Body, LogReader};
use crate::LogError;

/// A write entry is recorded in parts of at most this many sectors, cut at blocks, so that each part fits in memory.
const PART_SECTORS_MAX: u64 = (4 << 20) / SECTOR_BYTES as u64;
/// How many bytes of marks a summary holds. A recording's metadata has at most 16 MiB.
const MARKS_BYTES_MAX: usize = 4 << 20;
const MARK_OVERHEAD_BYTES: usize = 48;

/// The text of a mark and the number of events that stand before it in the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogMark {
    pub text: String,
    pub event: u64,
}

/// What a log holds.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Summary {
    pub log_sector_bytes: u64,
    pub entries: u64,
    /// Entries with data; `fua_writes` of them have the FUA flag.
    pub writes: u64,
    pub fua_writes: u64,
    /// Entries with the flush flag.
    pub flushes: u64,
    pub discards: u64,
    pub marks: Vec<LogMark>,
    /// Marks that found no place in `marks`.
    pub marks_left_out: u64,
    /// Entries with the metadata flag.
    pub metadata_flags: u64,
    /// Writes whose data was shorter than their sectors (DAX); the rest is zeros.
    pub padded_writes: u64,
    /// Something that looks like one more entry stands behind the entries that the superblock counts.
    pub goes_on: bool,
    /// Pieces in flight in the largest crash interval, and summed over all.
    pub interval_pieces_max: u64,
    pub interval_pieces: u64,
}

/// Read the whole log of a disk with `disk_sectors` (512 B) and say what it holds. `go_on` is called for each entry.
pub fn scan(log: &Path, disk_sectors: u64, go_on: &mut dyn FnMut() -> bool) -> Result<Summary, LogError> {
    let mut reader = LogReader::open(log, disk_sectors)?;
    let (log_sector_bytes, entries) = (reader.log_sector_bytes(), reader.entries());
    let summary = Summary { log_sector_bytes, entries, ..Summary::default() };
    let mut counter = Counter { summary, events: 1, marks_bytes: 0, pieces: 0 };
    while let Some(entry) = reader.next_entry()? {
        if !go_on() {
            return Err(LogError::Interrupted);
        }
        counter.summary.metadata_flags += u64::from(entry.metadata);
        if entry.flush {
            counter.flush();
        }
        match entry.body {
            Body::Nothing { .. } => {}
            Body::Write { sector, sectors, fua, padded, .. } => {
                counter.summary.padded_writes += u64::from(padded);
                counter.write(sector, sectors, fua);
            }
            Body::Discard { sector, sectors } => {
                counter.summary.discards += 1;
                counter.submit(sector, sectors, 1);
            }
            Body::Mark { text } => counter.mark(&text),
        }
    }
    counter.interval_ends();
    counter.summary.goes_on = reader.goes_on();
    Ok(counter.summary)
}

struct Counter {
    summary: Summary,
    events: u64,
    marks_bytes: usize,
    /// How many pieces are in flight at this point.
    pieces: u64,
}

impl Counter {
    fn interval_ends(&mut self) {
        self.summary.interval_pieces = self.summary.interval_pieces.saturating_add(self.pieces);
        self.summary.interval_pieces_max = self.summary.interval_pieces_max.max(self.pieces);
    }

    fn flush(&mut self) {
        self.summary.flushes += 1;
        self.events += 2;
        self.interval_ends();
        self.pieces = 0;
    }

    fn write(&mut self, sector: u64, sectors: u64, fua: bool) {
        self.summary.writes += 1;
        let requests = parts(sector, sectors).count() as u64;
        self.submit(sector, sectors, requests);
        if fua {
            self.summary.fua_writes += 1;
            self.interval_ends();
            self.pieces -= pieces(sector, sectors);
        }
    }

    fn submit(&mut self, sector: u64, sectors: u64, requests: u64) {
        self.events += 2 * requests;
        self.pieces += pieces(sector, sectors);
    }

    fn mark(&mut self, text: &[u8]) {
        let text = legible(text);
        let bytes = self.marks_bytes + text.len() + MARK_OVERHEAD_BYTES;
        if bytes > MARKS_BYTES_MAX {
            self.summary.marks_left_out += 1;
            return;
        }
        self.marks_bytes = bytes;
        self.summary.marks.push(LogMark { text, event: self.events });
    }
}

/// How many blocks the sectors touch.
fn pieces(sector: u64, sectors: u64) -> u64 {
    let blocks = blocks_of(sector, sectors);
    blocks.end - blocks.start
}

/// A mark's bytes as text; what is not printable UTF-8 is escaped.
pub(crate) fn legible(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => bytes.escape_ascii().to_string(),
    }
}

/// The sectors, cut into parts for the recording: (sector, sectors).
pub(crate) fn parts(sector: u64, sectors: u64) -> impl Iterator<Item = (u64, u64)> {
    let end = sector + sectors;
    let mut at = sector;
    std::iter::from_fn(move || {
        let part_end = (at - at % BLOCK_SECTORS + PART_SECTORS_MAX).min(end);
        let part = (at, part_end - at);
        at = part_end;
        (part.1 > 0).then_some(part)
    })
}

/// Write the recording of the log to `out`, whole or not at all. `metadata` is JSON text.
pub fn import(
    log: &Path,
    disk_sectors: u64,
    out: &Path,
    metadata: &str,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<(), LogError> {
    let mut reader = LogReader::open(log, disk_sectors)?;
    let mut writer = RecordingWriter::create(out, &[disk_sectors], metadata)?;
    writer.durable()?;
    let mut importer = Importer { writer, log, next_id: 0, buffer: Vec::new() };
    while let Some(entry) = reader.next_entry()? {
        if entry.flush {
            let id = importer.id()?;
            importer.writer.flush(id, 0)?;
            importer.writer.complete(id)?;
        }
        match entry.body {
            Body::Write { sector, sectors, data, fua, .. } => {
                importer.write(&reader, sector, sectors, data, fua, go_on)?;
            }
            Body::Discard { sector, sectors } => {
                let id = importer.id()?;
                importer.writer.zero(id, sector, sectors, true)?;
                importer.writer.complete(id)?;
            }
            Body::Nothing { .. } | Body::Mark { .. } => {}
        }
        if !go_on() {
            return Err(LogError::Interrupted);
        }
    }
    Ok(importer.writer.finish()?)
}

struct Importer<'a> {
    writer: RecordingWriter,
    log: &'a Path,
    next_id: u32,
    buffer: Vec<u8>,
}

impl Importer<'_> {
    fn id(&mut self) -> Result<u32, LogError> {
        let id = self.next_id;
        let reason = || "a recording cannot hold so many requests".to_owned();
        self.next_id =
            id.checked_add(1).ok_or_else(|| LogError::Refused { path: self.log.to_owned(), reason: reason() })?;
        Ok(id)
    }

    fn write(
        &mut self,
        reader: &LogReader,
        sector: u64,
        sectors: u64,
        data: u64,
        fua: bool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), LogError> {
        let first = self.next_id;
        for (at, count) in parts(sector, sectors) {
            self.part(reader, at, count, data + (at - sector) * SECTOR_BYTES as u64, fua, sectors > PART_SECTORS_MAX)?;
            if !go_on() {
                return Err(LogError::Interrupted);
            }
        }
        (first..self.next_id).try_for_each(|id| self.writer.complete(id))?;
        Ok(())
    }

    /// Submit a part of a write. Zeros in a large write become write-zeroes again, because QEMU logs write-zeroes as
    /// such a write.
    fn part(
        &mut self,
        reader: &LogReader,
        sector: u64,
        sectors: u64,
        data: u64,
        fua: bool,
        large: bool,
    ) -> Result<(), LogError> {
        self.buffer.resize(sectors as usize * SECTOR_BYTES, 0);
        reader.read_exact_at(&mut self.buffer, data)?;
        let id = self.id()?;
        if large && !fua && self.buffer.iter().all(|&byte| byte == 0) {
            self.writer.zero(id, sector, sectors, false)?;
        } else {
            self.writer.write(id, sector, &self.buffer, fua, false)?;
        }
        Ok(())
    }
}
