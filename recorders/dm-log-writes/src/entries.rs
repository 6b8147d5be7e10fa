//! A log's entries one by one, each with its place among the events of the recording that the log becomes.

use std::path::Path;

use postcrash_wire::units::SECTOR_BYTES;

use crate::import::{legible, parts};
use crate::reader::{Body, LogReader};
use crate::LogError;

/// One entry of a log. If device mapper has cut a flush off a write, it leaves FUA on the flush.
#[derive(Debug, PartialEq, Eq)]
pub enum LogItem {
    Write { sector: u64, data: Vec<u8>, fua: bool },
    Discard { sector: u64, sectors: u64 },
    Flush { fua: bool },
    Mark { text: String },
}

/// Call `each` with everything in the log of a disk with `disk_sectors` (512 B), and with the number of events that
/// stand before it in the recording. `go_on` is called for each entry and tells whether to continue.
pub fn entries(
    log: &Path,
    disk_sectors: u64,
    go_on: &mut dyn FnMut() -> bool,
    each: &mut dyn FnMut(LogItem, u64),
) -> Result<(), LogError> {
    let mut reader = LogReader::open(log, disk_sectors)?;
    // The recording starts with a mark.
    let mut events = 1;
    while let Some(entry) = reader.next_entry()? {
        if !go_on() {
            return Err(LogError::Interrupted);
        }
        if entry.flush {
            each(LogItem::Flush { fua: matches!(entry.body, Body::Nothing { fua: true }) }, events);
            events += 2;
        }
        match entry.body {
            Body::Nothing { .. } => {}
            Body::Write { sector, sectors, data: start, fua, .. } => {
                let mut data = vec![0; sectors as usize * SECTOR_BYTES];
                reader.read_exact_at(&mut data, start)?;
                each(LogItem::Write { sector, data, fua }, events);
                events += 2 * parts(sector, sectors).count() as u64;
            }
            Body::Discard { sector, sectors } => {
                each(LogItem::Discard { sector, sectors }, events);
                events += 2;
            }
            Body::Mark { text } => each(LogItem::Mark { text: legible(&text) }, events),
        }
    }
    Ok(())
}
