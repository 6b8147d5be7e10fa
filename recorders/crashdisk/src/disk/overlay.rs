//! Copy-on-write over a disk: what the guest itself has written. Dropping it takes no time.

use std::ops::Range;

use foldhash::HashMap;
use postcrash_wire::units::{blocks_of, BLOCK_BYTES, BLOCK_SECTORS, SECTOR_BYTES};

#[derive(Clone)]
struct Patch {
    data: Box<[u8; BLOCK_BYTES]>,
    /// One bit for each sector that has been written.
    written: u8,
}

#[derive(Default)]
pub struct Overlay {
    blocks: HashMap<u64, Patch>,
    /// Whole blocks that hide what is below with zeros: a disk that was lost and replaced by a blank one.
    blank: Range<u64>,
}

impl Overlay {
    /// Nothing was written yet. The sectors `blank` are zeros, whatever is below.
    pub fn over_blank(blank: Range<u64>) -> Overlay {
        Overlay { blank, ..Overlay::default() }
    }

    /// Write whole sectors.
    pub fn write(&mut self, sector: u64, data: &[u8]) {
        for (i, chunk) in (0..).zip(data.chunks_exact(SECTOR_BYTES)) {
            let s = sector.wrapping_add(i);
            let patch = self.blocks.entry(s / BLOCK_SECTORS);
            let patch = patch.or_insert_with(|| Patch { data: Box::new([0; BLOCK_BYTES]), written: 0 });
            let at = (s % BLOCK_SECTORS) as usize;
            patch.data[at * SECTOR_BYTES..][..SECTOR_BYTES].copy_from_slice(chunk);
            patch.written |= 1 << at;
        }
    }

    pub fn zero(&mut self, sector: u64, sectors: u64) {
        for s in sector..sector.saturating_add(sectors) {
            self.write(s, &[0; SECTOR_BYTES]);
        }
    }

    /// The blocks for which `wanted` holds; it gets the block's number.
    pub fn part(&self, wanted: impl Fn(u64) -> bool) -> Overlay {
        let blocks = self.blocks.iter().filter(|(&block, _)| wanted(block));
        let blocks = blocks.map(|(&block, patch)| (block, patch.clone())).collect();
        Overlay { blocks, blank: self.blank.clone() }
    }

    /// About how many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        self.blocks.len() * (BLOCK_BYTES + size_of::<(u64, Patch)>())
    }

    /// Whether this sector hides what is below: the guest has written it, or it is blank.
    pub fn has(&self, sector: u64) -> bool {
        let patch = self.blocks.get(&(sector / BLOCK_SECTORS));
        self.blank.contains(&sector) || patch.is_some_and(|patch| patch.written >> (sector % BLOCK_SECTORS) & 1 == 1)
    }

    /// Whether none of these sectors hides what is below, nor any in the rest of their blocks.
    pub fn has_none(&self, sector: u64, sectors: u64) -> bool {
        let is_blank = sector < self.blank.end && self.blank.start < sector.saturating_add(sectors);
        !is_blank && blocks_of(sector, sectors).all(|block| !self.blocks.contains_key(&block))
    }

    /// Read whole sectors; `below` fills those that were not written here, one or more at a time.
    pub fn read(&self, sector: u64, out: &mut [u8], below: &mut dyn FnMut(u64, &mut [u8])) {
        if self.has_none(sector, (out.len() / SECTOR_BYTES) as u64) {
            return below(sector, out);
        }
        for (i, chunk) in (0..).zip(out.chunks_exact_mut(SECTOR_BYTES)) {
            let s = sector.wrapping_add(i);
            let at = (s % BLOCK_SECTORS) as usize;
            match self.blocks.get(&(s / BLOCK_SECTORS)) {
                Some(patch) if patch.written >> at & 1 == 1 => {
                    chunk.copy_from_slice(&patch.data[at * SECTOR_BYTES..][..SECTOR_BYTES]);
                }
                _ if self.blank.contains(&s) => chunk.fill(0),
                _ => below(s, chunk),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(overlay: &Overlay, sector: u64, sectors: usize) -> Vec<u8> {
        let mut out = vec![0; sectors * SECTOR_BYTES];
        let mut below = |s: u64, out: &mut [u8]| {
            for (i, chunk) in (0..).zip(out.chunks_exact_mut(SECTOR_BYTES)) {
                chunk.fill(0xb0 | (s.wrapping_add(i) % 8) as u8);
            }
        };
        overlay.read(sector, &mut out, &mut below);
        let uniform = |sector: &[u8]| {
            assert!(sector.iter().all(|byte| *byte == sector[0]));
            sector[0]
        };
        out.chunks_exact(SECTOR_BYTES).map(uniform).collect()
    }

    #[test]
    fn a_blank_disk_hides_what_is_below_until_it_is_written() {
        let mut overlay = Overlay::over_blank(8..24);
        overlay.write(9, &[1; SECTOR_BYTES]);
        assert_eq!(read(&overlay, 6, 4), [0xb6, 0xb7, 0, 1]);
        assert_eq!(read(&overlay, 23, 2), [0, 0xb0]);
        assert!(overlay.has(8) && overlay.has(23) && !overlay.has(7) && !overlay.has(24));
        assert!(
            overlay.has_none(0, 8) && overlay.has_none(24, 8) && !overlay.has_none(0, 9) && !overlay.has_none(16, 8)
        );
        assert!(overlay.part(|_| false).has(8));
    }

    #[test]
    fn what_was_written_hides_what_is_below() {
        let mut overlay = Overlay::default();
        overlay.write(6, &[[1; SECTOR_BYTES], [2; SECTOR_BYTES], [3; SECTOR_BYTES]].concat());
        overlay.zero(7, 1);
        assert_eq!(read(&overlay, 5, 5), [0xb5, 1, 0, 3, 0xb1]);
    }

    #[test]
    fn the_last_sectors_of_all_do_not_overflow() {
        let mut overlay = Overlay::default();
        overlay.write(u64::MAX, &[1; SECTOR_BYTES]);
        overlay.zero(u64::MAX - 1, 5);
        assert_eq!(read(&overlay, u64::MAX, 2), [1, 0xb0]);
        assert_eq!(read(&overlay, u64::MAX - 2, 2), [0xb5, 0]);
    }

    #[test]
    fn an_incomplete_sector_is_not_written() {
        let mut overlay = Overlay::default();
        overlay.write(0, &[1; SECTOR_BYTES + 100]);
        overlay.write(2, &[1; 100]);
        assert_eq!(read(&overlay, 0, 3), [1, 0xb1, 0xb2]);
    }
}
