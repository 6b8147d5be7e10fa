//! Flushes of a program that are left out: the kernel is not asked, and the program is told that it has succeeded.

use std::collections::HashSet;
use std::io;
use std::mem::offset_of;

/// Results from -1 down to its negative are errors.
const ERRNO_MAX: i64 = 4095;

/// Flushes are counted over all threads of a program, from 1, in the order in which they begin.
#[derive(Default)]
pub struct LeftOut {
    numbers: Vec<u32>,
    begun: u32,
    /// Those that are in a flush that is left out.
    threads: HashSet<libc::pid_t>,
}

impl LeftOut {
    pub fn new(numbers: Vec<u32>) -> LeftOut {
        LeftOut { numbers, ..LeftOut::default() }
    }

    /// A thread begins a flush of the target. Whether it is left out.
    pub fn begins(&mut self, thread: libc::pid_t) -> io::Result<bool> {
        self.begun += 1;
        if !self.numbers.contains(&self.begun) {
            return Ok(false);
        }
        self.threads.insert(thread);
        set(thread, offset_of!(libc::user_regs_struct, orig_rax), -1)?;
        Ok(true)
    }

    /// A thread's call ends with a result. If it was left out, the result is 0 now.
    pub fn ends(&mut self, thread: libc::pid_t, result: i64) -> io::Result<i64> {
        if !self.threads.remove(&thread) {
            return Ok(result);
        }
        // No call has the number -1. What comes back is ENOSYS, or what a filter of the program says of unknown calls.
        if !(-ERRNO_MAX..0).contains(&result) {
            return Err(io::Error::other("a flush that is left out was made nevertheless"));
        }
        set(thread, offset_of!(libc::user_regs_struct, rax), 0)?;
        Ok(0)
    }

    /// Why not all of them were left out, if the program made too few.
    pub fn objection(&self) -> Option<String> {
        let missing = self.numbers.iter().find(|&&number| number > self.begun)?;
        Some(format!("it makes {} flushes, so that flush {missing} cannot be left out", self.begun))
    }

    /// A thread has ended. Its call does not return.
    pub fn ended(&mut self, thread: libc::pid_t) {
        self.threads.remove(&thread);
    }
}

/// The numbers in a text such as `3,5`.
pub fn numbers(text: &str) -> io::Result<Vec<u32>> {
    let parts = text.split(',').filter(|part| !part.is_empty());
    parts.map(|part| part.parse().map_err(|_| io::Error::other(format!("{part:?} is no number of a flush")))).collect()
}

/// Set a register of a thread that has stopped. One that is gone has none.
fn set(thread: libc::pid_t, offset: usize, value: i64) -> io::Result<()> {
    // SAFETY: plain numbers.
    if unsafe { libc::ptrace(libc::PTRACE_POKEUSER, thread, offset, value) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_commas_between_them() {
        assert_eq!(numbers("").expect("none"), Vec::<u32>::new());
        assert_eq!(numbers("3,15").expect("two"), [3, 15]);
        assert!(numbers("3,x").is_err());
    }

    #[test]
    fn a_flush_that_is_never_made_cannot_be_left_out() {
        let left_out = |numbers| LeftOut { numbers, begun: 2, threads: HashSet::new() };
        assert_eq!(left_out(vec![1, 2]).objection(), None);
        assert_eq!(
            left_out(vec![1, 7]).objection().as_deref(),
            Some("it makes 2 flushes, so that flush 7 cannot be left out")
        );
    }

    #[test]
    fn a_flush_that_was_made_nevertheless_is_an_error() {
        let mut left_out = LeftOut { numbers: vec![1], begun: 1, threads: HashSet::from([1]) };
        assert!(left_out.ends(1, 0).is_err());
        assert_eq!(left_out.ends(2, 7).expect("another thread"), 7);
    }
}
