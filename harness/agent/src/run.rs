//! Running a workload, each operation marked in the disk's own order.

use std::io;

use postcrash_wire::{Message, Operation, Run};

use crate::log_writes::LogWrites;
use crate::mailbox::Mailbox;
use crate::mount::{mount, unmount};
use crate::operations::perform;
use crate::sys::errno;
use crate::{commit, TEST_DISK};

/// Mount, set up, make that durable, run the operations, say so, unmount. Stops at the first operation that fails.
pub fn run(mailbox: &mut Mailbox, run: &Run) -> io::Result<()> {
    // SAFETY: plain number; workloads give modes exactly.
    unsafe { libc::umask(0) };
    if !run.log_writes {
        return mounted(TEST_DISK, &mut Marks { mailbox, log: None }, run);
    }
    let log = LogWrites::create()?;
    let result = mounted(&log.device, &mut Marks { mailbox, log: Some(&log) }, run);
    let removed = log.remove();
    result.and(removed)
}

/// Tells how far the workload is: the mailbox, and then the log if there is one.
struct Marks<'a> {
    mailbox: &'a mut Mailbox,
    log: Option<&'a LogWrites>,
}

impl Marks<'_> {
    fn put(&mut self, message: &Message) -> io::Result<()> {
        self.mailbox.send(message)?;
        let word = match message {
            Message::Started { op } => format!("started:{op}"),
            Message::Returned { op, .. } => format!("returned:{op}"),
            Message::Durable => "durable".into(),
            Message::Done(_) => "done".into(),
            Message::Failed(_) => return Ok(()),
        };
        self.log.map_or(Ok(()), |log| log.mark(&word))
    }
}

fn mounted(device: &str, marks: &mut Marks, run: &Run) -> io::Result<()> {
    mount(device, &run.mount).map_err(|e| io::Error::new(e.kind(), format!("mount: {e}")))?;
    let result = operations(marks, run);
    let done = result.and_then(|()| marks.put(&Message::Done(Vec::new())));
    unmount()?;
    done
}

fn operations(marks: &mut Marks, run: &Run) -> io::Result<()> {
    commit::prepare()?;
    if !sequence(marks, &run.setup, 0, &run.mount.fstype)? {
        return Ok(());
    }
    // SAFETY: takes nothing.
    unsafe { libc::sync() };
    marks.put(&Message::Durable)?;
    sequence(marks, &run.ops, run.setup.len() as u32, &run.mount.fstype).map(|_| ())
}

fn sequence(marks: &mut Marks, operations: &[Operation], first: u32, fstype: &str) -> io::Result<bool> {
    for (op, operation) in (first..).zip(operations) {
        marks.put(&Message::Started { op })?;
        let errno = perform(operation, fstype).err().map_or(0, |e| errno(&e)) as u32;
        marks.put(&Message::Returned { op, errno })?;
        if errno != 0 {
            return Ok(false);
        }
    }
    Ok(true)
}
