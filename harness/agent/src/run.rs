//! Running a workload, each operation marked in the disk's own order.

use std::io;

use postcrash_wire::{Message, Operation, Run};

use crate::blktrace::Blktrace;
use crate::mailbox::Mailbox;
use crate::mount::{mount, unmount};
use crate::operations::perform;
use crate::sys::errno;
use crate::{commit, TEST_DISK};

/// First word of our messages in a trace of block requests.
const MESSAGE: &str = "postcrash";

/// Mount, set up, make that durable, run the operations, say so, unmount. Stops at the first operation that fails.
pub fn run(mailbox: &mut Mailbox, run: &Run) -> io::Result<()> {
    // SAFETY: plain number; workloads give modes exactly.
    unsafe { libc::umask(0) };
    let mut marks = Marks { mailbox, trace: None };
    if run.blktrace {
        marks.trace = Some(Blktrace::start(TEST_DISK)?);
    }
    mount(TEST_DISK, &run.mount).map_err(|e| io::Error::new(e.kind(), format!("mount: {e}")))?;
    let done = operations(&mut marks, run).and_then(|()| marks.done());
    unmount()?;
    done
}

/// Says how far the operations are: to the crash disk, and into the trace of block requests where there is one.
struct Marks<'a> {
    mailbox: &'a mut Mailbox,
    trace: Option<Blktrace>,
}

impl Marks<'_> {
    fn started(&mut self, op: u32) -> io::Result<()> {
        self.mailbox.send(&Message::Started { op })?;
        self.trace.as_mut().map_or(Ok(()), |trace| trace.message(&format!("{MESSAGE} started {op}")))
    }

    fn returned(&mut self, op: u32, errno: u32) -> io::Result<()> {
        let traced = self.trace.as_mut().map_or(Ok(()), |trace| trace.message(&format!("{MESSAGE} returned {op}")));
        traced.and_then(|()| self.mailbox.send(&Message::Returned { op, errno }))
    }

    fn done(&mut self) -> io::Result<()> {
        let trace = self.trace.take().map_or(Ok(Vec::new()), Blktrace::finish)?;
        self.mailbox.send(&Message::Done(trace))
    }
}

fn operations(marks: &mut Marks, run: &Run) -> io::Result<()> {
    commit::prepare()?;
    if !sequence(marks, &run.setup, 0, &run.mount.fstype)? {
        return Ok(());
    }
    // SAFETY: takes nothing.
    unsafe { libc::sync() };
    marks.mailbox.send(&Message::Durable)?;
    sequence(marks, &run.ops, run.setup.len() as u32, &run.mount.fstype).map(|_| ())
}

fn sequence(marks: &mut Marks, operations: &[Operation], first: u32, fstype: &str) -> io::Result<bool> {
    for (op, operation) in (first..).zip(operations) {
        marks.started(op)?;
        let errno = perform(operation, fstype).err().map_or(0, |e| errno(&e)) as u32;
        marks.returned(op, errno)?;
        if errno != 0 {
            return Ok(false);
        }
    }
    Ok(true)
}
