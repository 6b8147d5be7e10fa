//! What a stretch of a file holds, as reports tell it.

use crate::pattern::{segments, TAGS};

/// The prefix of sources that spell their bytes out, in hexadecimal digits.
pub const BYTES: &str = "bytes:";

/// `content`, which stands at `offset` of its file, as segments: start, end and source. With `as_bytes` it is one segment
/// that says each byte; else the segments say which write the bytes come from.
pub fn segments_of(content: &[u8], offset: u64, as_bytes: bool) -> Vec<(u64, u64, String)> {
    if as_bytes {
        let whole = (offset, offset + content.len() as u64, BYTES.to_owned() + &hexadecimal(content));
        return if content.is_empty() { Vec::new() } else { vec![whole] };
    }
    let mut start = offset;
    let mut shown = Vec::new();
    for (end, source) in segments(content, offset, TAGS) {
        shown.push((start, offset + end as u64, source.to_string()));
        start = offset + end as u64;
    }
    shown
}

/// The source of two stretches that stand one behind the other, if they have one.
pub fn joined(first: &str, second: &str) -> Option<String> {
    match (first.strip_prefix(BYTES), second.strip_prefix(BYTES)) {
        (Some(_), Some(digits)) => Some(first.to_owned() + digits),
        _ => (first == second).then(|| first.to_owned()),
    }
}

fn hexadecimal(content: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = content.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    digits.map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_told_as_they_are() {
        assert_eq!(segments_of(&[0, 0x1f, 0xa0], 4096, true), [(4096, 4099, "bytes:001fa0".into())]);
        assert_eq!(segments_of(&[], 0, true), []);
        assert_eq!(segments_of(&[0; 512], 512, false), [(512, 1024, "zero".into())]);
    }

    #[test]
    fn stretches_of_one_source_are_joined() {
        assert_eq!(joined("bytes:00", "bytes:1f"), Some("bytes:001f".into()));
        assert_eq!(joined("zero", "zero"), Some("zero".into()));
        assert_eq!(joined("zero", "bytes:00"), None);
        assert_eq!(joined("zero", "write:1"), None);
    }
}
