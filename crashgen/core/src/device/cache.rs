//! `cache` and `torn`: a volatile write cache that honours flush and FUA.
//!
//! At a crash every piece in flight is kept or lost on its own, in whatever order it was submitted or completed. A
//! sector then shows the piece that was submitted last among the kept pieces that cover it. If there is none, it shows
//! its stable content. It never shows anything submitted before what is stable there. FUA orders nothing but its own
//! write.
//!
//! `torn` is `cache:512`: a block of 4 KiB can tear between any two of its sectors.

use super::{name_with_unit, DeviceModel};

/// The default.
pub struct Cache {
    pub unit_sectors: u64,
}

impl DeviceModel for Cache {
    fn name(&self) -> String {
        match self.unit_sectors {
            1 => "torn".into(),
            sectors => name_with_unit("cache", sectors),
        }
    }

    fn atomic_unit_sectors(&self) -> u64 {
        self.unit_sectors
    }
}
