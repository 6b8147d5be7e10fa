//! The rules of the drive: what a power cut may do to writes that it had taken.
//!
//! A write is cut into pieces at multiples of the atomic unit. At a crash every piece that is in flight (submitted
//! and not stable) is kept or lost on its own. A sector then shows the last kept piece, in submission order, among those
//! that cover it, else its stable content; it never shows anything submitted before what is stable there. A flush
//! makes stable exactly the writes that had completed when it was submitted, from the moment it completes.
//! FUA makes stable its own write when it completes, and orders nothing else. A PREFLUSH write is a flush, submitted
//! with it, and a write that starts when that flush is done (Linux, Documentation/block/writeback_cache_control.rst):
//! if any of it is kept, nothing that the flush covers is lost. Discard and write-zeroes are in flight like a write of
//! zeros.
//!
//! Not modelled: bit rot, misdirected writes, pieces smaller than a sector, and what a drive may return for a
//! discarded sector other than zeros or the old content.

use crate::BLOCK_SECTORS;

/// One drive. [`named`] finds it by name.
pub trait DeviceModel: Sync {
    fn name(&self) -> &'static str;
    /// Sectors (512 B) of the unit that persists whole or not at all; writes are cut at multiples of it.
    fn atomic_unit_sectors(&self) -> u64 {
        BLOCK_SECTORS
    }
    /// Whether a completed flush makes anything stable.
    fn honours_flush(&self) -> bool {
        true
    }
    /// Whether a completed FUA write is stable.
    fn honours_fua(&self) -> bool {
        true
    }
}

/// A volatile write cache that honours flush and FUA. The default.
pub struct Cache;

impl DeviceModel for Cache {
    fn name(&self) -> &'static str {
        "cache"
    }
}

/// A drive whose flush and FUA do nothing: nothing becomes stable.
pub struct Lying;

impl DeviceModel for Lying {
    fn name(&self) -> &'static str {
        "lying"
    }
    fn honours_flush(&self) -> bool {
        false
    }
    fn honours_fua(&self) -> bool {
        false
    }
}

const MODELS: [&dyn DeviceModel; 2] = [&Cache, &Lying];

/// Names of all models.
pub fn names() -> impl Iterator<Item = &'static str> {
    MODELS.iter().map(|model| model.name())
}

pub fn named(name: &str) -> Option<&'static dyn DeviceModel> {
    MODELS.into_iter().find(|model| model.name() == name)
}
