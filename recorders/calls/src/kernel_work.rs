//! What the kernel changes by itself, while no call of the program is under way.

use std::collections::HashSet;
use std::io;

use postcrash_stopped::system_calls::name_of;
use postcrash_stopped::unfollowed::left_to_kernel;

/// What a step is called in which the kernel writes the memory of a process that dies. It writes from first to last.
pub const CORE_DUMP: &str = "core dump";
/// Signals that end a process and have its memory written.
const DUMPS: [libc::c_int; 10] = [
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGQUIT,
    libc::SIGSEGV,
    libc::SIGSYS,
    libc::SIGTRAP,
    libc::SIGXCPU,
    libc::SIGXFSZ,
];

#[derive(Default)]
pub struct KernelWork {
    /// The call that last gave the kernel work which can end after the call has returned.
    submitted: Option<i64>,
    /// Threads that got a signal that can have the kernel dump their memory, and have not stopped since.
    dumping: HashSet<libc::pid_t>,
}

impl KernelWork {
    /// A call begins. Fails if nobody can know what the kernel does for it later on.
    pub fn begins(&mut self, number: i64, arguments: &[u64; 6]) -> io::Result<()> {
        match number {
            libc::SYS_io_submit => self.submitted = Some(number),
            libc::SYS_io_uring_setup => self.submitted = Some(libc::SYS_io_uring_enter),
            _ => {}
        }
        left_to_kernel(number, arguments).map_or(Ok(()), |what| {
            Err(io::Error::other(format!(
                "the program has the kernel change files by itself, which is not followed: {what}"
            )))
        })
    }

    /// A thread goes on with a signal.
    pub fn signalled(&mut self, thread: libc::pid_t, signal: libc::c_int) {
        if DUMPS.contains(&signal) {
            self.dumping.insert(thread);
        } else {
            self.dumping.remove(&thread);
        }
    }

    /// A thread has stopped, so it has not died.
    pub fn stopped(&mut self, thread: libc::pid_t) {
        self.dumping.remove(&thread);
    }

    /// A thread has ended. Whether its memory may have been dumped. `dumped`: its status says so.
    pub fn ended(&mut self, thread: libc::pid_t, dumped: bool) -> bool {
        self.dumping.remove(&thread) || dumped
    }

    /// What the kernel may be doing.
    pub fn name(&self) -> Option<String> {
        let is_dumping = !self.dumping.is_empty();
        is_dumping.then(|| CORE_DUMP.to_owned()).or_else(|| self.submitted.map(name_of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [u64; 6] = [0; 6];

    #[test]
    fn what_was_submitted_can_end_at_any_time_from_then_on() {
        let mut work = KernelWork::default();
        work.begins(libc::SYS_write, &NONE).expect("followed");
        assert_eq!(work.name(), None);
        work.begins(libc::SYS_io_submit, &NONE).expect("followed");
        work.begins(libc::SYS_write, &NONE).expect("followed");
        assert_eq!(work.name().as_deref(), Some("io_submit"));
    }

    #[test]
    fn a_thread_that_goes_on_with_a_signal_may_be_dumped_until_it_stops_or_ends() {
        let mut work = KernelWork::default();
        work.signalled(1, libc::SIGTERM);
        assert_eq!(work.name(), None);
        for signal in DUMPS {
            work.signalled(1, signal);
            assert_eq!(work.name().as_deref(), Some(CORE_DUMP));
            work.stopped(1);
            assert_eq!(work.name(), None);
        }
        work.signalled(1, libc::SIGSEGV);
        assert!(work.ended(1, false) && !work.ended(1, false) && work.ended(2, true));
    }

    #[test]
    fn process_accounting_is_refused_by_name() {
        let error = KernelWork::default().begins(libc::SYS_acct, &[1; 6]).expect_err("not followed");
        assert!(error.to_string().ends_with("not followed: process accounting (acct)"));
    }
}
