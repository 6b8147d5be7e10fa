//! Pieces: the parts of writes that persist whole or not at all, and where the content of a sector comes from.

use postcrash_wire::units::SECTOR_BYTES;

/// Where the content of a sector comes from. Sources compare in submission order, and the base image comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source(u64);

impl Source {
    pub const BASE: Source = Source(0);

    pub(crate) fn written(start: usize) -> Source {
        Source((start as u64) << 1)
    }

    pub(crate) fn zeroed(order: usize) -> Source {
        Source((order as u64) << 1 | 1)
    }

    /// Where the sector's bytes start in the recording. None for zeros and for the base image.
    pub fn data(self) -> Option<usize> {
        (self.0 & 1 == 0 && self != Source::BASE).then_some((self.0 >> 1) as usize)
    }

    /// The source of the sector `index` sectors further on.
    pub(crate) fn sector(self, index: u64) -> Source {
        match self.data() {
            Some(start) => Source::written(start + index as usize * SECTOR_BYTES),
            None => self,
        }
    }
}

/// The part of a write that persists whole or not at all.
#[derive(Debug, Clone)]
pub struct Piece {
    pub sector: u64,
    pub sectors: u64,
    /// Source of the first sector.
    pub(crate) source: Source,
    /// Index of the submitting event in the recording.
    pub event: usize,
}

impl Piece {
    pub fn end(&self) -> u64 {
        self.sector + self.sectors
    }

    /// Its sectors, each with its source.
    pub fn sources(&self) -> impl Iterator<Item = (u64, Source)> + '_ {
        (0..self.sectors).map(|i| (self.sector + i, self.source.sector(i)))
    }
}
