//! Copy-on-write over a disk: what the guest itself has written. Dropping it takes no time.

use std::collections::HashMap;

use postcrash_core::{BLOCK_BYTES, BLOCK_SECTORS, SECTOR_BYTES};

struct Patch {
    data: Box<[u8; BLOCK_BYTES]>,
    /// One bit for each sector that has been written.
    written: u8,
}

#[derive(Default)]
pub struct Overlay {
    blocks: HashMap<u64, Patch>,
}

impl Overlay {
    /// Write whole sectors.
    pub fn write(&mut self, sector: u64, data: &[u8]) {
        for (s, chunk) in (sector..).zip(data.chunks_exact(SECTOR_BYTES)) {
            let patch = self.blocks.entry(s / BLOCK_SECTORS);
            let patch = patch.or_insert_with(|| Patch { data: Box::new([0; BLOCK_BYTES]), written: 0 });
            let at = (s % BLOCK_SECTORS) as usize;
            patch.data[at * SECTOR_BYTES..][..SECTOR_BYTES].copy_from_slice(chunk);
            patch.written |= 1 << at;
        }
    }

    pub fn zero(&mut self, sector: u64, sectors: u64) {
        for s in sector..sector + sectors {
            self.write(s, &[0; SECTOR_BYTES]);
        }
    }

    /// Whether the guest has written this sector.
    pub fn has(&self, sector: u64) -> bool {
        let patch = self.blocks.get(&(sector / BLOCK_SECTORS));
        patch.is_some_and(|patch| patch.written >> (sector % BLOCK_SECTORS) & 1 == 1)
    }

    /// Read whole sectors; `below` fills those that were not written here.
    pub fn read(&self, sector: u64, out: &mut [u8], below: &mut dyn FnMut(u64, &mut [u8])) {
        for (s, chunk) in (sector..).zip(out.chunks_exact_mut(SECTOR_BYTES)) {
            let at = (s % BLOCK_SECTORS) as usize;
            match self.blocks.get(&(s / BLOCK_SECTORS)) {
                Some(patch) if patch.written >> at & 1 == 1 => {
                    chunk.copy_from_slice(&patch.data[at * SECTOR_BYTES..][..SECTOR_BYTES]);
                }
                _ => below(s, chunk),
            }
        }
    }
}
