//! `ordered`: a drive that persists writes in the order of their submission.
//!
//! At a crash the pieces are kept up to some point in submission order, and all later ones are lost. The pieces of one
//! write are kept from its first sector on. Completion plays no part: a write that never completed is kept if a later
//! one is. Flush and FUA make the same writes stable as on any drive, and also everything submitted before these
//! writes. So FUA is a barrier for what came before it. A PREFLUSH write persists after what its flush covers even
//! without this flush.

use super::{name_with_unit, DeviceModel, Order};

/// A drive that does not reorder.
pub struct OrderedDrive {
    pub unit_sectors: u64,
}

impl DeviceModel for OrderedDrive {
    fn name(&self) -> String {
        name_with_unit("ordered", self.unit_sectors)
    }

    fn atomic_unit_sectors(&self) -> u64 {
        self.unit_sectors
    }

    fn order(&self) -> Order {
        Order::Submission
    }
}
