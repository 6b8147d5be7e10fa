//! Turns the stops of a program into steps. Calls that can change the folder run one after the other.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use postcrash_stopped::system_calls::name_of;
use postcrash_stopped::unfollowed::{Starts, OUTPUT_OUTSIDE_CALLS};
use postcrash_stopped::{check, mappings};

use crate::folder::Folder;
use crate::kernel_work::{KernelWork, CORE_DUMP};
use crate::kinds::{
    is_write, kind_of, may_last, offset, opens, opens_to_write, sets_attribute, writes_through, Kind, STORE,
};
use crate::process::{descriptor, opens_fifo, path_of, At, Stops, FOREIGN};
use crate::sockets::{sending, SendCall, Sockets};
use crate::stack::{Frame, Stacks};
use crate::step::{FlushedRange, Step};

/// A program may say so many bytes in one call.
const UNREPORTED_BYTES_MAX: usize = 64 << 20;

/// A call that is under way.
struct Call {
    number: i64,
    arguments: [u64; 6],
    kind: Kind,
    /// What its descriptor stands for: a file of the folder, and whether a write to it waits for the disk.
    file: Option<(u64, bool)>,
    stack: Vec<Frame>,
    sending: Option<SendCall>,
    /// How many steps had been written when it began.
    written: usize,
}

pub struct Watch {
    folder: Folder,
    output: Box<dyn Write>,
    /// So many steps have been written.
    written: usize,
    /// The program's standard output, and the inode of that pipe.
    program_output: File,
    pipe: (u64, u64),
    /// What has been read of it and stands in no step yet, because the call that says it goes on.
    unreported: Vec<u8>,
    pending: Vec<u8>,
    /// Where to the program's standard output is passed on.
    forward: Option<File>,
    stops: Stops,
    sockets: Sockets,
    calls: HashMap<libc::pid_t, Call>,
    stacks: Stacks,
    starts: Starts,
    kernel: KernelWork,
    /// The thread whose call may change the folder, and those that wait to begin one.
    inside: Option<libc::pid_t>,
    waiting: VecDeque<libc::pid_t>,
    /// Look at everything after every call.
    looks_always: bool,
}

impl Watch {
    pub fn new(
        folder: Folder,
        output: Box<dyn Write>,
        program_output: File,
        forward: Option<File>,
        looks_always: bool,
    ) -> io::Result<Self> {
        let metadata = program_output.metadata()?;
        let pipe = (metadata.dev(), metadata.ino());
        Ok(Self {
            folder,
            output,
            written: 0,
            program_output,
            pipe,
            unreported: Vec::new(),
            pending: Vec::new(),
            forward,
            stops: Stops::default(),
            sockets: Sockets::default(),
            calls: HashMap::new(),
            stacks: Stacks::default(),
            starts: Starts::default(),
            kernel: KernelWork::default(),
            inside: None,
            waiting: VecDeque::new(),
            looks_always,
        })
    }

    /// What was said last, and what was changed last.
    pub fn end(mut self) -> io::Result<()> {
        self.ensure_output_by_calls()?;
        self.note_visible_changes(0)?;
        let mut step = Step { call: "end".to_owned(), ..Step::default() };
        self.folder.attributes(&mut step.effects)?;
        let rest = self.drain(&mut step)?;
        self.sockets.ensure_whole()?;
        if !self.pending.is_empty() {
            step.outputs.push(String::from_utf8_lossy(&self.pending).into_owned());
        }
        self.write(&step, &rest)?;
        self.output.flush()
    }

    /// Write the step down, and only then pass on what was said in it: `bytes`.
    fn write(&mut self, step: &Step, bytes: &[u8]) -> io::Result<()> {
        self.write_down(step)?;
        self.pass_on(bytes)
    }

    fn pass_on(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.forward.as_mut().map_or(Ok(()), |forward| forward.write_all(bytes))
    }

    fn write_down(&mut self, step: &Step) -> io::Result<()> {
        if step.effects.is_empty() && step.durable.is_empty() && !step.everything && step.outputs.is_empty() {
            return Ok(());
        }
        self.written += 1;
        serde_json::to_writer(&mut self.output, step)?;
        self.output.write_all(b"\n")
    }

    /// What has changed since the last look without a call: stores through mappings, and what the kernel does by itself.
    fn between_calls(&mut self, thread: libc::pid_t) -> io::Result<()> {
        let mut step = Step { call: STORE.to_owned(), thread, ..Step::default() };
        self.folder.stores(&mut step.effects)?;
        self.write_down(&step)?;
        let Some(call) = self.kernel.name() else { return Ok(()) };
        self.everything(call, thread)
    }

    /// Note everything that has changed.
    fn everything(&mut self, call: String, thread: libc::pid_t) -> io::Result<()> {
        let mut step = Step { call, thread, ..Step::default() };
        self.folder.everything(&mut step.effects)?;
        self.write_down(&step)
    }

    /// Whether what the thread is about to call can say something.
    fn may_output(&self, thread: libc::pid_t) -> bool {
        self.calls.get(&thread).is_some_and(Call::may_output)
    }

    /// What can be seen of the folder just now. An output can rest on it: others see a write in memory long before the write
    /// has returned. Fails if something has changed that is nobody's.
    fn note_visible_changes(&mut self, thread: libc::pid_t) -> io::Result<()> {
        let others = self.calls.iter().filter(|(&other, _)| other != thread);
        let under_way: Vec<_> = others.filter(|(_, call)| changes(call.kind)).collect();
        let (call, thread, stack) = match under_way[..] {
            [] => (self.kernel.name().unwrap_or_default(), thread, Vec::new()),
            [(&other, call)] => (name_of(call.number), other, call.stack.clone()),
            [(&other, call), ..] => ("several calls".to_owned(), other, call.stack.clone()),
        };
        let mut step = Step { call, thread, stack, ..Step::default() };
        self.folder.everything(&mut step.effects)?;
        if step.call.is_empty() {
            if let Some(name) = self.folder.changed_by_nobody(&step.effects) {
                let message = format!("{name} changes without a call of the program, which is not followed");
                return Err(io::Error::other(message));
            }
            step.call = STORE.to_owned();
        }
        self.write_down(&step)
    }

    /// Whether a call is under way that writes to the program's standard output.
    fn is_output_under_way(&self) -> bool {
        self.calls.values().any(|call| call.sending.is_none() && call.may_output())
    }

    /// Fails if something was said and no call is under way that says it: nobody knows when that was.
    fn ensure_output_by_calls(&mut self) -> io::Result<()> {
        if self.is_output_under_way() {
            return Ok(());
        }
        self.receive()?;
        if self.unreported.is_empty() {
            return Ok(());
        }
        Err(io::Error::other(OUTPUT_OUTSIDE_CALLS))
    }

    /// The bytes that were said since the last look. Whole lines go into the step. Where they are passed on, the part of a
    /// line that is there becomes a line, since it is an output by itself.
    fn drain(&mut self, step: &mut Step) -> io::Result<Vec<u8>> {
        self.receive()?;
        let mut bytes = std::mem::take(&mut self.unreported);
        if self.forward.is_some() && bytes.last().is_some_and(|&last| last != b'\n') {
            // Whoever looks at the output sees this part already.
            bytes.push(b'\n');
        }
        self.pending.extend_from_slice(&bytes);
        let pending = std::mem::take(&mut self.pending);
        let mut lines = pending.split(|&byte| byte == b'\n');
        // What comes behind the last end of a line is the beginning of one.
        self.pending = lines.next_back().unwrap_or_default().to_vec();
        step.outputs.extend(lines.map(|line| String::from_utf8_lossy(line).into_owned()));
        Ok(bytes)
    }

    /// Make room for what is said.
    fn receive(&mut self) -> io::Result<()> {
        let mut waiting: libc::c_int = 0;
        // SAFETY: the kernel writes one number.
        check(unsafe { libc::ioctl(self.program_output.as_raw_fd(), libc::FIONREAD, &mut waiting) })?;
        let known = self.unreported.len();
        if known + waiting as usize > UNREPORTED_BYTES_MAX {
            return Err(io::Error::other(format!(
                "the program says more than {UNREPORTED_BYTES_MAX} bytes in one call"
            )));
        }
        self.unreported.resize(known + waiting as usize, 0);
        self.program_output.read_exact(&mut self.unreported[known..])
    }

    /// Whether the thread may go on. Calls that change the folder wait for each other; those that may last do not.
    fn entered(&mut self, thread: libc::pid_t, number: i64, arguments: [u64; 6]) -> io::Result<bool> {
        if self.forward.is_some() && number == libc::SYS_io_uring_setup {
            return Err(io::Error::other("the program uses io_uring, whose outputs are not followed"));
        }
        followed(self.starts.begins(thread, number, &arguments))?;
        self.kernel.begins(number, &arguments)?;
        let mut kind = kind_of(number, &arguments);
        let sending = if self.forward.is_some() { sending(thread, number, &arguments) } else { None };
        if kind == Kind::Map && arguments[3] & libc::MAP_SHARED as u64 != 0 {
            // When the call has returned, another thread can have given its descriptor to another file.
            if let Some(found) = descriptor(thread, arguments[4]) {
                if self.folder.is_inside(found.device, found.inode) {
                    self.folder.mapped.insert(found.inode);
                }
            }
        }
        let mut file = None;
        if let Kind::Content(which) | Kind::Flush(which) = kind {
            match descriptor(thread, arguments[which]) {
                Some(found) if found.is_stored && self.folder.is_inside(found.device, found.inode) => {
                    let waits = found.waits || writes_through(number, &arguments);
                    file = Some((found.inode, waits && is_write(number)));
                }
                Some(found) if (found.device, found.inode) == self.pipe => kind = Kind::Outputs,
                _ => kind = Kind::Harmless,
            }
        }
        if sending.is_some() {
            kind = Kind::Outputs;
        }
        let is_quiet = matches!(kind, Kind::Harmless | Kind::Map);
        if !is_quiet {
            self.ensure_output_by_calls()?;
        }
        let stack = if is_quiet { Vec::new() } else { self.stacks.of(thread) };
        self.calls.insert(thread, Call { number, arguments, kind, file, stack, sending, written: self.written });
        if is_quiet {
            return Ok(true);
        }
        // What is sent is out at once, so nobody may change anything between that and the note of it.
        let waits = sending.is_none() && matches!(kind, Kind::Unknown | Kind::Outputs);
        if waits || may_last(number) || opens_fifo(thread, number, &arguments) {
            self.begin(thread)?;
            return Ok(true);
        }
        if self.inside.is_some() {
            self.waiting.push_back(thread);
            return Ok(false);
        }
        self.inside = Some(thread);
        self.begin(thread)?;
        Ok(true)
    }

    /// The thread's call goes to the kernel now.
    fn begin(&mut self, thread: libc::pid_t) -> io::Result<()> {
        self.between_calls(thread)?;
        if self.may_output(thread) {
            self.note_visible_changes(thread)?;
        }
        if let Some(call) = self.calls.get_mut(&thread) {
            call.written = self.written;
        }
        Ok(())
    }

    fn left(&mut self, thread: libc::pid_t, result: Option<u64>) -> io::Result<Vec<libc::pid_t>> {
        let mut go = vec![thread];
        followed(self.starts.ends(thread, result.unwrap_or(0) as i64))?;
        let Some(call) = self.calls.get(&thread) else { return Ok(go) };
        let is_quiet = matches!(call.kind, Kind::Harmless | Kind::Map);
        if !is_quiet {
            self.ensure_output_by_calls()?;
        }
        let Some(call) = self.calls.remove(&thread) else { return Ok(go) };
        let during = self.written - call.written;
        let mut step = Step { call: name_of(call.number), thread, during, ..Step::default() };
        self.look(&call, &mut step)?;
        if let Some(result) = result {
            if opens_to_write(call.number, &call.arguments) {
                self.ensure_no_disk(thread, result)?;
            }
            if opens(call.number) {
                self.folder.nameless(Path::new(&path_of(thread, result)), &mut step.effects)?;
            }
            self.durable(thread, &call, result, &mut step)?;
            if sets_attribute(call.number) {
                self.folder.attributes(&mut step.effects)?;
            }
            if let Some(sending) = call.sending {
                step.outputs = self.sockets.sent(thread, (call.number, call.arguments), sending, result)?;
            }
        }
        step.stack = call.stack;
        // Who says something stops where its call ends, and then it is noted.
        let bytes = if is_quiet { Vec::new() } else { self.drain(&mut step)? };
        self.write(&step, &bytes)?;
        if self.inside == Some(thread) {
            go.extend(self.next()?);
        }
        Ok(go)
    }

    fn look(&mut self, call: &Call, step: &mut Step) -> io::Result<()> {
        match call.kind {
            Kind::Harmless | Kind::Map if !self.looks_always => {}
            Kind::Content(_) if !self.looks_always => {
                self.folder.content(call.file.map_or(0, |(inode, _)| inode), &mut step.effects)?;
            }
            Kind::Names if !self.looks_always => self.folder.names(&mut step.effects)?,
            Kind::Outputs if !self.looks_always => {}
            // What is stored meanwhile by others is not covered. It is seen when the next call begins.
            Kind::Flush(_) | Kind::FlushAll(_) | Kind::FlushMemory => {}
            _ => self.folder.everything(&mut step.effects)?,
        }
        Ok(())
    }

    fn durable(&mut self, thread: libc::pid_t, call: &Call, result: u64, step: &mut Step) -> io::Result<()> {
        match (call.kind, call.file) {
            (Kind::Flush(_), Some((inode, _))) => {
                step.durable.push(FlushedRange { inode, start: 0, end: None, own: false });
            }
            (Kind::FlushMemory, _) => {
                let addresses = call.arguments[0]..call.arguments[0].saturating_add(call.arguments[1].max(1));
                for part in mappings(thread)?.iter().filter(|part| self.folder.has_mapped(part)) {
                    step.durable.extend(part.shared_bytes(&addresses).map(|Range { start, end }| FlushedRange {
                        inode: part.inode,
                        start,
                        end: Some(end),
                        own: false,
                    }));
                }
            }
            (Kind::FlushAll(which), _) => {
                let found = which.map(|which| descriptor(thread, call.arguments[which]));
                step.everything = match found {
                    None => true,
                    // Another file on the same device may be on another one where the program runs in earnest.
                    Some(found) => found.is_some_and(|found| self.folder.is_inside(found.device, found.inode)),
                };
            }
            (Kind::Content(which), Some((inode, true))) => {
                if let Some((start, end)) = written(thread, call, which, result) {
                    step.durable.push(FlushedRange { inode, start, end: Some(end), own: true });
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Fails if a descriptor stands for a disk: what is written to it can change files without any call on them.
    fn ensure_no_disk(&self, thread: libc::pid_t, number: u64) -> io::Result<()> {
        if descriptor(thread, number).is_some_and(|found| found.is_disk) {
            return Err(io::Error::other("the program writes to a disk below the file system, which is not followed"));
        }
        Ok(())
    }

    /// A call of this thread does not return. It can have changed something, and said something.
    fn interrupted(&mut self, thread: libc::pid_t) -> io::Result<()> {
        self.ensure_output_by_calls()?;
        let Some(call) = self.calls.remove(&thread) else { return Ok(()) };
        let mut step = Step { call: name_of(call.number), thread, stack: call.stack, ..Step::default() };
        if changes(call.kind) {
            self.folder.everything(&mut step.effects)?;
        }
        let bytes = self.drain(&mut step)?;
        self.write(&step, &bytes)
    }

    /// The thread whose turn it is to begin its call.
    fn next(&mut self) -> io::Result<Option<libc::pid_t>> {
        self.inside = self.waiting.pop_front();
        if let Some(thread) = self.inside {
            self.begin(thread)?;
        }
        Ok(self.inside)
    }
}

/// Whether a call of this kind can change the folder.
fn changes(kind: Kind) -> bool {
    matches!(kind, Kind::Content(_) | Kind::Names | Kind::Unknown)
}

/// The bytes of its file that a write has written, from its result, once it has returned. None if that is not known.
fn written(thread: libc::pid_t, call: &Call, which: usize, result: u64) -> Option<(u64, u64)> {
    let found = descriptor(thread, call.arguments[which])?;
    let end = match offset(call.number, &call.arguments) {
        _ if found.appends => found.size,
        Some(offset) => offset.checked_add(result)?,
        None if matches!(call.number, libc::SYS_write | libc::SYS_writev | libc::SYS_pwritev2) => found.position,
        None => return None,
    };
    Some((end.checked_sub(result)?, end))
}

impl Call {
    /// Whether it can say something, and does nothing else behind that.
    fn may_output(&self) -> bool {
        self.kind == Kind::Outputs || matches!(self.number, libc::SYS_tee | libc::SYS_vmsplice | FOREIGN)
    }
}

/// Fails if there is a reason why the program cannot be followed.
fn followed(reason: Option<&str>) -> io::Result<()> {
    reason.map_or(Ok(()), |reason| Err(io::Error::other(reason)))
}

impl Watch {
    /// A thread has stopped where a system call begins or ends. The threads that may go on now: it, others, or none.
    pub fn stopped(&mut self, thread: libc::pid_t) -> io::Result<Vec<libc::pid_t>> {
        self.kernel.stopped(thread);
        match self.stops.at(thread) {
            At::Entry(number, arguments) => {
                Ok(if self.entered(thread, number, arguments)? { vec![thread] } else { Vec::new() })
            }
            At::Exit(result) => self.left(thread, result),
            At::Other => Ok(vec![thread]),
        }
    }

    /// A thread has started another one, or a process, which is followed.
    pub fn started(&mut self, thread: libc::pid_t) {
        self.starts.confirm(thread);
    }

    /// A thread runs another program, and has the number of its process for that. It was `former`.
    pub fn executed(&mut self, former: libc::pid_t, thread: libc::pid_t) -> io::Result<Vec<libc::pid_t>> {
        // Neither its own call returns nor that of the thread which has had this number. The kernel has ended that one.
        let mut go = self.ended(former, false)?;
        if former != thread {
            go.extend(self.ended(thread, false)?);
        }
        self.stops.executed(former, thread);
        Ok(go)
    }

    /// A thread goes on with this signal.
    pub fn signalled(&mut self, thread: libc::pid_t, signal: libc::c_int) {
        self.kernel.signalled(thread, signal);
    }

    /// A thread has ended, and with `dumped` the kernel has written its memory to a file. The threads that may go on now.
    pub fn ended(&mut self, thread: libc::pid_t, dumped: bool) -> io::Result<Vec<libc::pid_t>> {
        self.interrupted(thread)?;
        if self.kernel.ended(thread, dumped) {
            self.everything(CORE_DUMP.to_owned(), thread)?;
        }
        self.starts.ended(thread);
        self.stops.ended(thread);
        self.waiting.retain(|&other| other != thread);
        Ok(if self.inside == Some(thread) { self.next()?.into_iter().collect() } else { Vec::new() })
    }

    /// No thread has stopped for a while: one may wait for room in its standard output. Whether this was so.
    pub fn meanwhile(&mut self) -> io::Result<bool> {
        let known = self.unreported.len();
        self.receive()?;
        Ok(self.unreported.len() > known)
    }
}
