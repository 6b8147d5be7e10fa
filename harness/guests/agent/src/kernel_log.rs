//! What the kernel says while it recovers one state, and whether that is all that it said.
//!
//! A line that the disk causes can be missing for three reasons, all of which lie in the guest's past:
//!
//! - The kernel's buffer was too small. A mark is put into the log before each state; if it is gone, so may others be.
//! - Messages by printk_ratelimit() share one limit. It is turned off when the guest starts.
//! - Many messages have a limit of their own, which nobody can turn off, or are printed once: see log_limits.rs.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use crate::log_limits::RateLimits;
use crate::sys::check;

const READ_CLEAR: i32 = 4;
const CLEAR: i32 = 5;
/// Worst level that is not reported: notice. (warning is 4)
const LEVEL_NOTICE: u32 = 5;
const LOG_BYTES: usize = 128 << 10;
const LOG_DEVICE: &str = "/dev/kmsg";
const SUPPRESSED: &str = "callbacks suppressed";

/// The log of the guest's kernel.
pub struct KernelLog {
    device: File,
    /// States that were begun.
    states: u64,
    limits: RateLimits,
}

/// Said where the host is busy while threads take turns (steady.rs): about the host, and in whatever state it comes.
const OF_A_BUSY_HOST: [&str; 2] = ["sched: RT throttling activated", "NOHZ tick-stop error"];

/// What the kernel said while a state was recovered.
pub struct StateLog {
    /// Lines of level warning and worse, without time stamps.
    pub lines: Vec<String>,
    /// It is certain that no such line is missing.
    pub whole: bool,
}

impl KernelLog {
    pub fn open() -> io::Result<KernelLog> {
        // A kernel that refuses suppresses more, which is noticed.
        let _ = std::fs::write("/proc/sys/kernel/printk_ratelimit", "0\n");
        let _ = std::fs::write("/proc/sys/kernel/printk_devkmsg", "on\n");
        let device = OpenOptions::new().write(true).open(LOG_DEVICE);
        let device = device.map_err(|e| io::Error::new(e.kind(), format!("{LOG_DEVICE}: {e}")))?;
        // What it said while it booted is about no disk.
        // SAFETY: this command takes no buffer.
        check(unsafe { libc::klogctl(CLEAR, std::ptr::null_mut(), 0) })?;
        Ok(KernelLog { device, states: 0, limits: RateLimits::default() })
    }

    /// What comes now is about the next state. With `wait`, not before all limits are unused.
    pub fn begin(&mut self, wait: bool) -> io::Result<()> {
        self.limits.begin();
        if wait {
            self.limits.wait();
        }
        self.states += 1;
        // One record is one write.
        self.device.write_all(format!("<7>{}\n", self.mark()).as_bytes())
    }

    /// What was said since the state was begun, which is then forgotten.
    pub fn take(&mut self) -> io::Result<StateLog> {
        let mut buffer = vec![0u8; LOG_BYTES];
        // SAFETY: the buffer's length is given.
        let length = check(unsafe { libc::klogctl(READ_CLEAR, buffer.as_mut_ptr().cast(), LOG_BYTES as i32) })?;
        let text = String::from_utf8_lossy(&buffer[..length as usize]);
        Ok(said_since(&self.mark(), &text, &mut self.limits))
    }

    fn mark(&self) -> String {
        format!("postcrash-agent: state {};", self.states)
    }
}

/// What the log says after the mark. What stands before it, said since the state before was reported, uses up limits too.
fn said_since(mark: &str, log: &str, limits: &mut RateLimits) -> StateLog {
    let (before, since) = match log.rsplit_once(mark) {
        Some((before, since)) => (Some(before), since),
        None => (None, log),
    };
    before.into_iter().flat_map(str::lines).filter_map(warning).for_each(|line| limits.count(&line));
    let mut lines: Vec<String> = since.lines().filter_map(warning).collect();
    lines.iter().for_each(|line| limits.count(line));
    lines.retain(|line| !OF_A_BUSY_HOST.iter().any(|said| line.contains(said)));
    // It tells so of earlier states too. If a limit has been reached, that is known, and those are not taken for whole.
    let lost = limits.may_suppress() || (limits.is_news() && tells_of_suppressed(since));
    let whole = before.is_some() && !lost;
    StateLog { lines, whole }
}

/// `<4>[    1.234567] text` as the level and `text`.
fn parsed(line: &str) -> Option<(u32, &str)> {
    let (level, rest) = line.strip_prefix('<')?.split_once('>')?;
    let level: u32 = level.parse().ok()?;
    let text = match rest.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((_, text)) => text,
        None => rest,
    };
    Some((level & 7, text))
}

/// `<4>[    1.234567] text` as `<4>text`, if the level is bad enough. How many messages were suppressed says nothing of
/// the disk.
fn warning(line: &str) -> Option<String> {
    let (level, text) = parsed(line)?;
    (level < LEVEL_NOTICE && !text.ends_with(SUPPRESSED)).then(|| format!("<{level}>{text}"))
}

/// Whether the kernel says that it has suppressed warnings. It says so, whatever their level, just before the next message
/// that the limit lets through, which has the level of those that it did not: lib/ratelimit.c, ___ratelimit.
fn tells_of_suppressed(text: &str) -> bool {
    let said: Vec<(u32, &str)> = text.lines().filter_map(parsed).collect();
    let next = |number: usize| said.get(number + 1).map_or(0, |(level, _)| *level);
    said.iter().enumerate().any(|(number, (_, text))| text.ends_with(SUPPRESSED) && next(number) < LEVEL_NOTICE)
}

#[cfg(test)]
mod tests {
    use super::{said_since, tells_of_suppressed, warning};
    use crate::log_limits::RateLimits;

    const MARK: &str = "postcrash-agent: state 2;";

    #[test]
    fn a_log_is_whole_from_its_mark_on() {
        let mut limits = RateLimits::default();
        let log = format!("<4>of the state before\n<15>{MARK}\n<6>note\n<4>bad\n");
        let said = said_since(MARK, &log, &mut limits);
        assert_eq!((said.lines, said.whole), (vec!["<4>bad".to_string()], true));
        let said = said_since(MARK, "<6>note\n<4>bad\n", &mut limits);
        assert_eq!((said.lines, said.whole), (vec!["<4>bad".to_string()], false));
    }

    #[test]
    fn a_limit_that_nobody_knew_of_is_noticed_when_the_kernel_tells() {
        let mut limits = RateLimits::default();
        let log = format!("<15>{MARK}\n<4>odd: 3 callbacks suppressed\n<4>bad\n");
        assert!(!said_since(MARK, &log, &mut limits).whole);
    }

    #[test]
    fn what_the_state_before_said_uses_up_limits() {
        let before = "<4>BTRFS warning (device vda): bad\n".repeat(10);
        let said = said_since(MARK, &format!("{before}<15>{MARK}\n"), &mut RateLimits::default());
        assert_eq!((said.lines.len(), said.whole), (0, false));
    }

    #[test]
    fn warnings_lose_their_time_stamp_and_notices_are_dropped() {
        assert_eq!(warning("<4>[    1.5] EXT4-fs warning"), Some("<4>EXT4-fs warning".into()));
        assert_eq!(warning("<3>JBD2: bad"), Some("<3>JBD2: bad".into()));
        assert_eq!(warning("<5>[    1.5] XFS (vda): Ending recovery"), None);
        assert_eq!(warning("continuation"), None);
        assert_eq!(warning("<4>[    1.5] _btrfs_printk: 1511 callbacks suppressed"), None);
    }

    #[test]
    fn suppressed_warnings_are_told_from_suppressed_notes() {
        let suppressed = "<4>_btrfs_printk: 1511 callbacks suppressed\n";
        assert!(!tells_of_suppressed("<4>BTRFS warning (device vda): bad\n"));
        assert!(!tells_of_suppressed(&format!("{suppressed}<6>BTRFS info (device vda): using crc32c\n<4>bad\n")));
        assert!(tells_of_suppressed(&format!("<6>note\n{suppressed}<4>BTRFS warning (device vda): bad\n")));
        assert!(tells_of_suppressed(suppressed));
    }
}
