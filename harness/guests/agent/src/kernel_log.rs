//! What the kernel says while it recovers one state, and whether any line is missing.
//!
//! A line that the disk causes can be missing for three reasons, which all lie in the guest's past:
//!
//! - The kernel's buffer was too small. We put a mark into the log before each state. If it is gone, lines may be gone.
//! - Messages by printk_ratelimit() share one limit. We turn this limit off when the guest starts.
//! - Many messages have a limit of their own, which cannot be turned off, or are printed only once: see log_limits.rs.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use crate::log_limits::RateLimits;
use crate::sys::check;

const READ_ALL: i32 = 3;
const READ_CLEAR: i32 = 4;
const CLEAR: i32 = 5;
/// The worst level that is not reported is notice. (Warning is 4.)
const LEVEL_NOTICE: u32 = 5;
const LOG_BYTES: usize = 128 << 10;
pub const LOG_DEVICE: &str = "/dev/kmsg";
/// How the log's line begins that names a module which the kernel asked for, and which is not there.
pub const NO_MODULE: &str = "postcrash-agent: no module ";
const SUPPRESSED: &str = "callbacks suppressed";

/// The log of the guest's kernel.
pub struct KernelLog {
    device: File,
    /// The number of states begun so far.
    states: u64,
    limits: RateLimits,
}

/// Lines that the kernel prints when the host is busy while threads take turns (steady.rs). They say something about
/// the host and nothing about the state.
const OF_A_BUSY_HOST: [&str; 2] = ["sched: RT throttling activated", "NOHZ tick-stop error"];

/// What the kernel said while a state was recovered.
pub struct StateLog {
    /// Lines of level warning and worse, without time stamps.
    pub lines: Vec<String>,
    /// Whether it is certain that no line is missing.
    pub whole: bool,
}

impl KernelLog {
    pub fn open() -> io::Result<KernelLog> {
        // A kernel that refuses these settings suppresses more, and this is noticed.
        let _ = std::fs::write("/proc/sys/kernel/printk_ratelimit", "0\n");
        let _ = std::fs::write("/proc/sys/kernel/printk_devkmsg", "on\n");
        let device = OpenOptions::new().write(true).open(LOG_DEVICE);
        let device = device.map_err(|e| io::Error::new(e.kind(), format!("{LOG_DEVICE}: {e}")))?;
        // Lines from the boot say nothing about a test disk.
        // SAFETY: this command takes no buffer.
        check(unsafe { libc::klogctl(CLEAR, std::ptr::null_mut(), 0) })?;
        Ok(KernelLog { device, states: 0, limits: RateLimits::default() })
    }

    /// Begin the next state: later lines are about it. With `wait`, wait first until all limits are unused.
    pub fn begin(&mut self, wait: bool) -> io::Result<()> {
        self.limits.begin();
        if wait {
            self.limits.wait();
        }
        self.states += 1;
        // One write makes one record.
        self.device.write_all(format!("<7>{}\n", self.mark()).as_bytes())
    }

    /// Take the lines since the state was begun out of the kernel's log.
    pub fn take(&mut self) -> io::Result<StateLog> {
        let text = read(READ_CLEAR)?;
        Ok(state_log(&self.mark(), &text, &mut self.limits))
    }

    /// All lines since the state was begun, as the kernel gives them. They stay in the log.
    pub fn since_begin(&self) -> io::Result<String> {
        let text = read(READ_ALL)?;
        Ok(text.rsplit_once(&self.mark()).map_or("", |(_, since)| since).to_owned())
    }

    fn mark(&self) -> String {
        format!("postcrash-agent: state {};", self.states)
    }
}

/// The kernel's log since it was cleared. `how` is an action of syslog(2).
fn read(how: i32) -> io::Result<String> {
    let mut buffer = vec![0u8; LOG_BYTES];
    // SAFETY: the buffer's length is given.
    let length = check(unsafe { libc::klogctl(how, buffer.as_mut_ptr().cast(), LOG_BYTES as i32) })?;
    Ok(String::from_utf8_lossy(&buffer[..length as usize]).into_owned())
}

/// The lines of the log after the mark. Lines before the mark came after the last state was reported. They use up
/// limits too.
fn state_log(mark: &str, log: &str, limits: &mut RateLimits) -> StateLog {
    let (before, since) = match log.rsplit_once(mark) {
        Some((before, since)) => (Some(before), since),
        None => (None, log),
    };
    before.into_iter().flat_map(str::lines).filter_map(warning).for_each(|line| limits.count(&line));
    let mut lines: Vec<String> = since.lines().filter_map(warning).collect();
    for line in lines.iter() {
        limits.count(line);
    }
    lines.retain(|line| !OF_A_BUSY_HOST.iter().any(|message| line.contains(message)));
    // The kernel may report suppressed lines of earlier states here. If a limit is known to have been reached, those
    // states were not taken for whole, so the report is no news.
    let lost = limits.may_suppress() || (limits.is_news() && tells_of_suppressed(since));
    let whole = before.is_some() && !lost;
    StateLog { lines, whole }
}

/// `<4>[    1.234567] text` as the level and `text`.
pub fn parsed(line: &str) -> Option<(u32, &str)> {
    let (level, rest) = line.strip_prefix('<')?.split_once('>')?;
    let level: u32 = level.parse().ok()?;
    let text = match rest.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((_, text)) => text,
        None => rest,
    };
    Some((level & 7, text))
}

/// `<4>[    1.234567] text` as `<4>text`, if the level is bad enough. Lines with the number of suppressed messages are
/// left out, because this number says nothing about the disk.
fn warning(line: &str) -> Option<String> {
    let (level, text) = parsed(line)?;
    (level < LEVEL_NOTICE && !text.ends_with(SUPPRESSED)).then(|| format!("<{level}>{text}"))
}

/// Whether the kernel says that it has suppressed warnings. It says this, whatever their level, just before the next
/// message that the limit lets through. That message has the level of the suppressed ones: lib/ratelimit.c,
/// ___ratelimit.
fn tells_of_suppressed(text: &str) -> bool {
    let lines: Vec<(u32, &str)> = text.lines().filter_map(parsed).collect();
    let next = |number: usize| lines.get(number + 1).map_or(0, |(level, _)| *level);
    lines.iter().enumerate().any(|(number, (_, text))| text.ends_with(SUPPRESSED) && next(number) < LEVEL_NOTICE)
}

#[cfg(test)]
mod tests {
    use super::{state_log, tells_of_suppressed, warning};
    use crate::log_limits::RateLimits;

    const MARK: &str = "postcrash-agent: state 2;";

    #[test]
    fn a_log_is_whole_from_its_mark_on() {
        let mut limits = RateLimits::default();
        let log = format!("<4>of the state before\n<15>{MARK}\n<6>note\n<4>bad\n");
        let found = state_log(MARK, &log, &mut limits);
        assert_eq!((found.lines, found.whole), (vec!["<4>bad".to_string()], true));
        let found = state_log(MARK, "<6>note\n<4>bad\n", &mut limits);
        assert_eq!((found.lines, found.whole), (vec!["<4>bad".to_string()], false));
    }

    #[test]
    fn a_limit_that_nobody_knew_of_is_noticed_when_the_kernel_tells() {
        let mut limits = RateLimits::default();
        let log = format!("<15>{MARK}\n<4>odd: 3 callbacks suppressed\n<4>bad\n");
        assert!(!state_log(MARK, &log, &mut limits).whole);
    }

    #[test]
    fn what_the_state_before_said_uses_up_limits() {
        let before = "<4>BTRFS warning (device vda): bad\n".repeat(10);
        let found = state_log(MARK, &format!("{before}<15>{MARK}\n"), &mut RateLimits::default());
        assert_eq!((found.lines.len(), found.whole), (0, false));
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
