//! Whether the kernel may have suppressed a warning because it had said too much before.
//!
//! A limit lets through 10 messages in 5 s (include/linux/ratelimit.h, DEFAULT_RATELIMIT_BURST and _INTERVAL), and then
//! none. For btrfs it is 100 messages of a level (fs/btrfs/messages.c, printk_limits). The limit of a place in the code
//! lasts as long as the guest, so earlier states decide whether a line of the present state is shown. A line can be
//! missing only if 10 lines like it, from any states, were shown within 5 s.
//!
//! A limit that belongs to a mount does no harm: the first ten lines of each state are shown, and one is enough.
//!
//! Some warnings are printed once in a guest's life. Warnings that print a trace (WARN_ON_ONCE) can be recognized:
//! after one trace, a second one that should have been printed may be missing. Others (pr_warn_once) go unnoticed.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

/// The number of messages that the smallest limit lets through.
const BURST: usize = 10;
/// The part of a limit that earlier states may have used up. A state that uses no more than the rest is seen whole.
const SPENT: usize = BURST / 2;
/// One second more than the limit's interval, because lines get their time only when they are read.
const INTERVAL: Duration = Duration::from_secs(6);

/// Beginnings of lines that have no limit, or only the limit of a mount. Kernels print these lines after many crashes
/// or at every mount (checkers/kernel_log.py). All other lines count as limited. Sources, in Linux 6.1: fs/ext4/super.c
/// (s_err_ratelimit_state and its like), fs/jbd2/recovery.c, fs/ext2/super.c (ext2_msg), fs/xfs/xfs_message.c
/// (xfs_warn), fs/f2fs/super.c (f2fs_printk), fs/fat/misc.c (_fat_msg), fs/exfat/super.c, fs/nilfs2/super.c
/// (__nilfs_msg), fs/reiserfs/prints.c.
const UNLIMITED: [&str; 12] = [
    "EXT4-fs",
    "EXT2-fs",
    "JBD2: Invalid checksum recovering ",
    "JBD2: recovery failed",
    "XFS (vda): Torn write (CRC failure)",
    "XFS (vda): Tail block ",
    "F2FS-fs (vda): invalid crc",
    "FAT-fs",
    "exFAT-fs (vda): Volume was not properly unmounted.",
    "NILFS (vda): mounting unchecked fs",
    "REISERFS warning:",
    "reiserfs: using flush barriers",
];
/// A part of such a line, where the file system's name comes first: fs/namespace.c, mnt_warn_timestamp_expiry.
const UNLIMITED_PART: &str = " supports timestamps until ";

/// The first line of a trace that the kernel prints: include/asm-generic/bug.h, CUT_HERE.
const TRACE: &str = "------------[ cut here ]------------";

/// The recent lines that use up limits, by what they have in common.
#[derive(Default)]
pub struct RateLimits {
    shown: HashMap<String, Vec<Instant>>,
    /// Whether a limit may have been reached at any time.
    reached: bool,
    /// Whether the kernel has ever printed a trace.
    traced: bool,
}

impl RateLimits {
    /// Forget the lines that no longer count. If half of a limit is used up, returns the time until no line counts.
    pub fn begin(&mut self) -> Duration {
        if self.shown.is_empty() {
            return Duration::ZERO;
        }
        let now = Instant::now();
        self.shown.retain(|_, times| {
            times.retain(|time| now.duration_since(*time) < INTERVAL);
            !times.is_empty()
        });
        let spent = self.shown.values().any(|times| times.len() > SPENT);
        let last = self.shown.values().flatten().max().filter(|_| spent);
        last.map_or(Duration::ZERO, |&last| (last + INTERVAL).saturating_duration_since(now))
    }

    /// If half of a limit is used up, wait until all limits are unused.
    pub fn wait(&mut self) {
        let waiting = self.begin();
        if !waiting.is_zero() {
            thread::sleep(waiting);
            self.begin();
        }
    }

    /// Whether a report of suppressed lines is news, because no limit is known to have been reached.
    pub fn is_news(&self) -> bool {
        !self.reached
    }

    /// Count a line that was shown, such as `<4>text`.
    pub fn count(&mut self, line: &str) {
        self.traced |= line.ends_with(TRACE);
        if let Some(kind) = kind(line) {
            let times = self.shown.entry(kind.to_owned()).or_default();
            times.push(Instant::now());
            self.reached |= times.len() >= BURST;
        }
    }

    /// Whether a line may be missing since `begin`.
    pub fn may_suppress(&self) -> bool {
        self.traced || self.shown.values().any(|times| times.len() >= BURST)
    }
}

/// What lines with one limit have in common: the level, and the text before the device or a number. None if the line
/// has no limit.
fn kind(line: &str) -> Option<&str> {
    let (_, text) = line.split_once('>')?;
    if UNLIMITED.iter().any(|start| text.starts_with(start)) || text.contains(UNLIMITED_PART) {
        return None;
    }
    let start = line.len() - text.len();
    let end = text.find(|c: char| c == '(' || c.is_ascii_digit()).unwrap_or(text.len());
    Some(&line[..start + end])
}

#[cfg(test)]
mod tests {
    use super::{kind, RateLimits};
    use std::time::Duration;

    #[test]
    fn lines_from_one_place_are_alike() {
        let (one, other) = ("<3>I/O error, dev vda, sector 8 op", "<3>I/O error, dev vda, sector 16 op");
        assert_eq!(kind(one), kind(other));
        assert_ne!(kind("<3>BTRFS error (device vda): a"), kind("<4>BTRFS warning (device vda): a"));
        assert_eq!(kind("<4>XFS (vda): Torn write (CRC failure) detected at log block 0x180."), None);
        assert_eq!(kind("<4>ext3 filesystem being mounted at /mnt supports timestamps until 2038"), None);
    }

    #[test]
    fn a_trace_may_be_the_only_one_of_its_kind() {
        let mut limits = RateLimits::default();
        limits.count("<4>------------[ cut here ]------------");
        assert!(limits.may_suppress());
    }

    #[test]
    fn ten_alike_may_hide_the_next_and_others_do_not() {
        let mut limits = RateLimits::default();
        assert_eq!(limits.begin(), Duration::ZERO);
        limits.count("<3>JBD2: once");
        assert_eq!(limits.begin(), Duration::ZERO);
        for number in 0..9 {
            limits.count(&format!("<4>BTRFS warning (device vda): csum failed root {number}"));
            limits.count(&format!("<3>BTRFS error (device vda): bad tree block {number}"));
            limits.count("<4>EXT4-fs (vda): warning: mounting unchecked fs");
        }
        assert!(!limits.may_suppress());
        limits.count("<4>BTRFS warning (device vda): checksum verify failed");
        assert!(limits.may_suppress());
        assert!(limits.begin() > Duration::from_secs(4));
        assert!(limits.may_suppress());
    }
}
