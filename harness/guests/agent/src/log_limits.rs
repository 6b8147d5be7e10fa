//! Whether the kernel may have suppressed a warning because it had said too much before.
//!
//! A limit lets through 10 messages in 5 s (include/linux/ratelimit.h, DEFAULT_RATELIMIT_BURST and _INTERVAL), of btrfs'
//! 100 of a level (fs/btrfs/messages.c, printk_limits), and then none. One that comes from a place in the code belongs to
//! the guest, so that the states before decide whether the line of a state shows. So a line can be missing only where 10
//! like it, from whatever states, were shown within 5 s.
//!
//! A limit that belongs to a mount does no harm: the first ten lines of each state show, and one is enough to tell.
//!
//! Some warnings are printed once in a guest's life. Those of them that print a trace (WARN_ON_ONCE) can be told: after a
//! trace, one more that should have been printed may be missing. Others (pr_warn_once) go unnoticed.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

/// Of the smallest limit.
const BURST: usize = 10;
/// A state that uses up no more than the rest of a limit is seen whole.
const SPENT: usize = BURST / 2;
/// A second more than the limit's, as lines are timed when they are read.
const INTERVAL: Duration = Duration::from_secs(6);

/// How lines begin that have no limit or that of a mount. They stand here because kernels say them after many crashes, or
/// at every mount (checkers/kernel_log.py); all others count as limited. From Linux 6.1: fs/ext4/super.c
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
/// The same, in fs/namespace.c, mnt_warn_timestamp_expiry; the file system's name comes first.
const UNLIMITED_PART: &str = " supports timestamps until ";

/// Begins a trace that the kernel prints of itself: include/asm-generic/bug.h, CUT_HERE.
const TRACE: &str = "------------[ cut here ]------------";

/// The lines of late that use up limits, by what they have in common.
#[derive(Default)]
pub struct RateLimits {
    shown: HashMap<String, Vec<Instant>>,
    /// Whether a limit may have been reached at any time.
    reached: bool,
    /// Whether the kernel has ever printed a trace.
    traced: bool,
}

impl RateLimits {
    /// Forget the lines that no longer count. Returns how long it takes until none does, if half of a limit is used up.
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

    /// Wait until no limit is used up, if half of one is.
    pub fn wait(&mut self) {
        let waiting = self.begin();
        if !waiting.is_zero() {
            thread::sleep(waiting);
            self.begin();
        }
    }

    /// Whether it is news if the kernel says that it has suppressed lines: no limit is known to have been reached.
    pub fn is_news(&self) -> bool {
        !self.reached
    }

    /// Count in a line such as `<4>text` that was shown.
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

/// What lines that share a limit have in common: the level, and the text before the device or a number. None if there is
/// no limit.
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
