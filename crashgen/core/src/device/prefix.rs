//! `prefix`: what a tool sees that replays a log of dm-log-writes up to one of its entries.
//!
//! Such a log has an entry for each write or discard, in the order of completion. A replay takes whole entries, however
//! long the write is, from the first one up to some point (fstests' replay-log can stop at any entry). So at a crash
//! the writes are kept up to some point in completion order, and all later ones are lost. A sector shows the write that
//! completed last, even if it was submitted before the write that it hides. A write that never completed is in no log
//! and is never kept. Flush and FUA make the same writes stable as on any drive, and also everything that had completed
//! before these writes: a crash after them is a later point.
//!
//! This model is no drive: reordered and torn writes are missing, and no drive may show older content over newer. The
//! model is here to say what such a tool finds and misses in a recording. The kernel's target puts FUA writes before
//! writes that completed earlier and were not flushed yet. A recording that is imported from its log has that order.

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
