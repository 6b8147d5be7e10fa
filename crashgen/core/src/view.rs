//! Reading the disk of one crash state: base image, stable writes over it, and a version for each component.

use std::collections::HashMap;
use std::path::Path;

use crate::interval::{Interval, Source};
use crate::mapped::Mapped;
use crate::recording::RecordingError;
use crate::{BLOCK_SECTORS, SECTOR_BYTES};

/// The disk before the recording. Sectors past the end of the file read as zeros.
pub struct Base {
    map: Mapped,
}

impl Base {
    pub fn open(path: &Path) -> Result<Base, RecordingError> {
        let map = Mapped::open(path).map_err(|source| RecordingError::Io { path: path.to_owned(), source })?;
        Ok(Base { map })
    }

    pub fn mapped(&self) -> &Mapped {
        &self.map
    }

    pub fn sectors(&self) -> u64 {
        (self.map.len() / SECTOR_BYTES) as u64
    }

    /// Copy the content from sector `sector` on into `out` (whole sectors).
    pub fn read(&self, sector: u64, out: &mut [u8]) {
        let start = (sector as usize).saturating_mul(SECTOR_BYTES).min(self.map.len());
        let length = out.len().min(self.map.len() - start);
        out[..length].copy_from_slice(&self.map[start..start + length]);
        out[length..].fill(0);
    }
}

/// Stable sources by block.
pub type Stable = HashMap<u64, [Source; BLOCK_SECTORS as usize]>;

/// Base image, the recording's bytes and what of them is stable.
#[derive(Clone, Copy)]
pub struct Content<'a> {
    pub base: &'a Base,
    pub recorded: &'a [u8],
    pub stable: &'a Stable,
}

impl Content<'_> {
    pub fn stable_source(&self, sector: u64) -> Source {
        let block = self.stable.get(&(sector / BLOCK_SECTORS));
        block.map_or(Source::BASE, |sources| sources[(sector % BLOCK_SECTORS) as usize])
    }

    /// Copy the content that `source` gives to `sector` into `out` (one sector).
    pub fn read_source(&self, source: Source, sector: u64, out: &mut [u8]) {
        match source.data() {
            _ if source == Source::BASE => self.base.read(sector, out),
            Some(start) => out.copy_from_slice(&self.recorded[start..start + SECTOR_BYTES]),
            None => out.fill(0),
        }
    }

    /// Copy the stable content from `sector` on into `out`.
    pub fn read_stable(&self, sector: u64, out: &mut [u8]) {
        for (s, chunk) in (sector..).zip(out.chunks_exact_mut(SECTOR_BYTES)) {
            self.read_source(self.stable_source(s), s, chunk);
        }
    }

    /// Copy the content from `sector` on into `out`, asking `choose` for the version of each component that is read.
    pub fn read(&self, interval: &Interval, sector: u64, out: &mut [u8], choose: &mut dyn FnMut(u32) -> u32) {
        for (s, chunk) in (sector..).zip(out.chunks_exact_mut(SECTOR_BYTES)) {
            let source = match interval.component_at(s) {
                None => self.stable_source(s),
                Some(index) => {
                    let component = &interval.components[index as usize];
                    component.source(choose(index), s, self)
                }
            };
            self.read_source(source, s, chunk);
        }
    }
}
