//! The bytes that a write carries, so that each byte found after a crash names the write that put it there.
//!
//! The write with tag `t` puts `1 + (t + h(o)) mod 255` at file offset `o`, where `h(o)` is byte `o mod 8` of
//! splitmix64(`o div 8`). At one offset the bytes of any two tags differ, and none is zero. Free space of base
//! images holds [`STALE`] words instead: five letters and three base-64 digits of the 4 KiB block's number.

use crate::units::{BLOCK_BYTES, SECTOR_BYTES};

/// Start of each 8-byte word in free space.
pub const STALE: &[u8; 5] = b"stale";
/// Shorter runs inside a file are a coincidence.
const STALE_RUN_BYTES_MIN: usize = 8;
/// Bytes of a write that were moved are recognised only in runs of this length: one chance match in 10^12 searches.
const MOVED_RUN_BYTES_MIN: usize = 8;
/// Bytes are moved by whole blocks. To find where they were before, this many blocks of a file, 64 MiB, are tried.
const BLOCKS_MAX: u64 = 1 << 14;
/// The limit for each sector. Without it, every one of foreign bytes would be searched for.
const SEARCHES_MAX: u32 = 4;
/// Every tag that a workload may use.
pub const TAGS: u16 = 255;
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn splitmix64(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Fill `out` with the bytes of the write `tag` at file offset `offset`.
pub fn fill(tag: u8, offset: u64, out: &mut [u8]) {
    let mut word = u64::MAX;
    let mut written = [0; 8];
    for (at, byte) in (offset..).zip(out.iter_mut()) {
        if at / 8 != word {
            word = at / 8;
            written = written_word(tag, word);
        }
        *byte = written[(at % 8) as usize];
    }
}

/// The eight bytes that the write `tag` puts at this word of a file.
fn written_word(tag: u8, word: u64) -> [u8; 8] {
    splitmix64(word).to_le_bytes().map(|hash| 1 + ((u16::from(tag) + u16::from(hash)) % 255) as u8)
}

/// Where a run of bytes comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteSource {
    Zero,
    /// The write with this tag.
    Write(u8),
    /// The write with this tag, this many bytes behind the place where it put them (before it if negative).
    Moved(u8, i64),
    /// Free space of the base image.
    Stale,
    /// None of these.
    Other,
}

impl std::fmt::Display for ByteSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ByteSource::Zero => f.write_str("zero"),
            ByteSource::Write(tag) => write!(f, "write:{tag}"),
            ByteSource::Moved(tag, distance) => write!(f, "write:{tag}{distance:+}"),
            ByteSource::Stale => f.write_str("stale"),
            ByteSource::Other => f.write_str("other"),
        }
    }
}

/// Split file content that starts at file offset `offset` (a multiple of 512) into maximal runs. `tags` is how many
/// tags exist. Returns `(end, source)` with ends counted from the start of `content`; a run starts where the one before
/// it ends.
///
/// Each sector is decoded by itself, because a crash never mixes contents within a sector. At each position the source
/// that explains the longest run wins, so a chance match of a byte or two inside foreign data does not count. Bytes of
/// a write that stand whole blocks away from where the write put them are recognised in runs of
/// [`MOVED_RUN_BYTES_MIN`].
pub fn segments(content: &[u8], offset: u64, tags: u16) -> Vec<(usize, ByteSource)> {
    let mut found: Vec<(usize, ByteSource)> = Vec::new();
    let mut distance = 0;
    for (i, sector) in content.chunks(SECTOR_BYTES).enumerate() {
        let mut decoder = Decoder::new(sector, offset + (i * SECTOR_BYTES) as u64, tags, distance);
        let mut at = 0;
        while at < sector.len() {
            let (end, source) = decoder.longest_run(at);
            match found.last_mut() {
                Some(last) if last.1 == source => last.0 = i * SECTOR_BYTES + end,
                _ => found.push((i * SECTOR_BYTES + end, source)),
            }
            at = end;
        }
        distance = decoder.distance;
    }
    found
}

struct Decoder<'a> {
    content: &'a [u8],
    /// File offset of the content, in words.
    first_word: u64,
    tags: u16,
    word: usize,
    hash: [u8; 8],
    /// How far the bytes that were found last had been moved. This distance is tried first.
    distance: i64,
    searches: u32,
}

impl<'a> Decoder<'a> {
    fn new(content: &'a [u8], offset: u64, tags: u16, distance: i64) -> Self {
        let first_word = offset / 8;
        Decoder { content, first_word, tags, word: usize::MAX, hash: [0; 8], distance, searches: SEARCHES_MAX }
    }

    /// The write that has put all bytes where they are, if it is one. Most sectors of files are such ones.
    fn only_write(&mut self) -> Option<u8> {
        let tag = self.tag_at(0)?;
        let mut words = (self.first_word..).zip(self.content.chunks(8));
        words.all(|(word, bytes)| written_word(tag, word)[..bytes.len()] == *bytes).then_some(tag)
    }

    fn tag_at(&mut self, at: usize) -> Option<u8> {
        let byte = self.content[at];
        if byte == 0 {
            return None;
        }
        if at / 8 != self.word {
            self.word = at / 8;
            self.hash = splitmix64(self.first_word + (at / 8) as u64).to_le_bytes();
        }
        self.tag_of(byte, self.hash[at % 8])
    }

    fn tag_of(&self, byte: u8, hash: u8) -> Option<u8> {
        let tag = (u16::from(byte) - 1 + 510 - u16::from(hash)) % 255;
        (tag < self.tags).then_some(tag as u8)
    }

    /// The tag of the byte at `at`, if the byte had been moved by `distance`.
    fn moved_tag_at(&self, at: usize, distance: i64) -> Option<u8> {
        let byte = self.content[at];
        let written = (self.first_word * 8 + at as u64).checked_add_signed(-distance)?;
        let hash = splitmix64(written / 8).to_le_bytes()[(written % 8) as usize];
        if byte == 0 {
            None
        } else {
            self.tag_of(byte, hash)
        }
    }

    /// End and source of the run from `at` of bytes that had been moved by `distance`, if it is long enough.
    fn moved_run(&self, at: usize, distance: i64) -> Option<(usize, ByteSource)> {
        let tag = self.moved_tag_at(at, distance)?;
        let end = (at..self.content.len()).find(|&i| self.moved_tag_at(i, distance) != Some(tag));
        let end = end.unwrap_or(self.content.len());
        (end - at >= MOVED_RUN_BYTES_MIN).then_some((end, ByteSource::Moved(tag, distance)))
    }

    /// The same for any distance.
    fn moved(&mut self, at: usize) -> Option<(usize, ByteSource)> {
        if self.content.len() - at < MOVED_RUN_BYTES_MIN || self.content[at] == 0 {
            return None;
        }
        let known = (self.distance != 0).then(|| self.moved_run(at, self.distance)).flatten();
        if known.is_some() || self.searches == 0 {
            return known;
        }
        self.searches -= 1;
        let own = (self.first_word * 8 + at as u64) / BLOCK_BYTES as u64;
        let blocks = (0..BLOCKS_MAX).filter(|&block| block != own);
        let mut distances = blocks.map(|block| (own as i64 - block as i64) * BLOCK_BYTES as i64);
        let (found, distance) = distances.find_map(|distance| Some((self.moved_run(at, distance)?, distance)))?;
        self.distance = distance;
        Some(found)
    }

    fn stale_at(&self, at: usize) -> bool {
        let byte = self.content[at];
        match at % 8 {
            letter @ 0..=4 => byte == STALE[letter],
            _ => DIGITS.contains(&byte),
        }
    }

    fn run(&mut self, at: usize, mut holds: impl FnMut(&mut Self, usize) -> bool) -> usize {
        let mut end = at;
        while end < self.content.len() && holds(self, end) {
            end += 1;
        }
        end
    }

    /// End and source of the longest run from `at`. If nothing matches, it is one byte of [`ByteSource::Other`].
    fn longest_run(&mut self, at: usize) -> (usize, ByteSource) {
        if let Some(tag) = (at == 0).then(|| self.only_write()).flatten() {
            return (self.content.len(), ByteSource::Write(tag));
        }
        let zero = self.run(at, |d, i| d.content[i] == 0);
        if zero > at {
            return (zero, ByteSource::Zero);
        }
        let mut stale = self.run(at, |d, i| d.stale_at(i));
        if stale - at < STALE_RUN_BYTES_MIN && stale < self.content.len() {
            stale = at;
        }
        let written = match self.tag_at(at) {
            Some(tag) => (self.run(at, |d, i| d.tag_at(i) == Some(tag)), ByteSource::Write(tag)),
            None => (at, ByteSource::Other),
        };
        let best = if stale > written.0 { (stale, ByteSource::Stale) } else { written };
        if best.0 - at < MOVED_RUN_BYTES_MIN {
            if let Some(moved) = self.moved(at) {
                return moved;
            }
        }
        if best.0 == at {
            (at + 1, ByteSource::Other)
        } else {
            best
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(tag: u8, offset: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        fill(tag, offset, &mut bytes);
        bytes
    }

    /// Fill `out` with the garbage of 4 KiB block number `block`.
    fn fill_stale(block: u64, out: &mut [u8]) {
        let mut word = [0; 8];
        word[..5].copy_from_slice(STALE);
        for (i, digit) in word[5..].iter_mut().enumerate() {
            *digit = DIGITS[(block >> (6 * (2 - i)) & 63) as usize];
        }
        for (at, byte) in out.iter_mut().enumerate() {
            *byte = word[at % 8];
        }
    }

    #[test]
    fn mixed_content_is_taken_apart_to_the_byte() {
        let mut stale = vec![0; 4096];
        fill_stale(77, &mut stale);
        let content = [written(3, 0, 100), written(4, 100, 900), vec![0; 24], stale[1024..2048].to_vec()].concat();
        assert_eq!(
            segments(&content, 0, 5),
            [
                (100, ByteSource::Write(3)),
                (1000, ByteSource::Write(4)),
                (1024, ByteSource::Zero),
                (2048, ByteSource::Stale)
            ]
        );
    }

    #[test]
    fn one_byte_that_differs_is_found_wherever_it_is() {
        let whole = written(6, 1024, 300);
        assert_eq!(segments(&whole, 1024, 7), [(300, ByteSource::Write(6))]);
        for at in 0..whole.len() {
            let mut content = whole.clone();
            content[at] = 0;
            let expected = [(at, ByteSource::Write(6)), (at + 1, ByteSource::Zero), (300, ByteSource::Write(6))];
            let found = segments(&content, 1024, 7);
            let expected: Vec<_> = expected.into_iter().filter(|run| run.0 > 0).collect();
            assert_eq!(found, if at == 299 { expected[..2].to_vec() } else { expected });
        }
    }

    #[test]
    fn bytes_that_were_moved_by_whole_blocks_name_their_write_and_how_far() {
        let content = [written(7, 12288, 700), vec![0; 324], written(8, 1024, 100), written(3, 5220, 412)].concat();
        let expected = [
            (700, ByteSource::Moved(7, -12288)),
            (1024, ByteSource::Zero),
            (1124, ByteSource::Write(8)),
            (1536, ByteSource::Moved(3, -4096)),
        ];
        assert_eq!(segments(&content, 0, TAGS), expected);
        assert_eq!(expected[0].1.to_string(), "write:7-12288");
        assert_eq!(segments(&written(254, 0, 4096), 8192, TAGS), [(4096, ByteSource::Moved(254, 8192))]);
        assert_eq!(ByteSource::Moved(254, 8192).to_string(), "write:254+8192");
    }

    #[test]
    fn bytes_of_another_offset_are_not_mistaken_for_a_write() {
        let moved = written(0, 4096 + 512, 4096);
        assert!(segments(&moved, 0, 1).iter().all(|(_, source)| *source != ByteSource::Stale));
        let explained: usize = lengths(&segments(&moved, 0, 1), ByteSource::Write(0));
        assert!(explained < 100, "{explained} bytes of a moved block look as if they were in place");
    }

    #[test]
    fn content_that_starts_later_in_the_file_is_recognised() {
        assert_eq!(segments(&written(9, 8192, 700), 8192, 10), [(700, ByteSource::Write(9))]);
    }

    fn lengths(runs: &[(usize, ByteSource)], wanted: ByteSource) -> usize {
        let mut start = 0;
        let mut total = 0;
        for &(end, source) in runs {
            if source == wanted {
                total += end - start;
            }
            start = end;
        }
        total
    }

    #[test]
    fn all_tags_differ_at_every_offset() {
        for offset in 0..64 {
            let bytes: std::collections::HashSet<u8> = (0..255).map(|tag| written(tag, offset, 1)[0]).collect();
            assert_eq!(bytes.len(), 255);
            assert!(!bytes.contains(&0));
        }
    }
}
