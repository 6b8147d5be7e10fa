//! Requests of a recorded run that are done but not completed yet.
//!
//! While a run is recorded, writes and flushes are completed only when the guest stands still. By then the guest has
//! submitted everything that it submits without waiting. So a flush covers a write if, and only if, the guest was told
//! that the write was completed before it submitted the flush. If the disk completed requests as it finds them in the
//! ring, the host's scheduler would decide this: a write and a flush that come together can be found together, or one
//! after the other.

use std::ops::Range;

use crate::virtio::block::Request;

/// A request, and its number in the recording.
pub struct Pending {
    pub request: Request,
    pub id: u32,
}

impl Pending {
    /// The sectors that a write changes.
    fn written(&self) -> Option<Range<u64>> {
        self.request.kind.written()
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
    /// unless `draw`, which gets the number of runs, chooses one run of writes. Then only the flushes are completed, or
    /// that run alone if there are no flushes.
    ///
    /// Writes that come one after the other, each followed by the next sectors, are one run. A disk joins them, and a
    /// file system that waits for one of them mostly waits for all. If each were drawn, a long run would hardly ever be
    /// done before a write that came first, and what does not wait for that one would not show. The parts of a write
    /// that is recorded as one are one run too: if a flush in between covered one of them, the recording could not
    /// express this.
    pub fn next(&mut self, draw: impl FnOnce(usize) -> Option<usize>) -> Vec<Pending> {
        let all = std::mem::take(&mut self.requests);
        let (mut runs, mut end) = (0, None);
        let run_of = all.iter().map(|each| {
            let written = each.written()?;
            runs += usize::from(end != Some(written.start));
            end = Some(written.end);
            Some(runs - 1)
        });
        let run_of: Vec<Option<usize>> = run_of.collect();
        let Some(drawn) = (if runs == 0 { None } else { draw(runs) }) else { return all };
        let now = if run_of.contains(&None) { None } else { Some(drawn) };
        let (mut completed, mut later) = (Vec::new(), Vec::new());
        for (each, run) in all.into_iter().zip(run_of) {
            if run == now { &mut completed } else { &mut later }.push(each);
        }
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
    fn writes_that_follow_one_another_are_drawn_as_one() {
        for (drawn, wanted) in [(0, [vec![2], vec![0, 0], vec![1]]), (1, [vec![2], vec![1], vec![0, 0]])] {
            let mut pending = pending();
            let found: Vec<_> = (0..3).map(|_| ids(&pending.next(|count| Some(drawn.min(count - 1))))).collect();
            assert_eq!(found, wanted);
            assert!(pending.is_empty());
        }
    }
}
