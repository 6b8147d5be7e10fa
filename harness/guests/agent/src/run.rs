//! Running a workload, each operation marked in the disk's own order.

use std::io;

use postcrash_wire::{Message, Operation, Run};

use crate::blktrace::Blktrace;
use crate::held::HeldFiles;
use crate::log_writes::LogWrites;
use crate::mailbox::Mailbox;
use crate::mount::{mount, unmount};
use crate::operations::perform;
use crate::steady::Steady;
use crate::sys::errno;
use crate::{commit, TEST_DISK};

/// First word of our messages in a trace of block requests.
const MESSAGE: &str = "postcrash";

/// Mount, set up, make that durable, run the operations, say so, unmount. Stops at the first operation that fails.
pub fn run(mailbox: &mut Mailbox, run: &Run) -> io::Result<()> {
    let mut log = run.log_writes.then(|| LogWrites::create(run.log_set_up)).transpose()?;
    let device = log.as_ref().map_or(TEST_DISK, LogWrites::device).to_owned();
    let trace = run.blktrace.then(|| Blktrace::start(TEST_DISK)).transpose()?;
    let steady = Steady::start(!run.held)?;
    let result = mounted(&device, &mut ProgressMarks { mailbox, trace, log: log.as_mut(), steady }, run);
    let removed = log.map_or(Ok(()), LogWrites::remove);
    result.and(removed)
}

/// Says how far the workload is: to the crash disk, and to the recorders in the guest that there are.
struct ProgressMarks<'a> {
    mailbox: &'a mut Mailbox,
    trace: Option<Blktrace>,
    log: Option<&'a mut LogWrites>,
    steady: Steady,
}

impl ProgressMarks<'_> {
    fn started(&mut self, op: u32) -> io::Result<()> {
        self.mailbox.send(&Message::Started { op })?;
        self.recorders(&format!("started {op}"))?;
        self.steady.operation()
    }

    fn returned(&mut self, op: u32, errno: u32) -> io::Result<()> {
        self.recorders(&format!("returned {op}"))?;
        self.mailbox.send(&Message::Returned { op, errno })
    }

    fn durable(&mut self) -> io::Result<()> {
        if let Some(log) = &mut self.log {
            log.flush()?;
            log.begin()?;
        }
        self.mailbox.send(&Message::Durable)?;
        self.recorders("durable")
    }

    fn done(&mut self) -> io::Result<()> {
        self.recorders("done")?;
        let trace = self.trace.take().map_or(Ok(Vec::new()), Blktrace::finish)?;
        self.mailbox.send(&Message::Done(trace))
    }

    fn recorders(&mut self, mark: &str) -> io::Result<()> {
        if let Some(trace) = &mut self.trace {
            trace.message(&format!("{MESSAGE} {mark}"))?;
        }
        self.log.as_ref().map_or(Ok(()), |log| log.mark(&mark.replace(' ', ":")))
    }
}

fn mounted(device: &str, marks: &mut ProgressMarks, run: &Run) -> io::Result<()> {
    mount(device, &run.mount).map_err(|e| io::Error::new(e.kind(), format!("mount: {e}")))?;
    let mut held = HeldFiles::default();
    let done = operations(marks, &mut held, run).and_then(|()| marks.done());
    drop(held);
    unmount()?;
    done
}

fn operations(marks: &mut ProgressMarks, held: &mut HeldFiles, run: &Run) -> io::Result<()> {
    commit::prepare()?;
    if !sequence(marks, held, &run.setup, 0, &run.mount.fstype)? {
        return Ok(());
    }
    // SAFETY: takes nothing.
    unsafe { libc::sync() };
    marks.durable()?;
    sequence(marks, held, &run.ops, run.setup.len() as u32, &run.mount.fstype).map(|_| ())
}

fn sequence(
    marks: &mut ProgressMarks,
    held: &mut HeldFiles,
    operations: &[Operation],
    first: u32,
    fstype: &str,
) -> io::Result<bool> {
    for (op, operation) in (first..).zip(operations) {
        marks.started(op)?;
        let errno = perform(operation, held, fstype).err().map_or(0, |e| errno(&e)) as u32;
        marks.returned(op, errno)?;
        if errno != 0 {
            return Ok(false);
        }
    }
    Ok(true)
}
