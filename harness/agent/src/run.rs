//! Running a workload, each operation marked in the disk's own order.

use std::io;

use postcrash_wire::{Message, Operation, Run};

use crate::mailbox::Mailbox;
use crate::mount::{mount, unmount};
use crate::operations::perform;
use crate::sys::errno;
use crate::{commit, TEST_DISK};

/// Mount, set up, make that durable, run the operations, say so, unmount. Stops at the first operation that fails.
pub fn run(mailbox: &mut Mailbox, run: &Run) -> io::Result<()> {
    // SAFETY: plain number; workloads give modes exactly.
    unsafe { libc::umask(0) };
    mount(TEST_DISK, &run.mount).map_err(|e| io::Error::new(e.kind(), format!("mount: {e}")))?;
    let result = operations(mailbox, run);
    let done = result.and_then(|()| mailbox.send(&Message::Done(Vec::new())));
    unmount()?;
    done
}

fn operations(mailbox: &mut Mailbox, run: &Run) -> io::Result<()> {
    commit::prepare()?;
    if !sequence(mailbox, &run.setup, 0, &run.mount.fstype)? {
        return Ok(());
    }
    // SAFETY: takes nothing.
    unsafe { libc::sync() };
    mailbox.send(&Message::Durable)?;
    sequence(mailbox, &run.ops, run.setup.len() as u32, &run.mount.fstype).map(|_| ())
}

fn sequence(mailbox: &mut Mailbox, operations: &[Operation], first: u32, fstype: &str) -> io::Result<bool> {
    for (op, operation) in (first..).zip(operations) {
        mailbox.send(&Message::Started { op })?;
        let errno = perform(operation, fstype).err().map_or(0, |e| errno(&e)) as u32;
        mailbox.send(&Message::Returned { op, errno })?;
        if errno != 0 {
            return Ok(false);
        }
    }
    Ok(true)
}
