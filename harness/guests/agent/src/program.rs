//! Running a program of the host in the target: what an application does, and what it says.
//!
//! The program sees the host's files read-only (hostfs), and the target at the mount point, where it starts. Lines on its
//! standard output are its acknowledgements. They stand in the disk's own order: every thread of the program is stopped at
//! each of its system calls, and a line that has been written is told before the thread that wrote it goes on.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use postcrash_stopped::{resume, Stop, TRACE_PROCESSES, TRACE_THREADS};
use postcrash_wire::Message;
use serde::Serialize;

use crate::calls::Calls;
use crate::children::{Children, Next};
use crate::helper::end_of;
use crate::left_out::LeftOut;
use crate::modules;
use crate::mount::call_mount;
use crate::remote::Remote;
use crate::sys::{check, cstr, open};
use crate::{HOST, MOUNT_POINT};

/// In the agent's own root: a file system in memory, and in it what the program writes to its standard error.
const SCRATCH: &str = "/tmp";
/// The modules that programs may use.
const MODULES: &str = "programs";
const ERRORS: &str = "/tmp/errors";
const OUTPUT_BYTES_MAX: usize = 1 << 20;
const LINES_MAX: usize = 4096;
const ERRORS_SHOWN_MAX: u64 = 4096;
/// Status of a program that did not end in its time, as timeout(1) has it.
const LATE: i32 = 124;
/// Status of a program that says too much.
const TOO_MUCH: i32 = 125;
/// Status of a program that changes something that is not listed, or makes it in the set-up.
const UNLISTED: i32 = 126;
/// Status of a program that does not make a flush that was to be left out.
const TOO_FEW_FLUSHES: i32 = 122;
/// Status of a program that cannot be followed.
const UNFOLLOWED: i32 = 121;
/// How long what is killed may take to end.
const GRACE: Duration = Duration::from_secs(10);
/// So many folders of the host's /tmp are there for programs, whose own /tmp it is.
const FOLDERS_MAX: usize = 256;
/// The process that all threads of the kernel are children of: kthreadd.
const KERNEL_PARENT: &str = "2";

/// Whose threads are stopped at each of their system calls.
pub enum StoppedProcesses {
    /// Those of all processes. Flushes of these numbers are left out.
    All(Vec<u32>),
    /// Those of the program's own process, which alone writes to the standard output. A process can be traced by one other
    /// only, and this program traces its children itself.
    Main,
}

impl StoppedProcesses {
    fn options(&self) -> libc::c_int {
        match self {
            StoppedProcesses::All(_) => TRACE_THREADS | TRACE_PROCESSES,
            StoppedProcesses::Main => TRACE_THREADS,
        }
    }
}

/// What is told while a program runs, before the thread that it is about goes on.
pub enum ProgramEvent<'a> {
    /// A line of its output.
    Line(&'a str),
    /// One of its system calls begins or ends.
    Call(Message),
}

type Report<'a> = dyn FnMut(ProgramEvent) -> io::Result<()> + 'a;

/// What a program said, and how it ended.
#[derive(Serialize)]
pub struct Transcript {
    lines: Vec<String>,
    /// Exit status; 128 + signal if it was killed.
    status: i32,
    /// The end of what it wrote to its standard error.
    errors: String,
}

impl Transcript {
    pub fn succeeded(&self) -> bool {
        self.status == 0
    }

    /// The same of a program that has changed `name`, which is not listed.
    pub fn refused(self, name: &str) -> Transcript {
        let errors = format!("it makes or changes {name} in its folder, and what has this name there is not listed");
        Transcript { status: UNLISTED, errors, ..self }
    }

    /// How it ended, in words.
    pub fn end(&self) -> String {
        format!("status {}: {}", self.status, self.errors.trim())
    }
}

/// Run the shell command to its end and call `report` for each line, and for system calls of the threads that are stopped if
/// these are all.
pub fn run(
    command: &str,
    seconds: u64,
    input: Stdio,
    stopped: StoppedProcesses,
    report: &mut Report,
) -> io::Result<Transcript> {
    mount_scratch()?;
    modules::load(MODULES)?;
    let options = stopped.options();
    let (remote, left_out) = match stopped {
        StoppedProcesses::Main => (Remote::listen()?, None),
        StoppedProcesses::All(numbers) => (None, Some(LeftOut::new(numbers))),
    };
    let errors = File::create(ERRORS)?;
    let (reader, writer) = pipe()?;
    // SAFETY: plain numbers.
    check(unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) })?;
    let mut program = Command::new("/bin/sh");
    program.args(["-c", command]).env_clear().stdin(input).stdout(writer).stderr(errors);
    program.envs([("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"), ("HOME", "/tmp"), ("TMPDIR", "/tmp")]);
    program.env("LC_ALL", "C.UTF-8");
    // SAFETY: what runs between fork and exec allocates a few strings; no other thread works while a workload runs.
    unsafe { program.pre_exec(enter) };
    let others = processes()?;
    let started =
        program.spawn().map_err(|e| io::Error::new(e.kind(), format!("the program cannot be started: {e}")))?;
    drop(program);
    let mut output = Output { reader: File::from(reader), remote, pending: Vec::new(), lines: Vec::new(), bytes: 0 };
    let limit = Duration::from_secs(seconds);
    let main = started.id() as libc::pid_t;
    let mut calls = left_out.map(Calls::of_target).transpose()?;
    let mut at_stop = |stop: Option<(libc::pid_t, Stop)>| {
        // Also where a call begins: the kernel may have written a line for io_uring since the last call ended.
        let may_go_on = receive(&mut output, &mut calls, |output| output.drain(report))?;
        let notes = match (stop, calls.as_mut()) {
            (Some((thread, stop)), Some(calls)) => notes_of(thread, stop, calls)?,
            _ => Vec::new(),
        };
        notes.into_iter().try_for_each(|note| report(ProgramEvent::Call(note)))?;
        Ok(may_go_on && calls.as_ref().and_then(Calls::refused).is_none())
    };
    let status = traced(main, &others, options, limit, &mut at_stop).inspect_err(|_| drop(kill_all_but(&others)))?;
    let left = calls.as_mut().map_or_else(Vec::new, Calls::all_ended);
    left.into_iter().try_for_each(|note| report(ProgramEvent::Call(note)))?;
    if output.is_too_much() {
        let errors = format!("it says more than {LINES_MAX} lines or {OUTPUT_BYTES_MAX} bytes");
        return Ok(Transcript { lines: Vec::new(), status: TOO_MUCH, errors });
    }
    receive(&mut output, &mut calls, |output| output.end(report))?;
    if let Some(reason) = calls.as_ref().and_then(Calls::refused) {
        return Ok(Transcript { lines: Vec::new(), status: UNFOLLOWED, errors: reason.to_owned() });
    }
    let Some(status) = status else {
        let errors = format!("it did not end within {seconds} s");
        return Ok(Transcript { lines: output.lines, status: LATE, errors });
    };
    let status = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    if let (0, Some(errors)) = (status, calls.as_ref().and_then(Calls::objection)) {
        return Ok(Transcript { lines: Vec::new(), status: TOO_FEW_FLUSHES, errors });
    }
    Ok(Transcript { lines: output.lines, status, errors: end_of(&File::open(ERRORS)?, ERRORS_SHOWN_MAX)? })
}

/// Take what was said. The notes of calls tell whether one of them can have said it.
fn receive<T>(
    output: &mut Output,
    calls: &mut Option<Calls>,
    take: impl FnOnce(&mut Output) -> io::Result<T>,
) -> io::Result<T> {
    let known = output.bytes;
    let received = take(output)?;
    if let Some(calls) = calls.as_mut().filter(|_| output.bytes > known) {
        calls.output_received();
    }
    Ok(received)
}

/// What there is to note of the calls of a program when one of its threads has stopped.
fn notes_of(thread: libc::pid_t, stop: Stop, calls: &mut Calls) -> io::Result<Vec<Message>> {
    match stop {
        Stop::Call => return Ok(calls.stopped(thread)?.into_iter().collect()),
        Stop::End { .. } => return Ok(calls.ended(thread).into_iter().collect()),
        Stop::Exec => return Ok(calls.executed(thread)),
        Stop::Start => calls.started(thread),
        Stop::Event | Stop::Signal(_) => {}
    }
    Ok(Vec::new())
}

/// A file system in memory for what the agent's own root, which is read-only, has no room for.
fn mount_scratch() -> io::Result<()> {
    if !Path::new(HOST).exists() {
        call_mount(c"tmpfs", &cstr(SCRATCH)?, c"tmpfs", 0, c"")?;
        std::fs::create_dir(HOST)?;
    }
    Ok(())
}

/// In the new process: the host's files become its root, with the target, devices and processes of the guest, in a name
/// space of its own, so that nothing of it is left when the program has ended.
fn enter() -> io::Result<()> {
    // SAFETY: plain numbers, and a set that lives through the calls.
    unsafe {
        check(libc::setsid())?;
        libc::umask(0o022);
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        check(libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut()))?;
        check(libc::sched_setscheduler(0, libc::SCHED_OTHER, &libc::sched_param { sched_priority: 0 }))?;
        check(libc::unshare(libc::CLONE_NEWNS))?;
    }
    call_mount(c"none", c"/", c"none", libc::MS_REC | libc::MS_PRIVATE, c"")?;
    call_mount(c"none", &cstr(HOST)?, c"hostfs", libc::MS_RDONLY, c"/")?;
    call_mount(&cstr(MOUNT_POINT)?, &cstr(&format!("{HOST}{MOUNT_POINT}"))?, c"none", libc::MS_BIND, c"")?;
    call_mount(c"/dev", &cstr(&format!("{HOST}/dev"))?, c"none", libc::MS_BIND, c"")?;
    call_mount(c"/proc", &cstr(&format!("{HOST}/proc"))?, c"none", libc::MS_BIND, c"")?;
    mount_tmp(&format!("{HOST}/tmp"))?;
    let (root, start) = (cstr(HOST)?, cstr(MOUNT_POINT)?);
    // SAFETY: C strings, and plain numbers.
    unsafe {
        check(libc::chroot(root.as_ptr()))?;
        check(libc::chdir(start.as_ptr()))?;
        check(libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0)).map(|_| ())
    }
}

/// A /tmp that programs can write to, with the folders that the host has there: a user's program may be in one of them.
fn mount_tmp(place: &str) -> io::Result<()> {
    let folder = open(place, libc::O_RDONLY | libc::O_DIRECTORY)?;
    let entries = std::fs::read_dir(place)?.filter_map(Result::ok);
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let names: Vec<_> = folders.filter_map(|entry| entry.file_name().into_string().ok()).take(FOLDERS_MAX).collect();
    call_mount(c"tmpfs", &cstr(place)?, c"tmpfs", 0, c"")?;
    for name in names {
        let there = format!("{place}/{name}");
        std::fs::create_dir(&there)?;
        let here = cstr(&format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()))?;
        match call_mount(&here, &cstr(&there)?, c"none", libc::MS_BIND, c"") {
            // The host has removed it since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => std::fs::remove_dir(&there)?,
            mounted => mounted?,
        }
    }
    Ok(())
}

/// Let the process `main` and all that it starts run to the end of `main`, and call `stopped` whenever a system call of any
/// of them begins or ends, and now and then besides. It says whether they may go on. What still runs at the end is killed, but the
/// processes of `before`.
/// None if `main` did not end in `limit`, or was not to go on.
fn traced(
    main: libc::pid_t,
    before: &HashSet<libc::pid_t>,
    options: libc::c_int,
    limit: Duration,
    stopped: &mut dyn FnMut(Option<(libc::pid_t, Stop)>) -> io::Result<bool>,
) -> io::Result<Option<ExitStatus>> {
    let mut known = HashSet::new();
    let mut ended = None;
    let mut end = Instant::now() + limit;
    let mut is_over = false;
    let children = Children::new()?;
    loop {
        let next = children.next(end)?;
        let stop = match next {
            Next::Event(thread, status) => Some((thread, Stop::of(status))),
            _ => None,
        };
        let must_end = !stopped(stop)? || (matches!(next, Next::Late) && ended.is_none());
        if must_end && !is_over {
            kill_all_but(before)?;
            is_over = true;
            end = Instant::now() + GRACE;
        }
        let (thread, status) = match next {
            Next::Event(thread, status) => (thread, status),
            // The process that serves the mount is a child, too. It goes on, so that wait(2) never runs out of children.
            Next::Tick if (ended.is_some() || is_over) && is_all_gone(before)? => return Ok(ended.filter(|_| !is_over)),
            Next::Tick => continue,
            Next::Late if Instant::now() < end => continue,
            Next::Late => return Err(io::Error::other("a program that was killed does not end")),
            Next::Nothing => return Ok(ended.filter(|_| !is_over)),
        };
        let stop = Stop::of(status);
        if matches!(stop, Stop::End { .. }) {
            known.remove(&thread);
            if thread == main {
                ended = Some(ExitStatus::from_raw(status));
                kill_all_but(before)?;
                end = Instant::now() + GRACE;
            }
            continue;
        }
        let is_new = known.insert(thread);
        if is_new && (is_over || ended.is_some()) {
            kill_all_but(before)?;
        }
        let delivered = match stop {
            Stop::Signal(libc::SIGTRAP) if thread == main && is_new => {
                // SAFETY: plain numbers.
                check(unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, main, 0, options) })?;
                0
            }
            Stop::Signal(libc::SIGSTOP) if is_new => 0,
            Stop::Signal(signal) => signal,
            _ => 0,
        };
        resume(thread, delivered);
    }
}

/// Kill all processes but those of `before`: what the program has started, whether it is traced or not.
fn kill_all_but(before: &HashSet<libc::pid_t>) -> io::Result<()> {
    for process in processes()?.difference(before) {
        // SAFETY: plain numbers. Threads of the kernel do not mind.
        unsafe { libc::kill(*process, libc::SIGKILL) };
    }
    Ok(())
}

/// Whether only processes of `before` and threads of the kernel are left.
fn is_all_gone(before: &HashSet<libc::pid_t>) -> io::Result<bool> {
    Ok(processes()?.difference(before).all(|&process| is_of_kernel(process)))
}

/// Whether this is a thread of the kernel, or gone.
fn is_of_kernel(process: libc::pid_t) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return true };
    // The name stands in parentheses, and may have some of its own. The state and the parent follow.
    let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1));
    parent == Some(KERNEL_PARENT)
}

fn processes() -> io::Result<HashSet<libc::pid_t>> {
    let entries = std::fs::read_dir("/proc")?.filter_map(Result::ok);
    Ok(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// The end to read from, and the one to write to.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the array lives through the call; the descriptors are ours.
    unsafe {
        check(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC))?;
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// What comes through the program's standard output, and over the network.
struct Output {
    reader: File,
    remote: Option<Remote>,
    /// The beginning of a line that has not ended.
    pending: Vec<u8>,
    lines: Vec<String>,
    bytes: usize,
}

impl Output {
    fn is_too_much(&self) -> bool {
        self.bytes > OUTPUT_BYTES_MAX || self.lines.len() > LINES_MAX
    }

    /// Take what is there. Whether the program may go on: it has not said too much.
    fn drain(&mut self, report: &mut Report) -> io::Result<bool> {
        if self.is_too_much() {
            return Ok(false);
        }
        for line in self.remote.as_mut().map_or(Ok(Vec::new()), Remote::received)? {
            self.bytes += line.len();
            report(ProgramEvent::Line(&line))?;
            self.lines.push(line);
        }
        let mut waiting: libc::c_int = 0;
        // SAFETY: the kernel writes one number.
        check(unsafe { libc::ioctl(self.reader.as_raw_fd(), libc::FIONREAD, &mut waiting) })?;
        if waiting == 0 {
            return Ok(true);
        }
        let mut bytes = vec![0; waiting as usize];
        self.reader.read_exact(&mut bytes)?;
        self.bytes += bytes.len();
        self.pending.extend_from_slice(&bytes);
        while let Some(end) = self.pending.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            self.line(&line[..end], report)?;
        }
        Ok(!self.is_too_much())
    }

    /// The last line, if it has no end.
    fn end(&mut self, report: &mut Report) -> io::Result<()> {
        self.drain(report)?;
        let line = std::mem::take(&mut self.pending);
        if line.is_empty() {
            return Ok(());
        }
        self.line(&line, report)
    }

    fn line(&mut self, bytes: &[u8], report: &mut Report) -> io::Result<()> {
        let line = String::from_utf8_lossy(bytes).into_owned();
        report(ProgramEvent::Line(&line))?;
        self.lines.push(line);
        Ok(())
    }
}
