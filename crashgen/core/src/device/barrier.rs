//! `barrier`: a volatile write cache in which a flush orders and does not persist.
//!
//! Such a drive completes a flush early, but never persists anything behind it before what is in front of it (the
//! cache barrier of BarrierFS, FAST'18; drives that acknowledge a flush when they have queued it). Nothing becomes
//! stable after the set-up. Without overlaps, a crash keeps a prefix of the epochs between flushes, and any of the
//! pieces of the one epoch that follows.
//!
//! When requests overlap a flush, only what the host can know is ordered. What had completed when the flush was
//! submitted is in front of the flush. What is submitted after the flush has completed is behind it. If any piece
//! behind a flush is kept, all pieces in front of it are kept. A write that is under way when the flush is submitted,
//! and a write that is submitted before the flush completes, is on neither side: the flush says nothing about it. A
//! flush that never completes has nothing behind it.
//!
//! The flush of a PREFLUSH write is a flush like any other, and its own write is behind it. The flush ends somewhere
//! between the submission and the completion of the write, and the host learns of it with the latter. So other writes
//! are behind this flush if they are submitted after the write has completed. FUA does nothing: its write is like any
//! other, and orders nothing. Discard and write-zeroes are ordered like writes.
//!
//! Flushes with earlier submission have less in front of them. So a write needs to know only one of the flushes that it
//! is behind, the one that was submitted last: its *barrier*. In terms of barriers, a crash keeps all that had completed
//! before some flush was submitted, any of the other pieces whose barrier is this flush or an earlier one, and no piece
//! with a later barrier. This is one *stage* for each flush, and each stage is a product of components. A state that
//! keeps all that the next stage must keep belongs to the next stage, too, and is counted there only.
//!
//! Every state of `cache` is a state of `barrier`, and every state of `barrier` one of `lying` with the same unit, at
//! the same instant. A state that is possible at an instant stays possible at all later ones.

use super::{name_with_unit, DeviceModel};

/// A drive that keeps order across flushes and nothing else.
pub struct BarrierDrive {
    pub unit_sectors: u64,
}

impl DeviceModel for BarrierDrive {
    fn name(&self) -> String {
        name_with_unit("barrier", self.unit_sectors)
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

    fn flush_orders(&self) -> bool {
        true
    }
}
