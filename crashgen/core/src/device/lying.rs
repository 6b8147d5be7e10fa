//! `lying`: a volatile write cache whose flush and FUA do nothing.
//!
//! This model is as `cache`, but nothing becomes stable after the set-up. A flush completes and covers nothing, and a
//! PREFLUSH write waits for nothing. So at each instant any piece that was written since the set-up may be lost.

use super::{name_with_unit, DeviceModel};

/// A drive with its write cache on and no barriers.
pub struct LyingDrive {
    pub unit_sectors: u64,
}

impl DeviceModel for LyingDrive {
    fn name(&self) -> String {
        name_with_unit("lying", self.unit_sectors)
    }

    fn atomic_unit_sectors(&self) -> u64 {
        self.unit_sectors
    }

    fn honours_flush(&self) -> bool {
        false
    }

    fn honours_fua(&self) -> bool {
        false
    }
}
