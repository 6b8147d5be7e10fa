//! `prefix`: what tools see that replay a log of dm-log-writes up to one of its entries.
//!
//! Such a log has an entry for each write or discard, in the order of completion. A replay takes whole entries, as long as
//! the write may be, from the first up to some point (fstests' replay-log stops at any). So at a crash the writes are kept
//! up to some point in completion order, and all later ones are lost; a sector shows the write that completed last, even
//! where an older one overtook a newer one. What was never completed is in no log and never kept. Flush and FUA make
//! stable what they do on any drive, and with it all that had completed before: a crash after them is a later point.
//!
//! This is no drive: reordered and torn writes are missing, and older content over newer is not a thing that a drive
//! may show. It is here to say what such a tool finds, and misses, in a recording. The kernel's target puts FUA writes
//! before writes that completed earlier and were not flushed yet; a recording imported from its log has that order.

use super::{DeviceModel, Order};

/// A replay of the log.
pub struct Prefix;

impl DeviceModel for Prefix {
    fn name(&self) -> String {
        "prefix".into()
    }

    /// A write is never cut.
    fn atomic_unit_sectors(&self) -> u64 {
        u64::MAX
    }

    fn order(&self) -> Order {
        Order::Completion
    }
}
