//! Run a workload, and mark each operation in the order of the disk's requests.

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::process::Stdio;

use postcrash_wire::{Message, Mount, Operation, Run, Word};
use serde::Serialize;

use crate::blktrace::Blktrace;
use crate::guest_output::GuestOutput;
use crate::held::HeldFiles;
use crate::kernel_log::KernelLog;
use crate::left_out;
use crate::log_writes::LogWrites;
use crate::mailbox::Mailbox;
use crate::mount::{forget, mount, unmount, wait_until_free};
use crate::operations::perform;
use crate::program::{self, ProgramEvent, StoppedProcesses, Transcript};
use crate::steady::Steady;
use crate::sys::errno;
use crate::unlisted::ProtectedNames;
use crate::{commit, mount_refused, TEST_DISK};

/// First word of our messages in a trace of block requests.
const MESSAGE: &str = "postcrash";
/// How long all operations under a supervisor may take together.
const SUPERVISED_SECONDS: u64 = 120;

/// Mount, run the set-up, make it durable, run the operations, report, unmount. Stops at the first operation that
/// fails.
pub fn run(mailbox: &mut Mailbox, kernel_log: &mut KernelLog, run: &Run) -> io::Result<()> {
    let mut log = run.log_writes.then(|| LogWrites::create(run.log_set_up)).transpose()?;
    let device = log.as_ref().map_or(TEST_DISK, LogWrites::device).to_owned();
    let trace = run.blktrace.then(|| Blktrace::start(TEST_DISK)).transpose()?;
    let steady = Steady::start(!run.held)?;
    kernel_log.begin(false)?;
    let kernel_log = &*kernel_log;
    let report = RunReport::default();
    let mut marks = ProgressMarks { mailbox, trace, log: log.as_mut(), steady, next: 0, kernel_log, report };
    let mounted = mount(&device, &run.mount).map_err(|error| refused(run, &error, kernel_log));
    let result = mounted.and_then(|()| {
        on_mount(&device, &mut marks, run).map_err(|error| {
            let log = kernel_log.since_begin().unwrap_or_default();
            let last = GuestOutput::since_mount(&log).last;
            let reason = if last.is_empty() { last } else { format!(": {last}") };
            io::Error::other(format!("{error}{reason}{}", mount_refused::missing(&log)))
        })
    });
    let removed = log.map_or(Ok(()), LogWrites::remove);
    result.and(removed)
}

/// Tells the crash disk, and the recorders in the guest if there are any, how far the workload is.
struct ProgressMarks<'a> {
    mailbox: &'a mut Mailbox,
    trace: Option<Blktrace>,
    log: Option<&'a mut LogWrites>,
    steady: Steady,
    /// The number of the operation that starts next. Each line that a program says ends one.
    next: u32,
    kernel_log: &'a KernelLog,
    report: RunReport,
}

/// What there is to tell of a run besides its marks.
#[derive(Default, Serialize)]
struct RunReport {
    /// What the programs said that have ended. Null if there are none.
    transcripts: Option<Vec<Transcript>>,
    /// What else was said, if an operation or a program failed.
    output: Option<GuestOutput>,
}

impl ProgressMarks<'_> {
    fn started(&mut self) -> io::Result<()> {
        let op = self.next;
        self.mailbox.send(&Message::Started { op })?;
        self.recorders(&format!("started {op}"))
    }

    fn returned(&mut self, errno: u32) -> io::Result<()> {
        let op = self.next;
        self.next += 1;
        if errno != 0 {
            self.failed();
        }
        self.recorders(&format!("returned {op}"))?;
        self.mailbox.send(&Message::Returned { op, errno })
    }

    /// An operation or a program failed: keep what was said.
    fn failed(&mut self) {
        self.report.output = Some(GuestOutput::since_mount(&self.kernel_log.since_begin().unwrap_or_default()));
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
        let report = serde_json::to_vec(&self.report).map_err(io::Error::other)?;
        let answer = self.trace.take().map_or(Ok(report), Blktrace::finish)?;
        self.mailbox.send(&Message::Done(answer))
    }

    fn recorders(&mut self, mark: &str) -> io::Result<()> {
        if let Some(trace) = &mut self.trace {
            trace.message(&format!("{MESSAGE} {mark}"))?;
        }
        self.log.as_ref().map_or(Ok(()), |log| log.mark(&mark.replace(' ', ":")))
    }
}

/// The error that tells the crash disk of a mount that failed. Of a disk that is busy it says nothing else, because a new
/// guest mounts it.
fn refused(run: &Run, error: &io::Error, kernel_log: &KernelLog) -> io::Error {
    let why = match errno(error) {
        libc::EBUSY => error.to_string(),
        _ => mount_refused::why(&run.mount, error, &kernel_log.since_begin().unwrap_or_default()),
    };
    io::Error::other(format!("mount: {why}"))
}

/// Run the set-up and the operations on the target, which is mounted, and unmount it.
fn on_mount(device: &str, marks: &mut ProgressMarks, run: &Run) -> io::Result<()> {
    let mut held = HeldFiles::default();
    let done = operations(marks, &mut held, run).and_then(|()| marks.done());
    drop(held);
    // Everything is recorded by now.
    unmount()?;
    wait_until_free(device)?;
    forget(&run.mount)?;
    done
}

fn operations(marks: &mut ProgressMarks, held: &mut HeldFiles, run: &Run) -> io::Result<()> {
    commit::prepare()?;
    if !sequence(marks, held, &run.setup, &run.mount, run_set_up)? {
        return Ok(());
    }
    // SAFETY: takes nothing.
    unsafe { libc::sync() };
    marks.durable()?;
    if run.supervisor.is_empty() {
        return sequence(marks, held, &run.ops, &run.mount, run_recorded).map(|_| ());
    }
    // A checkpoint freezes the file system, which only the agent can do, and only while no box has it.
    for part in run.ops.split_inclusive(|operation| operation.op == Word::Checkpoint) {
        let end = part.iter().rposition(|operation| !operation.op.is_environment()).map_or(0, |last| last + 1);
        let (inside, after) = part.split_at(end);
        let goes_on = (inside.is_empty() || supervised(marks, &run.supervisor, inside)?)
            && sequence(marks, held, after, &run.mount, run_recorded)?;
        if !goes_on {
            break;
        }
    }
    Ok(())
}

/// Run the operations in a process of their own under a supervisor. Each begins when the end of the one before it has left
/// the supervisor. So what the kernel might do by itself in between, it has done. Whether none failed.
fn supervised(marks: &mut ProgressMarks, supervisor: &[String], operations: &[Operation]) -> io::Result<bool> {
    let (reader, writer) = program::pipe()?;
    let mut input = Some(File::from(writer));
    let mut waiting = operations.iter();
    let mut failed = false;
    give(marks, &mut waiting, &mut input)?;
    let ended = {
        let mut returned = |event: ProgramEvent| {
            let ProgramEvent::Line(line) = event else { return Ok(()) };
            let errno = line.parse().map_err(|_| io::Error::other(format!("{line:?} is no errno")))?;
            marks.returned(errno)?;
            if errno == 0 {
                return give(marks, &mut waiting, &mut input);
            }
            failed = true;
            input = None;
            Ok(())
        };
        let command = shell_words(supervisor);
        program::run(&command, SUPERVISED_SECONDS, reader.into(), StoppedProcesses::Main, &mut returned)?
    };
    if !ended.succeeded() {
        return Err(io::Error::other(format!("the supervisor of the operations ends with {}", ended.end())));
    }
    Ok(!failed)
}

/// Send the next operation; at the end, close the pipe.
fn give(
    marks: &mut ProgressMarks,
    waiting: &mut std::slice::Iter<Operation>,
    input: &mut Option<File>,
) -> io::Result<()> {
    for operation in waiting {
        marks.started()?;
        marks.steady.operation()?;
        match (operation.op, input.as_mut()) {
            (word, Some(input)) if !word.is_environment() => {
                return input
                    .write_all((serde_json::to_string(operation).map_err(io::Error::other)? + "\n").as_bytes());
            }
            (Word::Checkpoint, _) => {
                return Err(io::Error::other("a checkpoint comes behind all other operations here"))
            }
            // All is on the disk, and nothing is dirty.
            (Word::Writeback | Word::Commit, _) => marks.returned(0)?,
            _ => {
                perform(operation, &mut HeldFiles::default(), "")?;
                marks.returned(0)?;
            }
        }
    }
    *input = None;
    Ok(())
}

fn shell_words(words: &[String]) -> String {
    let quoted = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''")));
    format!("exec {}", quoted.collect::<Vec<_>>().join(" "))
}

/// Performs the operations that come on the standard input, in the target, and says the errno of each.
pub fn perform_from_input(fstype: &str) -> io::Result<()> {
    // SAFETY: a plain number. Workloads give modes exactly.
    unsafe { libc::umask(0) };
    let mut held = HeldFiles::default();
    for line in io::stdin().lock().lines() {
        let operation: Operation = serde_json::from_str(&line?).map_err(io::Error::other)?;
        let errno = perform(&operation, &mut held, fstype).err().map_or(0, |e| errno(&e));
        println!("{errno}");
    }
    Ok(())
}

/// Run the operations, programs among them by `program`, to the first one that fails. Whether none did.
fn sequence(
    marks: &mut ProgressMarks,
    held: &mut HeldFiles,
    operations: &[Operation],
    mount: &Mount,
    program: fn(&mut ProgressMarks, &Mount, &Operation) -> io::Result<Transcript>,
) -> io::Result<bool> {
    for operation in operations {
        marks.started()?;
        if operation.op.is_program() {
            let transcript = program(marks, mount, operation)?;
            marks.returned(0)?;
            let succeeded = transcript.succeeded();
            marks.report.transcripts.get_or_insert_default().push(transcript);
            if !succeeded {
                marks.failed();
                return Ok(false);
            }
        } else {
            marks.steady.operation()?;
            let errno = perform(operation, held, &mount.fstype).err().map_or(0, |e| errno(&e)) as u32;
            marks.returned(errno)?;
            if errno != 0 {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// A program of the set-up: what it says does not matter.
fn run_set_up(_: &mut ProgressMarks, mount: &Mount, operation: &Operation) -> io::Result<Transcript> {
    run_program(operation, mount, true, &mut |_| Ok(()))
}

/// A program that is recorded. That it runs is one operation. Each line that it says is one that ends when it has been said,
/// and so is its end.
fn run_recorded(marks: &mut ProgressMarks, mount: &Mount, operation: &Operation) -> io::Result<Transcript> {
    let next = |marks: &mut ProgressMarks| marks.returned(0).and_then(|()| marks.started());
    next(marks)?;
    run_program(operation, mount, false, &mut |event| match event {
        ProgramEvent::Line(_) => next(marks),
        ProgramEvent::Call(note) => marks.mailbox.send(&note),
    })
}

/// Run the operation's program. It is refused if it changes what is not listed, and in the set-up also if it makes a name
/// that some targets do not list: nobody would know later who made it.
fn run_program(
    operation: &Operation,
    mount: &Mount,
    is_set_up: bool,
    tell: &mut dyn FnMut(ProgramEvent) -> io::Result<()>,
) -> io::Result<Transcript> {
    let stopped = match operation.op {
        Word::Watch => StoppedProcesses::Main,
        _ => StoppedProcesses::All(left_out::numbers(&operation.name)?),
    };
    let before = ProtectedNames::now(mount);
    let transcript = program::run(&operation.value, operation.program_seconds(), Stdio::null(), stopped, tell)?;
    Ok(match before.changed(mount, is_set_up) {
        Some(name) if transcript.succeeded() => transcript.refused(name),
        _ => transcript,
    })
}
