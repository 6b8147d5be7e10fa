//! What lies under a crash interval: the disk before the recording, and the part of the recording that is stable.

use std::path::Path;

use foldhash::HashMap;
use num_bigint::BigUint;
use num_traits::One;
use postcrash_wire::units::{blocks_of, BLOCK_SECTORS, SECTOR_BYTES};

use crate::choice::{Choice, Options};
use crate::mapped::MappedFile;
use crate::piece::Source;
use crate::recording::RecordingError;

/// The disk before a recording.
pub trait Ground {
    fn sectors(&self) -> u64;
    /// Copy the content from sector `sector` on into `out` (whole sectors). Ask `choose` for the version of each
    /// component that the content depends on.
    fn read(&self, sector: u64, out: &mut [u8], choose: &mut dyn FnMut(u32) -> u32);
    /// A component that the content of `sector` depends on and that has no version among those `chosen`.
    fn open(&self, sector: u64, chosen: &dyn Fn(u32) -> Option<u32>) -> Option<u32>;
    /// Whether these sectors hold what the image at the bottom holds there, in all versions of all components. False if
    /// this is not known.
    fn is_image(&self, sector: u64, sectors: u64) -> bool;
    /// What an explorer chooses from for the component of that number.
    fn options(&self, number: u32) -> Options;
    /// How many disks before the recording agree with `choices`.
    fn covered(&self, choices: &[Choice]) -> BigUint;
    /// The image at the bottom.
    fn mapped(&self) -> &MappedFile;
}

/// A disk image. Sectors past the end of the file read as zeros.
pub struct Base {
    map: MappedFile,
}

impl Base {
    pub fn open(path: &Path) -> Result<Base, RecordingError> {
        let map = MappedFile::open(path).map_err(|source| RecordingError::Io { path: path.to_owned(), source })?;
        Ok(Base { map })
    }
}

impl Ground for Base {
    fn sectors(&self) -> u64 {
        (self.map.len() / SECTOR_BYTES) as u64
    }

    fn read(&self, sector: u64, out: &mut [u8], _choose: &mut dyn FnMut(u32) -> u32) {
        let start = (sector as usize).saturating_mul(SECTOR_BYTES).min(self.map.len());
        let length = out.len().min(self.map.len() - start);
        out[..length].copy_from_slice(&self.map[start..start + length]);
        out[length..].fill(0);
    }

    fn open(&self, _sector: u64, _chosen: &dyn Fn(u32) -> Option<u32>) -> Option<u32> {
        None
    }

    fn is_image(&self, _sector: u64, _sectors: u64) -> bool {
        true
    }

    fn options(&self, _number: u32) -> Options {
        unreachable!("an image has no components")
    }

    fn covered(&self, _choices: &[Choice]) -> BigUint {
        BigUint::one()
    }

    fn mapped(&self) -> &MappedFile {
        &self.map
    }
}

/// Sources of stable sectors, by block.
pub type Stable = HashMap<u64, [Source; BLOCK_SECTORS as usize]>;

/// Ground, the recording's bytes, and which of them are stable.
#[derive(Clone, Copy)]
pub struct Content<'a> {
    pub ground: &'a dyn Ground,
    pub recording: &'a [u8],
    pub stable: &'a Stable,
}

impl Content<'_> {
    pub fn stable_source(&self, sector: u64) -> Source {
        let block = self.stable.get(&(sector / BLOCK_SECTORS));
        block.map_or(Source::BASE, |sources| sources[(sector % BLOCK_SECTORS) as usize])
    }

    /// Whether no write to these sectors is stable, nor one to the rest of their blocks.
    pub(crate) fn has_no_stable(&self, sector: u64, sectors: u64) -> bool {
        blocks_of(sector, sectors).all(|block| !self.stable.contains_key(&block))
    }

    /// The bytes that `source` gives to `sector`. None if they depend on a version that is not chosen.
    pub fn settled(&self, source: Source, sector: u64) -> Option<[u8; SECTOR_BYTES]> {
        if source == Source::BASE && self.ground.open(sector, &|_| None).is_some() {
            return None;
        }
        let mut out = [0; SECTOR_BYTES];
        self.read_source(source, sector, &mut out, &mut |_| unreachable!("nothing is open there"));
        Some(out)
    }

    pub(crate) fn read_source(&self, source: Source, sector: u64, out: &mut [u8], choose: &mut dyn FnMut(u32) -> u32) {
        match source.data() {
            _ if source == Source::BASE => self.ground.read(sector, out, choose),
            Some(start) => out.copy_from_slice(&self.recording[start..start + SECTOR_BYTES]),
            None => out.fill(0),
        }
    }
}
