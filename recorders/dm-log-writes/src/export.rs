//! Writes a recording as a log.
//!
//! Requests are logged in the order of their completion, as the kernel does, with one exception. A request that
//! completes while a flush is under way is not covered by this flush, so it is logged behind the flush. This holds for
//! FUA writes too, so that the log's order is the order of completion wherever possible. If `durable` makes something
//! stable that no flush had covered, the log gets a flush there.
//!
//! An export loses three things: when each request was submitted (a write that was under way during a flush seems to
//! come after it), the requests that were never completed, and the difference between write-zeroes and a write of
//! zeros.

use std::collections::{HashMap, VecDeque};

use postcrash_core::recording::{Event, Recording};

use crate::writer::LogWriter;
use crate::{sectors_of, LogError};

/// What an export did.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ExportSummary {
    /// Entries of the log.
    pub entries: u64,
    /// Requests that were never completed and so are not in the log.
    pub unfinished: u64,
    /// Writes that completed after a write over the same sectors that was submitted later. In the log, the older
    /// content is last.
    pub overtaken: u64,
    /// FUA writes that completed while a flush was under way and so stand behind it.
    pub fua_behind_flush: u64,
}

/// Write `recording` to `out` as a log, whole or not at all. `marks` are (number of events before it, text), in order.
/// `go_on` is called for each event and tells whether to continue.
pub fn export(
    recording: &Recording,
    out: &std::path::Path,
    marks: &[(u64, String)],
    go_on: &mut dyn FnMut() -> bool,
) -> Result<ExportSummary, LogError> {
    if recording.disks().len() > 1 {
        let reason = format!("it has {} disks, and a log is of one", recording.disks().len());
        return Err(LogError::Refused { path: recording.path().to_owned(), reason });
    }
    let mut exporter = Exporter::new(recording, marks, LogWriter::create(out)?);
    let mut next_mark = 0;
    for event in 0..=recording.events().len() {
        while next_mark < marks.len() && marks[next_mark].0 <= event as u64 {
            exporter.completed(Item::Mark(next_mark))?;
            next_mark += 1;
        }
        if let Some(what) = recording.events().get(event) {
            exporter.event(event, what)?;
        }
        if !go_on() {
            return Err(LogError::Interrupted);
        }
    }
    exporter.finish()
}

/// What is written to the log, in the order of completion.
#[derive(Clone, Copy)]
enum Item<'a> {
    Mark(usize),
    Request(&'a Event),
}

struct UnderWay {
    event: usize,
    overtaken: bool,
}

struct Exporter<'a> {
    recording: &'a Recording,
    marks: &'a [(u64, String)],
    log: LogWriter,
    /// Items that are completed but not logged yet.
    held: VecDeque<Item<'a>>,
    logged: u64,
    /// Something was logged since the last flush.
    unflushed: bool,
    under_way: HashMap<u32, UnderWay>,
    /// Flushes (and PREFLUSH writes) under way. For each, how many items had completed when it was submitted.
    flushes: HashMap<u32, u64>,
    result: ExportSummary,
}

impl<'a> Exporter<'a> {
    fn new(recording: &'a Recording, marks: &'a [(u64, String)], log: LogWriter) -> Self {
        Exporter {
            recording,
            marks,
            log,
            held: VecDeque::new(),
            logged: 0,
            unflushed: false,
            under_way: HashMap::new(),
            flushes: HashMap::new(),
            result: ExportSummary::default(),
        }
    }

    fn event(&mut self, index: usize, event: &Event) -> Result<(), LogError> {
        let covered = self.logged + self.held.len() as u64;
        match *event {
            Event::Flush { id, .. } => {
                self.flushes.insert(id, covered);
            }
            Event::Write { id, preflush, .. } => {
                if preflush {
                    self.flushes.insert(id, covered);
                }
                self.under_way.insert(id, UnderWay { event: index, overtaken: false });
            }
            Event::Zero { id, .. } => {
                self.under_way.insert(id, UnderWay { event: index, overtaken: false });
            }
            Event::Complete { id } => self.complete(id)?,
            Event::Durable => {
                self.log_until(covered)?;
                if self.unflushed {
                    self.flush()?;
                }
            }
            Event::Started { .. } | Event::Returned { .. } => {}
        }
        Ok(())
    }

    fn complete(&mut self, id: u32) -> Result<(), LogError> {
        if let Some(covered) = self.flushes.remove(&id) {
            self.log_until(covered)?;
            self.flush()?;
        }
        match self.under_way.remove(&id) {
            Some(request) => self.request_completed(&request),
            None => self.release(),
        }
    }

    fn request_completed(&mut self, request: &UnderWay) -> Result<(), LogError> {
        let event = &self.recording.events()[request.event];
        self.result.overtaken += u64::from(request.overtaken);
        self.result.fua_behind_flush +=
            u64::from(matches!(event, Event::Write { fua: true, .. }) && !self.flushes.is_empty());
        let (start, end) = span(event);
        for older in self.under_way.values_mut().filter(|older| older.event < request.event) {
            let (older_start, older_end) = span(&self.recording.events()[older.event]);
            older.overtaken |= older_start < end && start < older_end;
        }
        self.completed(Item::Request(event))
    }

    fn completed(&mut self, item: Item<'a>) -> Result<(), LogError> {
        self.held.push_back(item);
        self.release()
    }

    /// Log what is held, unless a flush is under way.
    fn release(&mut self) -> Result<(), LogError> {
        if self.flushes.is_empty() {
            self.log_until(u64::MAX)?;
        }
        Ok(())
    }

    fn log_until(&mut self, count: u64) -> Result<(), LogError> {
        while self.logged < count {
            let Some(item) = self.held.pop_front() else { break };
            self.logged += 1;
            self.put(item)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), LogError> {
        self.unflushed = false;
        self.log.flush()
    }

    fn put(&mut self, item: Item<'a>) -> Result<(), LogError> {
        let event = match item {
            Item::Mark(index) => return self.log.mark(&self.marks[index].1),
            Item::Request(event) => event,
        };
        self.unflushed = true;
        match *event {
            Event::Write { sector, ref data, fua, .. } => {
                self.log.write(sector, &self.recording.bytes()[data.clone()], fua)
            }
            Event::Zero { sector, sectors, discard: true, .. } => self.log.discard(sector, sectors),
            Event::Zero { sector, sectors, discard: false, .. } => self.log.zeros(sector, sectors),
            _ => Ok(()),
        }
    }

    fn finish(mut self) -> Result<ExportSummary, LogError> {
        self.log_until(u64::MAX)?;
        self.result.unfinished = self.under_way.len() as u64;
        self.result.entries = self.log.entries();
        self.log.finish()?;
        Ok(self.result)
    }
}

/// The first sector of a write or zero, and the sector behind its last one.
fn span(event: &Event) -> (u64, u64) {
    match *event {
        Event::Write { sector, ref data, .. } => (sector, sector + sectors_of(data.len() as u64)),
        Event::Zero { sector, sectors, .. } => (sector, sector + sectors),
        _ => (0, 0),
    }
}
