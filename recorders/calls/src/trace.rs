//! Runs a program with every thread stopped at each of its system calls.

use std::collections::HashSet;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use postcrash_stopped::{former, resume, wait_for_child, Stop, TRACE_PROCESSES, TRACE_THREADS};

use crate::watch::Watch;

/// Between two looks at whether a thread waits for room.
const WHILE: Duration = Duration::from_millis(100);
/// The same, once one has waited.
const SHORT_WHILE: Duration = Duration::from_millis(1);

/// Let the process `main`, which waits to be traced, and all that it starts run to the end of `main`. What still runs then is
/// killed.
pub fn run(main: libc::pid_t, watch: &mut Watch) -> io::Result<ExitStatus> {
    let mut known = HashSet::new();
    let mut status = 0;
    let mut ended = None;
    let mut pause = WHILE;
    loop {
        // SAFETY: the status lives through the call.
        let thread = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::WNOHANG) };
        if thread == 0 {
            if !wait_for_child(pause) {
                pause = if watch.meanwhile()? { SHORT_WHILE } else { WHILE };
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
        let is_new = !matches!(stop, Stop::End { .. }) && known.insert(thread);
        if is_new && ended.is_some() {
            kill(thread);
        }
        match stop {
            Stop::End { dumped } => {
                known.remove(&thread);
                resume_all(watch.ended(thread, dumped)?);
                if thread == main {
                    ended = Some(ExitStatus::from_raw(status));
                    known.iter().for_each(|&other| kill(other));
                }
                continue;
            }
            Stop::Call => {
                resume_all(watch.stopped(thread)?);
                continue;
            }
            Stop::Signal(libc::SIGTRAP) if thread == main && is_new => {
                // SAFETY: plain numbers.
                unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, main, 0, TRACE_THREADS | TRACE_PROCESSES) };
            }
            Stop::Signal(libc::SIGSTOP) if is_new => {}
            Stop::Signal(signal) => {
                watch.signalled(thread, signal);
                resume(thread, signal);
                continue;
            }
            Stop::Start => watch.started(thread),
            Stop::Exec => {
                let former = former(thread);
                known.remove(&former);
                known.insert(thread);
                resume_all(watch.executed(former, thread)?);
            }
            Stop::Event => {}
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
