//! Requests of a recorded run that are done but not completed yet.
//!
//! While a run is recorded, writes and flushes are completed only when the guest stands still. By then the guest has
//! submitted everything that it submits without waiting. So a flush covers a write if, and only if, the guest was told
//! that the write was completed before it submitted the flush. If the disk completed requests as it finds them in the
//! ring, the host's scheduler would decide this: a write and a flush that come together can be found together, or one
//! after the other.

use crate::virtio::block::{Request, RequestKind};

/// A request, and its number in the recording.
pub struct Pending {
    pub request: Request,
    pub id: u32,
}

impl Pending {
    fn is_write(&self) -> bool {
        matches!(self.request.kind, RequestKind::Write { .. } | RequestKind::Zero { .. })
    }
}

#[derive(Default)]
pub struct PendingRequests {
    requests: Vec<Pending>,
}

impl PendingRequests {
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub fn add(&mut self, request: Request, id: u32) {
        self.requests.push(Pending { request, id });
    }

    /// Which requests are completed now that the guest stands still, in the order of submission. These are all of them,
    /// unless `draw`, which gets the number of writes, chooses one write. Then only the flushes are completed, or that
    /// write alone if there are no flushes.
    ///
    /// A write that came in parts is recorded as one, so its parts are completed together. If a part were completed
    /// before the others, a flush in between would cover it, and the recording could not express this.
    pub fn next(&mut self, draw: impl FnOnce(usize) -> Option<usize>) -> Vec<Pending> {
        let mut writes: Vec<u32> = self.requests.iter().filter(|each| each.is_write()).map(|each| each.id).collect();
        let only_writes = writes.len() == self.requests.len();
        writes.dedup();
        let all = std::mem::take(&mut self.requests);
        let drawn = if writes.is_empty() { None } else { draw(writes.len()) };
        let Some(drawn) = drawn else { return all };
        let is_now = |each: &Pending| if only_writes { each.id == writes[drawn] } else { !each.is_write() };
        let (now, later) = all.into_iter().partition(is_now);
        self.requests = later;
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(sector: u64) -> RequestKind {
        RequestKind::Write { sector, data: vec![0; 4096] }
    }

    /// Requests 0 (in two parts), 1 and 2. The last one is a flush.
    fn pending() -> PendingRequests {
        let mut pending = PendingRequests::default();
        for (kind, id) in [(write(0), 0), (write(8), 0), (write(64), 1), (RequestKind::Flush, 2)] {
            pending.add(Request::of(kind), id);
        }
        pending
    }

    fn ids(now: &[Pending]) -> Vec<u32> {
        now.iter().map(|each| each.id).collect()
    }

    #[test]
    fn without_a_draw_all_are_completed_in_the_order_of_submission() {
        let mut pending = pending();
        assert_eq!(ids(&pending.next(|_| None)), [0, 0, 1, 2]);
        assert!(pending.is_empty());
    }

    #[test]
    fn flushes_alone_are_not_drawn() {
        let mut pending = PendingRequests::default();
        pending.add(Request::of(RequestKind::Flush), 0);
        assert_eq!(ids(&pending.next(|count| Some(2 % count))), [0]);
        assert!(pending.next(|count| Some(2 % count)).is_empty());
    }

    #[test]
    fn the_parts_of_a_write_are_drawn_as_one() {
        for (drawn, wanted) in [(0, [vec![2], vec![0, 0], vec![1]]), (1, [vec![2], vec![1], vec![0, 0]])] {
            let mut pending = pending();
            let found: Vec<_> = (0..3).map(|_| ids(&pending.next(|count| Some(drawn.min(count - 1))))).collect();
            assert_eq!(found, wanted);
            assert!(pending.is_empty());
        }
    }
}
