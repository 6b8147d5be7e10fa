//! `through` and `plp`: a drive that writes through its cache, or has no volatile one.
//!
//! A request is stable when it completes, without a flush and without FUA. So writes become stable in the order of
//! their completion. At a crash, every piece of the requests that are under way is kept or lost on its own. A sector
//! then shows the piece that was submitted last among the kept pieces that cover it, as in `cache`: of two writes that
//! were under way together, the drive may have done either one last, and file systems do not overlap them. A flush has
//! nothing to do. Everything that the flush of a PREFLUSH write covers is stable before the write is submitted.
//!
//! Every state of `through` is a state of `cache` with the same unit, at the same instant.
//!
//! `plp` is `through:512`. This is a drive with power-loss protection: its capacitors save whatever it has completed. A
//! request under way may be torn at any sector.

use super::{name_with_unit, DeviceModel};

/// A drive whose write cache is off, or outlives the power.
pub struct WriteThrough {
    pub unit_sectors: u64,
}

impl DeviceModel for WriteThrough {
    fn name(&self) -> String {
        match self.unit_sectors {
            1 => "plp".into(),
            sectors => name_with_unit("through", sectors),
        }
    }

    fn atomic_unit_sectors(&self) -> u64 {
        self.unit_sectors
    }

    fn writes_through(&self) -> bool {
        true
    }
}
