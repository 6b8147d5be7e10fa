//! The kernel's log since it was last read.

use std::io;

use crate::sys::check;

const READ_CLEAR: i32 = 4;
const CLEAR: i32 = 5;
/// Worst level that is not reported: notice. (warning is 4)
const LEVEL_NOTICE: u32 = 5;
const LOG_BYTES: usize = 128 << 10;

pub fn clear() -> io::Result<()> {
    // SAFETY: this command takes no buffer.
    check(unsafe { libc::klogctl(CLEAR, std::ptr::null_mut(), 0) }).map(|_| ())
}

/// Lines of level warning and worse, without time stamps, and forget them.
pub fn take_warnings() -> io::Result<Vec<String>> {
    let mut buffer = vec![0u8; LOG_BYTES];
    // SAFETY: the buffer's length is given.
    let length = check(unsafe { libc::klogctl(READ_CLEAR, buffer.as_mut_ptr().cast(), LOG_BYTES as i32) })?;
    let text = String::from_utf8_lossy(&buffer[..length as usize]);
    Ok(text.lines().filter_map(warning).collect())
}

/// `<4>[    1.234567] text` as `<4>text`, if the level is bad enough. That the kernel has suppressed messages (of any
/// level, because they came too fast) says nothing of the disk.
fn warning(line: &str) -> Option<String> {
    let (level, rest) = line.strip_prefix('<')?.split_once('>')?;
    let level: u32 = level.parse().ok()?;
    let text = match rest.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((_, text)) => text,
        None => rest,
    };
    (level & 7 < LEVEL_NOTICE && !text.ends_with("callbacks suppressed")).then(|| format!("<{}>{text}", level & 7))
}

#[cfg(test)]
mod tests {
    use super::warning;

    #[test]
    fn warnings_lose_their_time_stamp_and_notices_are_dropped() {
        assert_eq!(warning("<4>[    1.5] EXT4-fs warning"), Some("<4>EXT4-fs warning".into()));
        assert_eq!(warning("<3>JBD2: bad"), Some("<3>JBD2: bad".into()));
        assert_eq!(warning("<5>[    1.5] XFS (vda): Ending recovery"), None);
        assert_eq!(warning("continuation"), None);
        assert_eq!(warning("<4>[    1.5] _btrfs_printk: 1511 callbacks suppressed"), None);
    }
}
