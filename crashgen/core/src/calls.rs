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
    /// It ends with this result; an error is a negative errno. `i64::MIN` if it never returns.
    Ends { result: i64 },
}

/// The longest text of a note, in bytes.
pub const TEXT_BYTES_MAX: usize = 4096;
/// The most notes of a recording.
pub const NOTES_MAX: usize = 1 << 16;

/// Checks that each thread has at most one system call under way, and that there are not too many notes.
#[derive(Default)]
pub struct Threads {
    calling: HashSet<u32>,
    notes: usize,
}

impl Threads {
    /// Refuses a note that cannot come next. The text is the reason.
    pub fn admit(&mut self, note: &CallNote) -> Result<(), String> {
        let thread = note.thread;
        self.notes += 1;
        if self.notes > NOTES_MAX {
            return Err(format!("more than {NOTES_MAX} notes of system calls"));
        }
        match note.step {
            CallStep::Begins { ref program, ref call } if program.len().max(call.len()) > TEXT_BYTES_MAX => {
                Err(format!("a system call's text is longer than {TEXT_BYTES_MAX} bytes"))
            }
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
