//! Reading the disk of one crash state: base image, stable writes over it, and a version for each component.
//!
//! Under a recording lies its [`Ground`]: an image, or, where the recording is that of a recovery, the crash state that was
//! recovered. What of that state the recovery did not read is still open; its components are then chosen like those of
//! the recovery's own crash intervals, under numbers with the bit [`BELOW`].

use std::collections::HashMap;
use std::path::Path;

use num_bigint::BigUint;
use num_traits::One;

use crate::component::Component;
use crate::interval::{Interval, Source};
use crate::mapped::Mapped;
use crate::recording::RecordingError;
use crate::{BLOCK_SECTORS, SECTOR_BYTES};

/// Marks the components of the crash state under a recording.
pub const BELOW: u32 = 1 << 31;

/// The disk before a recording.
pub trait Ground {
    fn sectors(&self) -> u64;
    /// Copy the content from sector `sector` on into `out` (whole sectors), asking `choose` for the version of each
    /// component that it depends on.
    fn read(&self, sector: u64, out: &mut [u8], choose: &mut dyn FnMut(u32) -> u32);
    /// A component without a version among those `chosen` that the content of `sector` depends on.
    fn open(&self, sector: u64, chosen: &dyn Fn(u32) -> Option<u32>) -> Option<u32>;
    /// The component of that number.
    fn component(&self, number: u32) -> &Component;
    /// How many disks before the recording agree with `choices` (component, version).
    fn covered(&self, choices: &[(u32, u32)]) -> BigUint;
    /// The image at the bottom.
    fn mapped(&self) -> &Mapped;
}

/// A disk image. Sectors past the end of the file read as zeros.
pub struct Base {
    map: Mapped,
}

impl Base {
    pub fn open(path: &Path) -> Result<Base, RecordingError> {
        let map = Mapped::open(path).map_err(|source| RecordingError::Io { path: path.to_owned(), source })?;
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

    fn component(&self, _number: u32) -> &Component {
        unreachable!("an image has no components")
    }

    fn covered(&self, _choices: &[(u32, u32)]) -> BigUint {
        BigUint::one()
    }

    fn mapped(&self) -> &Mapped {
        &self.map
    }
}

/// Stable sources by block.
pub type Stable = HashMap<u64, [Source; BLOCK_SECTORS as usize]>;

/// Ground, the recording's bytes and what of them is stable.
#[derive(Clone, Copy)]
pub struct Content<'a> {
    pub ground: &'a dyn Ground,
    pub recorded: &'a [u8],
    pub stable: &'a Stable,
}

impl Content<'_> {
    pub fn stable_source(&self, sector: u64) -> Source {
        let block = self.stable.get(&(sector / BLOCK_SECTORS));
        block.map_or(Source::BASE, |sources| sources[(sector % BLOCK_SECTORS) as usize])
    }

    /// The bytes that `source` gives to `sector`; none where they depend on a version that is not chosen.
    pub fn settled(&self, source: Source, sector: u64) -> Option<[u8; SECTOR_BYTES]> {
        if source == Source::BASE && self.ground.open(sector, &|_| None).is_some() {
            return None;
        }
        let mut out = [0; SECTOR_BYTES];
        self.read_source(source, sector, &mut out, &mut |_| unreachable!("nothing is open there"));
        Some(out)
    }

    fn read_source(&self, source: Source, sector: u64, out: &mut [u8], choose: &mut dyn FnMut(u32) -> u32) {
        match source.data() {
            _ if source == Source::BASE => self.ground.read(sector, out, choose),
            Some(start) => out.copy_from_slice(&self.recorded[start..start + SECTOR_BYTES]),
            None => out.fill(0),
        }
    }
}

/// The disks that a crash may leave: a crash interval, with what lies under it.
#[derive(Clone, Copy)]
pub struct Space<'a> {
    pub content: Content<'a>,
    pub interval: &'a Interval,
}

impl Space<'_> {
    /// Copy the content from sector `sector` on into `out`, asking `choose` for the version of each component that is read.
    pub fn read(&self, sector: u64, out: &mut [u8], choose: &mut dyn FnMut(u32) -> u32) {
        for (s, chunk) in (sector..).zip(out.chunks_exact_mut(SECTOR_BYTES)) {
            let source = match self.interval.component_at(s) {
                None => self.content.stable_source(s),
                Some(index) => {
                    let component = &self.interval.components[index as usize];
                    component.source(choose(index), s, &self.content)
                }
            };
            self.content.read_source(source, s, chunk, choose);
        }
    }

    /// A component without a version among those `chosen` that the content of `sector` depends on.
    pub fn open(&self, sector: u64, chosen: &dyn Fn(u32) -> Option<u32>) -> Option<u32> {
        let source = match self.interval.component_at(sector) {
            None => self.content.stable_source(sector),
            Some(index) => match chosen(index) {
                None => return Some(index),
                Some(version) => self.interval.components[index as usize].source(version, sector, &self.content),
            },
        };
        (source == Source::BASE).then(|| self.content.ground.open(sector, chosen)).flatten()
    }

    /// The component of that number.
    pub fn component(&self, number: u32) -> &Component {
        match number & BELOW {
            0 => &self.interval.components[number as usize],
            _ => self.content.ground.component(number),
        }
    }

    /// How many crash states there are.
    pub fn states(&self) -> BigUint {
        self.interval.states() * self.content.ground.covered(&[])
    }

    /// How many crash states agree with `choices` (component, version).
    pub fn covered(&self, choices: &[(u32, u32)]) -> BigUint {
        let (below, own): (Vec<_>, Vec<_>) = choices.iter().partition(|choice| choice.0 & BELOW != 0);
        self.interval.covered(&own) * self.content.ground.covered(&below)
    }

    /// Pieces of the interval that a state with `choices` has lost; components without a choice keep all they can.
    pub fn lost(&self, choices: &[(u32, u32)]) -> Vec<u32> {
        let own: Vec<_> = choices.iter().copied().filter(|choice| choice.0 & BELOW == 0).collect();
        self.interval.lost(&own)
    }
}

/// The crash states of a space that agree on `chosen`: the ground of the recovery that read these components and no others.
pub struct CrashState<'a> {
    pub space: Space<'a>,
    /// Version by component.
    pub chosen: HashMap<u32, u32>,
}

impl CrashState<'_> {
    /// All choices of the space: those that were made, and those of `choices` that are about its components.
    fn all(&self, choices: &[(u32, u32)]) -> Vec<(u32, u32)> {
        let later = choices.iter().map(|&(component, version)| (component & !BELOW, version));
        self.chosen.iter().map(|(&component, &version)| (component, version)).chain(later).collect()
    }
}

impl Ground for CrashState<'_> {
    fn sectors(&self) -> u64 {
        self.space.content.ground.sectors()
    }

    fn read(&self, sector: u64, out: &mut [u8], choose: &mut dyn FnMut(u32) -> u32) {
        self.space.read(sector, out, &mut |component| match self.chosen.get(&component) {
            Some(&version) => version,
            None => choose(component | BELOW),
        });
    }

    fn open(&self, sector: u64, chosen: &dyn Fn(u32) -> Option<u32>) -> Option<u32> {
        let known = |component: u32| self.chosen.get(&component).copied().or_else(|| chosen(component | BELOW));
        self.space.open(sector, &known).map(|component| component | BELOW)
    }

    fn component(&self, number: u32) -> &Component {
        self.space.component(number & !BELOW)
    }

    fn covered(&self, choices: &[(u32, u32)]) -> BigUint {
        self.space.covered(&self.all(choices))
    }

    fn mapped(&self) -> &Mapped {
        self.space.content.ground.mapped()
    }
}
