//! Requests of a recorded run that are done but not completed yet.
//!
//! While a run is recorded, writes and flushes are completed only when the guest stands still. By then the guest has
//! submitted everything that it submits without waiting. So a flush covers a write if, and only if, the guest was told
//! that the write was completed before it submitted the flush. If the disk completed requests as it finds them in the
//! ring, the host's scheduler would decide this: a write and a flush that come together can be found together, or one
//! after the other.

use crate::virtio::block::Request;

/// A request, and its number in the recording.
pub struct PendingRequest {
    pub request: Request,
    pub id: u32,
    /// The run of writes that it belongs to; None for a flush.
    run: Option<usize>,
}

/// Writes that come one after the other, each to the next sectors, are one run, unless a flush or a completion lies
/// between them. A disk joins them, and a file system that waits for one of them mostly waits for all. If each were
/// drawn, a long run would hardly ever be done before a write that came first, and what does not wait for that one
/// would not show. The parts of a write that is recorded as one are one run too: if a flush in between covered one of
/// them, the recording could not express this.
#[derive(Default)]
pub struct PendingRequests {
    requests: Vec<PendingRequest>,
    runs: usize,
    /// The disk and the sector with which the last run goes on. None if it does not go on.
    end: Option<(u32, u64)>,
}

impl PendingRequests {
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub fn add(&mut self, request: Request, id: u32) {
        let (disk, written) = (request.disk, request.kind.written());
        let run = written.as_ref().map(|sectors| {
            self.runs += usize::from(self.end != Some((disk, sectors.start)));
            self.runs
        });
        self.end = written.map(|sectors| (disk, sectors.end));
        self.requests.push(PendingRequest { request, id, run });
    }

    /// Which requests are completed now that the guest stands still, in the order of submission. These are all of them,
    /// unless `draw`, which gets the number of runs, chooses one. Then only the flushes are completed, or that run
    /// alone if there are no flushes.
    pub fn next(&mut self, draw: impl FnOnce(usize) -> Option<usize>) -> Vec<PendingRequest> {
        self.end = None;
        let all = std::mem::take(&mut self.requests);
        let mut runs: Vec<usize> = all.iter().filter_map(|each| each.run).collect();
        runs.dedup();
        let drawn = if runs.is_empty() { None } else { draw(runs.len()) };
        let Some(drawn) = drawn else { return all };
        let now = if all.iter().all(|each| each.run.is_some()) { Some(runs[drawn]) } else { None };
        let (completed, later) = all.into_iter().partition(|each| each.run == now);
        self.requests = later;
        completed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtio::block::RequestKind;

    fn write(sector: u64) -> RequestKind {
        RequestKind::Write { sector, data: vec![0; 4096] }
    }

    /// Requests 0 (in two parts), 1 and 2. The last one is a flush.
    fn pending() -> PendingRequests {
        let mut pending = PendingRequests::default();
        for (kind, id) in [(write(0), 0), (write(8), 0), (write(64), 1), (RequestKind::Flush { disk: 0 }, 2)] {
            pending.add(Request::of(kind), id);
        }
        pending
    }

    fn ids(now: &[PendingRequest]) -> Vec<u32> {
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
        pending.add(Request::of(RequestKind::Flush { disk: 0 }), 0);
        assert_eq!(ids(&pending.next(|count| Some(2 % count))), [0]);
        assert!(pending.next(|count| Some(2 % count)).is_empty());
    }

    /// What is completed, the youngest run first.
    fn youngest_first(pending: &mut PendingRequests) -> Vec<Vec<u32>> {
        let mut next = || ids(&pending.next(|count| Some(count - 1)));
        std::iter::from_fn(|| Some(next()).filter(|now| !now.is_empty())).collect()
    }

    #[test]
    fn a_flush_and_a_completion_end_a_run() {
        let mut pending = PendingRequests::default();
        for (id, kind) in [write(0), write(8), RequestKind::Flush { disk: 0 }, write(16)].into_iter().enumerate() {
            pending.add(Request::of(kind), id as u32);
        }
        assert_eq!(ids(&pending.next(|count| Some(count - 1))), [2]);
        pending.add(Request::of(write(24)), 4);
        pending.add(Request::of(write(64)), 5);
        pending.add(Request::of(write(32)), 6);
        assert_eq!(youngest_first(&mut pending), [vec![6], vec![5], vec![4], vec![3], vec![0, 1]]);
    }

    #[test]
    fn writes_that_follow_one_another_are_drawn_as_one() {
        for (drawn, wanted) in [(0, [vec![2], vec![0, 0], vec![1]]), (1, [vec![2], vec![1], vec![0, 0]])] {
            let mut pending = pending();
            let found: Vec<_> = (0..3).map(|_| ids(&pending.next(|count| Some(drawn.min(count - 1))))).collect();
            assert_eq!(found, wanted);
            assert!(pending.is_empty());
        }
    }
}
