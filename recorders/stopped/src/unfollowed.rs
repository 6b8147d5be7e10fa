//! What a program does that a tracer of its system calls cannot follow. All tracers ask here, so that they refuse the same
//! programs.

use std::collections::HashMap;

use crate::read;
use crate::system_calls::{effect_of, Effect};

/// A process or thread that its tracer is not told of.
pub const UNTRACED: &str = "the program starts a process that cannot be followed (CLONE_UNTRACED)";
/// A line that no call of the program writes. Nobody knows when it was out.
pub const OUTPUT_OUTSIDE_CALLS: &str =
    "the program says something that none of its calls of write says (io_uring, io_submit, or a \
                                process that cannot be followed)";
/// Calls of programs for x32 have this bit in their numbers.
const X32: i64 = 0x4000_0000;
/// The request of a loop device that gets its file, in three ways: LOOP_SET_FD, LOOP_CHANGE_FD and LOOP_CONFIGURE.
const LOOP_REQUESTS: [u32; 3] = [0x4C00, 0x4C06, 0x4C0A];
/// Q_QUOTAON. In a command, the kind of quota stands below it.
const QUOTA_ON: u32 = 0x0080_0002;
const QUOTA_KIND_BITS: u32 = 8;
/// Where the flags of a clone3 stand in its structure: first.
const FLAGS_BYTES: usize = 8;

/// The calls that start processes and threads. A tracer is told of each that it follows before the call returns.
#[derive(Default)]
pub struct Starts {
    /// By thread: whether the new process or thread of its call was told of.
    begun: HashMap<libc::pid_t, bool>,
}

impl Starts {
    /// A thread begins a system call. Why the program is refused, if this is clear already.
    pub fn begins(&mut self, thread: libc::pid_t, number: i64, arguments: &[u64; 6]) -> Option<&'static str> {
        let number = number & !X32;
        if !matches!(number, libc::SYS_clone | libc::SYS_clone3 | libc::SYS_fork | libc::SYS_vfork) {
            return None;
        }
        self.begun.insert(thread, false);
        (flags(thread, number, arguments) & libc::CLONE_UNTRACED as u64 != 0).then_some(UNTRACED)
    }

    /// The tracer is told of what a thread starts: PTRACE_EVENT_FORK, PTRACE_EVENT_VFORK or PTRACE_EVENT_CLONE.
    pub fn confirm(&mut self, thread: libc::pid_t) {
        self.begun.entry(thread).and_modify(|is_confirmed| *is_confirmed = true);
    }

    /// Whether a thread is in a call that starts something.
    pub fn is_starting(&self, thread: libc::pid_t) -> bool {
        self.begun.contains_key(&thread)
    }

    /// A thread's call has returned. Why the program is refused: there is something new, and nobody was told of it.
    ///
    /// Another thread can change the structure of a clone3 after the tracer has read it. The kernel's word counts.
    pub fn ends(&mut self, thread: libc::pid_t, result: i64) -> Option<&'static str> {
        (self.begun.remove(&thread) == Some(false) && result > 0).then_some(UNTRACED)
    }

    /// A thread has ended, or runs another program.
    pub fn ended(&mut self, thread: libc::pid_t) {
        self.begun.remove(&thread);
    }
}

fn flags(thread: libc::pid_t, number: i64, arguments: &[u64; 6]) -> u64 {
    match number {
        libc::SYS_clone => arguments[0],
        // If they cannot be read, the call fails.
        libc::SYS_clone3 => {
            let bytes = read(thread, arguments[0], FLAGS_BYTES).unwrap_or_default();
            bytes.try_into().map_or(0, u64::from_ne_bytes)
        }
        _ => 0,
    }
}

/// What a call gives the kernel to do from then on by itself: files change while no call of the program is under way.
pub fn left_to_kernel(number: i64, arguments: &[u64; 6]) -> Option<&'static str> {
    let number = number & !X32;
    match number {
        libc::SYS_acct if arguments[0] != 0 => Some("process accounting (acct)"),
        libc::SYS_swapon => Some("swapping (swapon)"),
        libc::SYS_quotactl if arguments[0] as u32 >> QUOTA_KIND_BITS == QUOTA_ON => Some("files of quotas (quotactl)"),
        libc::SYS_quotactl_fd if arguments[1] as u32 >> QUOTA_KIND_BITS == QUOTA_ON => {
            Some("files of quotas (quotactl)")
        }
        libc::SYS_ioctl if LOOP_REQUESTS.contains(&(arguments[1] as u32)) => Some("a loop device (ioctl LOOP_SET_FD)"),
        _ => None,
    }
}

/// Whether a call writes what it is given and does nothing else, so that what it says is out when it returns and nothing
/// after it is. io_submit and io_uring_enter can go on with other work behind it.
pub fn only_writes(number: i64) -> bool {
    let number = number & !X32;
    matches!(effect_of(number), Effect::Write(_)) || matches!(number, libc::SYS_tee | libc::SYS_vmsplice)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAG: u64 = libc::CLONE_UNTRACED as u64;

    #[test]
    fn a_start_that_says_that_nobody_is_told_is_refused_as_it_begins() {
        let here = std::process::id() as libc::pid_t;
        let mut starts = Starts::default();
        let given = [FLAG, 0, 0, 0, 17, 0, 0, 0];
        let (plain, structure) = ([FLAG, 0, 0, 0, 0, 0], [given.as_ptr() as u64, 64, 0, 0, 0, 0]);
        for number in [libc::SYS_clone, libc::SYS_clone | X32] {
            assert_eq!(starts.begins(here, number, &plain), Some(UNTRACED));
        }
        assert_eq!(starts.begins(here, libc::SYS_clone3, &structure), Some(UNTRACED));
        assert_eq!(starts.begins(here, libc::SYS_fork, &plain), None);
        assert_eq!(starts.begins(here, libc::SYS_read, &plain), None);
    }

    #[test]
    fn what_nobody_was_told_of_is_refused_when_the_call_returns() {
        let mut starts = Starts::default();
        // It cannot be read here, as if it said something else by now.
        let begin = |starts: &mut Starts| assert_eq!(starts.begins(1, libc::SYS_clone3, &[16; 6]), None);
        begin(&mut starts);
        assert!(starts.is_starting(1) && !starts.is_starting(2));
        assert_eq!(starts.ends(1, 77), Some(UNTRACED));
        begin(&mut starts);
        starts.confirm(1);
        assert_eq!(starts.ends(1, 77), None);
        begin(&mut starts);
        assert_eq!(starts.ends(1, -i64::from(libc::EAGAIN)), None);
        assert_eq!(starts.ends(1, 5), None, "another call returns");
    }

    #[test]
    fn what_the_kernel_goes_on_with_by_itself_is_named() {
        let of = |number, first, second| left_to_kernel(number, &[first, second, 0, 0, 0, 0]);
        assert_eq!(of(libc::SYS_acct, 1, 0), Some("process accounting (acct)"));
        assert_eq!(of(libc::SYS_acct, 0, 0), None);
        assert_eq!(of(libc::SYS_ioctl, 3, 0x4C0A), Some("a loop device (ioctl LOOP_SET_FD)"));
        assert_eq!(of(libc::SYS_ioctl, 3, 0x5401), None);
        assert_eq!(of(libc::SYS_swapon, 1, 0), Some("swapping (swapon)"));
        let on = u64::from(QUOTA_ON) << QUOTA_KIND_BITS | 1;
        assert_eq!(of(libc::SYS_quotactl, on, 0), Some("files of quotas (quotactl)"));
        assert_eq!(of(libc::SYS_quotactl_fd, 3, on), Some("files of quotas (quotactl)"));
        assert_eq!(of(libc::SYS_quotactl, 0x8000_0301, 0), None, "quotas are switched off");
    }

    #[test]
    fn a_call_that_can_go_on_with_other_work_does_not_only_write() {
        assert!(only_writes(libc::SYS_write) && only_writes(libc::SYS_splice));
        assert!(!only_writes(libc::SYS_io_submit) && !only_writes(libc::SYS_io_uring_enter));
    }
}
