//! Notes of the system calls that a recording's programs made.

use std::collections::HashSet;
use std::ops::Range;

/// A note that stands between events: a thread of a program begins or ends a system call. No crash state depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallNote {
    /// So many events come before it.
    pub events: usize,
    /// Threads are numbered by their first call.
    pub thread: u32,
    pub step: CallStep,
}

/// What happens to a system call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallStep {
    /// It begins. The ranges in the file hold text: the name of the program, and the call.
    Begins { program: Range<usize>, call: Range<usize> },
    /// It ends with this result; an error is a negative errno.
    Ends { result: i64 },
}

/// Checks that each thread has at most one system call under way.
#[derive(Default)]
pub struct Threads {
    calling: HashSet<u32>,
}

impl Threads {
    /// Refuses a note that cannot come next. The text is the reason.
    pub fn admit(&mut self, note: &CallNote) -> Result<(), String> {
        let thread = note.thread;
        match note.step {
            CallStep::Begins { .. } if !self.calling.insert(thread) => {
                Err(format!("thread {thread} begins a system call within another one"))
            }
            CallStep::Ends { .. } if !self.calling.remove(&thread) => {
                Err(format!("thread {thread} ends a system call that it has not begun"))
            }
            _ => Ok(()),
        }
    }
}
