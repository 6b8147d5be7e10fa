//! A walk over the crash intervals of a recording that may come from anywhere, within bounded time and memory.

use postcrash_core::cursor::Cursor;
use postcrash_core::interval::Interval;
use postcrash_core::recording::{Event, Recording};
use pyo3::exceptions::PyValueError;
use pyo3::PyResult;

/// The most pieces, absent writes and instants in all crash intervals together. Each piece takes some 2 µs.
const PIECES_MAX: u64 = 1 << 25;
/// The most pieces of all discards and write-zeroes together. A few bytes of a recording can zero a whole disk.
const ZEROED_PIECES_MAX: u64 = 1 << 22;

/// A cursor that counts what it hands out.
pub struct BoundedCursor<'a> {
    cursor: Cursor<'a>,
    pieces: u64,
}

impl<'a> BoundedCursor<'a> {
    /// `unit_sectors` is the size of a piece.
    pub fn new(recording: &Recording, cursor: Cursor<'a>, unit_sectors: u64) -> PyResult<Self> {
        let zeroed = recording.events().iter().fold(0, |pieces: u64, event| match event {
            Event::Zero { sectors, .. } => pieces.saturating_add(sectors.div_ceil(unit_sectors)),
            _ => pieces,
        });
        if zeroed > ZEROED_PIECES_MAX {
            return Err(PyValueError::new_err(format!(
                "{}: its discards have {zeroed} pieces, more than {ZEROED_PIECES_MAX}",
                recording.path().display()
            )));
        }
        Ok(BoundedCursor { cursor, pieces: 0 })
    }

    pub fn get(&self) -> &Cursor<'a> {
        &self.cursor
    }

    /// The next crash interval; ValueError once there are too many pieces in them.
    pub fn next_interval(&mut self) -> PyResult<Option<Interval>> {
        if self.pieces > PIECES_MAX {
            return Err(PyValueError::new_err(format!("its crash intervals have more than {PIECES_MAX} pieces")));
        }
        let interval = self.cursor.next_interval();
        let size = |found: &Interval| found.pieces.len() + found.absent.len() + found.instants.len();
        self.pieces += interval.as_ref().map_or(0, |found| size(found) as u64);
        Ok(interval)
    }
}
