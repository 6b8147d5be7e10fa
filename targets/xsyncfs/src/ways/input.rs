//! The way in: what we read, for the box.
//!
//! Whoever writes our input sees how much of it we have read. So we read a fixed amount ahead, whatever the box does, and
//! more only when a commit has made durable what the box did before it took its part.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use rustix::io::Errno;

use crate::release::{ours, Output};

const CREDIT_BYTES: usize = 1 << 20;
const READ_BYTES_MAX: usize = 1 << 16;

/// Input on its way to the box.
pub struct Input {
    /// So many bytes may be read.
    pub credit: Arc<AtomicUsize>,
    /// Read, and not yet written to the box.
    pending: VecDeque<u8>,
    /// Taken by the box, and not yet told.
    taken: usize,
    is_open: bool,
    /// The box has closed its input. The rest is read and dropped until this may be seen outside.
    is_refused: bool,
}

impl Input {
    pub fn new() -> Input {
        let credit = Arc::new(AtomicUsize::new(CREDIT_BYTES));
        Input { credit, pending: VecDeque::new(), taken: 0, is_open: true, is_refused: false }
    }

    /// Whether our input is to be read.
    pub fn wants_to_read(&self) -> bool {
        self.is_open && self.credit.load(Ordering::Relaxed) > 0
    }

    /// Whether there is something for the box.
    pub fn wants_to_write(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether the box has everything that there will ever be.
    pub fn is_over(&self) -> bool {
        self.is_refused || (!self.is_open && self.pending.is_empty())
    }

    /// Our input can be read.
    pub fn read(&mut self) {
        let mut buffer = [0; READ_BYTES_MAX];
        let length = READ_BYTES_MAX.min(self.credit.load(Ordering::Relaxed));
        match rustix::io::read(ours(0), &mut buffer[..length]) {
            Ok(0) => self.is_open = false,
            Ok(read) => {
                self.credit.fetch_sub(read, Ordering::Relaxed);
                if !self.is_refused {
                    self.pending.extend(&buffer[..read]);
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => self.is_open = false,
        }
    }

    /// The box can take something at `place`. Returns what the outside may see of it.
    pub fn write(&mut self, place: &OwnedFd) -> Option<Output> {
        match rustix::io::write(place, self.pending.as_slices().0) {
            Ok(written) => {
                self.pending.drain(..written);
                self.taken += written;
                // There is no hurry to tell while there is enough credit.
                (self.taken > CREDIT_BYTES / 2).then(|| Output::Taken(std::mem::take(&mut self.taken)))
            }
            Err(Errno::INTR | Errno::AGAIN) => None,
            Err(_) => Some(self.refuse()),
        }
    }

    /// The box has closed its input. Returns what the outside may see of it.
    pub fn refuse(&mut self) -> Output {
        self.is_refused = true;
        self.pending.clear();
        Output::Closed(0)
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{fcntl_setfl, OFlags};
    use rustix::pipe::pipe;

    use super::*;

    #[test]
    fn what_the_box_takes_is_told_when_half_of_the_credit_is_used() {
        let mut input = Input::new();
        let (reader, writer) = pipe().unwrap();
        fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
        input.pending.extend(vec![1; CREDIT_BYTES]);
        let mut taken = 0;
        while input.wants_to_write() {
            match input.write(&writer) {
                Some(Output::Taken(bytes)) => taken += bytes,
                Some(other) => panic!("{other:?}"),
                None => {}
            }
            rustix::io::read(&reader, &mut [0; READ_BYTES_MAX]).unwrap();
        }
        assert!(taken > CREDIT_BYTES / 2 && taken < CREDIT_BYTES);
    }

    #[test]
    fn without_credit_nothing_is_read() {
        let input = Input::new();
        assert!(input.wants_to_read() && !input.is_over());
        input.credit.store(0, Ordering::Relaxed);
        assert!(!input.wants_to_read());
    }

    #[test]
    fn a_box_that_closes_its_input_is_told_of_later() {
        let mut input = Input::new();
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        input.pending.extend(b"abc");
        assert_eq!(input.write(&writer), Some(Output::Closed(0)));
        assert!(input.is_over() && input.wants_to_read());
    }
}
