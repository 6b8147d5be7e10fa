//! Runs a program with every thread stopped at each of its system calls.

use std::collections::HashSet;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use postcrash_stopped::{former, resume, wait_for_child, Stop, TRACE_PROCESSES, TRACE_THREADS};

/// Is asked at each stop.
pub trait Watcher {
    /// A thread has stopped where a system call begins or ends. The threads that may go on now: it, others, or none.
    fn stopped(&mut self, thread: libc::pid_t) -> io::Result<Vec<libc::pid_t>>;
    /// A thread has started another one, or a process, which is followed.
    fn started(&mut self, thread: libc::pid_t);
    /// A thread runs another program, and has the number of its process for that. It was `former`.
    fn executed(&mut self, former: libc::pid_t, thread: libc::pid_t) -> io::Result<Vec<libc::pid_t>>;
    /// A thread goes on with this signal.
    fn signalled(&mut self, thread: libc::pid_t, signal: libc::c_int);
    /// A thread has ended, and with `dumped` the kernel has written its memory to a file. The threads that may go on now.
    fn ended(&mut self, thread: libc::pid_t, dumped: bool) -> io::Result<Vec<libc::pid_t>>;
    /// No thread has stopped for a while: one may wait for room in its standard output. Whether this was so.
    fn meanwhile(&mut self) -> io::Result<bool>;
}

/// Between two looks at whether a thread waits for room.
const WHILE: Duration = Duration::from_millis(100);
/// The same, once one has waited.
const SHORT_WHILE: Duration = Duration::from_millis(1);

/// Let the process `main`, which waits to be traced, and all that it starts run to the end of `main`. What still runs then is
/// killed.
pub fn run(main: libc::pid_t, watcher: &mut dyn Watcher) -> io::Result<ExitStatus> {
    let mut known = HashSet::new();
    let mut status = 0;
    let mut ended = None;
    let mut pause = WHILE;
    loop {
        // SAFETY: the status lives through the call.
        let thread = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::WNOHANG) };
        if thread == 0 {
            if !wait_for_child(pause) {
                pause = if watcher.meanwhile()? { SHORT_WHILE } else { WHILE };
            }
            continue;
        }
        if thread < 0 {
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => continue,
                Some(libc::ECHILD) => return ended.ok_or(error),
                _ => return Err(error),
            }
        }
        let stop = Stop::of(status);
        if let Stop::End { dumped } = stop {
            known.remove(&thread);
            resume_all(watcher.ended(thread, dumped)?);
            if thread == main {
                ended = Some(ExitStatus::from_raw(status));
                known.iter().for_each(|&other| kill(other));
            }
            continue;
        }
        let is_new = known.insert(thread);
        if is_new && ended.is_some() {
            kill(thread);
        }
        match stop {
            Stop::Call => {
                resume_all(watcher.stopped(thread)?);
                continue;
            }
            Stop::Signal(libc::SIGTRAP) if thread == main && is_new => {
                // SAFETY: plain numbers.
                unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, main, 0, TRACE_THREADS | TRACE_PROCESSES) };
            }
            Stop::Signal(libc::SIGSTOP) if is_new => {}
            Stop::Signal(signal) => {
                watcher.signalled(thread, signal);
                resume(thread, signal);
                continue;
            }
            Stop::Start => watcher.started(thread),
            Stop::Exec => {
                let former = former(thread);
                known.remove(&former);
                known.insert(thread);
                resume_all(watcher.executed(former, thread)?);
            }
            Stop::Event | Stop::End { .. } => {}
        }
        resume(thread, 0);
    }
}

fn resume_all(threads: Vec<libc::pid_t>) {
    threads.into_iter().for_each(|thread| resume(thread, 0));
}

fn kill(thread: libc::pid_t) {
    // SAFETY: plain numbers; the thread is ours, and not waited for yet.
    unsafe { libc::kill(thread, libc::SIGKILL) };
}
