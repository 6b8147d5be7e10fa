//! The commit rule: an output is released by a commit that began after the output arrived.
//!
//! This is all that decides when something leaves the box, and it knows nothing of files, terminals or time.

use crate::canary::{self, Canary};

/// Outputs that have left the box and not been released.
#[derive(Debug)]
pub struct Buffer<T> {
    /// Those that arrived since the last commit began.
    waiting: Vec<T>,
    /// Those that a running commit is for.
    committing: Option<Vec<T>>,
}

impl<T> Default for Buffer<T> {
    fn default() -> Self {
        Buffer { waiting: Vec::new(), committing: None }
    }
}

impl<T> Buffer<T> {
    /// An output has left the box.
    pub fn arrive(&mut self, output: T) {
        match &mut self.committing {
            Some(committing) if canary::is(Canary::RunningCommit) => committing.push(output),
            _ => self.waiting.push(output),
        }
    }

    /// Whether a commit would help, and none is running.
    pub fn wants_commit(&self) -> bool {
        !self.waiting.is_empty() && self.committing.is_none()
    }

    /// A commit begins. Whether an output waits for it.
    ///
    /// # Panics
    /// If one is running.
    pub fn begin(&mut self) -> bool {
        assert!(self.committing.is_none(), "one commit at a time");
        let outputs = std::mem::take(&mut self.waiting);
        !self.committing.insert(outputs).is_empty()
    }

    /// The running commit has succeeded. Returns what is released by it, in the order of arrival.
    pub fn succeed(&mut self) -> Vec<T> {
        self.committing.take().expect("a commit is running")
    }

    /// The running commit has failed: nothing that waits can become true any more. Returns what is dropped.
    pub fn fail(&mut self) -> Vec<T> {
        let mut dropped = self.committing.take().expect("a commit is running");
        dropped.append(&mut self.waiting);
        dropped
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_output_waits_for_a_commit_that_began_after_it() {
        let mut buffer = Buffer::default();
        buffer.arrive("before");
        buffer.begin();
        buffer.arrive("during");
        assert!(!buffer.wants_commit());
        assert_eq!(buffer.succeed(), ["before"]);
        assert!(buffer.wants_commit());
        buffer.begin();
        assert_eq!(buffer.succeed(), ["during"]);
        assert!(!buffer.wants_commit());
    }

    #[test]
    fn after_a_commit_that_failed_nothing_is_released() {
        let mut buffer = Buffer::default();
        buffer.arrive(1);
        buffer.begin();
        buffer.arrive(2);
        assert_eq!(buffer.fail(), [1, 2]);
        buffer.begin();
        assert!(buffer.succeed().is_empty());
    }

    #[derive(Clone, Copy, Debug)]
    enum Event {
        Arrive,
        Begin,
        Succeed,
    }

    proptest! {
        /// Modifications and outputs are numbered as they happen. A commit makes durable what happened before it began.
        #[test]
        fn what_is_released_is_durable_and_in_order(
            events in prop::collection::vec(
                prop_oneof![Just(Event::Arrive), Just(Event::Begin), Just(Event::Succeed)], 0..60
            )
        ) {
            let (mut buffer, mut began, mut durable, mut released) = (Buffer::default(), None, 0, Vec::new());
            for (now, event) in events.iter().enumerate() {
                match (event, began) {
                    (Event::Arrive, _) => buffer.arrive(now),
                    (Event::Begin, None) => {
                        buffer.begin();
                        began = Some(now);
                    }
                    (Event::Succeed, Some(start)) => {
                        durable = start;
                        began = None;
                        let outputs = buffer.succeed();
                        prop_assert!(outputs.iter().all(|&output| output < durable));
                        released.extend(outputs);
                    }
                    _ => {}
                }
            }
            prop_assert!(released.is_sorted());
            let arrived = events.iter().enumerate().filter(|(_, event)| matches!(event, Event::Arrive));
            let due: Vec<usize> = arrived.map(|(now, _)| now).filter(|&now| now < durable).collect();
            prop_assert_eq!(released, due);
        }
    }
}
