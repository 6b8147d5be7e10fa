//! `ordered`: a drive that persists writes in the order of their submission.
//!
//! At a crash the pieces are kept up to some point in submission order (the pieces of one write from its first sector on),
//! and all later ones are lost. Completion plays no part in it: a write that never completed is kept if a later one is.
//! Flush and FUA make stable what they do on any drive, and here with it all that was submitted before; so FUA is a
//! barrier for what came before it. A PREFLUSH write needs no flush to come after what it covers.

use super::{name_with_unit, DeviceModel, Order};

/// A drive that does not reorder.
pub struct Ordered {
    pub unit_sectors: u64,
}

impl DeviceModel for Ordered {
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
