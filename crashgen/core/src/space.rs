//! Reading the disk of one crash state: base image, stable writes over it, and a version for each component.
//!
//! Under a recording lies its [`Ground`]. This is an image or, for the recording of a recovery, the crash state that
//! was recovered. The part of that state that the recovery did not read is still open. Its components are then chosen
//! like those of the recovery's own crash intervals, and their numbers have the bit [`BELOW`].

use std::collections::HashMap;

use num_bigint::BigUint;
use postcrash_wire::units::SECTOR_BYTES;

use crate::choice::{Choice, Options, BELOW};
use crate::ground::{Content, Ground};
use crate::interval::Interval;
use crate::mapped::MappedFile;
use crate::piece::Source;

/// The disks that a crash may leave: a crash interval, with what lies under it.
#[derive(Clone, Copy)]
pub struct Space<'a> {
    pub content: Content<'a>,
    pub interval: &'a Interval,
}

impl Space<'_> {
    /// Copy the content from sector `sector` on into `out`. Ask `choose` for the version of each component that is
    /// read.
    pub fn read(&self, sector: u64, out: &mut [u8], choose: &mut dyn FnMut(u32) -> u32) {
        if self.is_image(sector, (out.len() / SECTOR_BYTES) as u64) {
            return self.content.ground.read(sector, out, choose);
        }
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

    /// A component that the content of `sector` depends on and that has no version among those `chosen`.
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

    /// Whether these sectors hold what the image at the bottom holds there, in all crash states. False if this is not
    /// known.
    pub fn is_image(&self, sector: u64, sectors: u64) -> bool {
        self.content.has_no_stable(sector, sectors)
            && !self.interval.touches(sector, sectors)
            && self.content.ground.is_image(sector, sectors)
    }

    /// What an explorer chooses from for the component of that number.
    pub fn options(&self, number: u32) -> Options {
        match number & BELOW {
            0 => self.interval.components[number as usize].options(),
            _ => self.content.ground.options(number),
        }
    }

    /// How many crash states there are.
    pub fn states(&self) -> BigUint {
        self.interval.states() * self.content.ground.covered(&[])
    }

    /// How many crash states agree with `choices`.
    pub fn covered(&self, choices: &[Choice]) -> BigUint {
        let (below, own): (Vec<_>, Vec<_>) = choices.iter().partition(|choice| choice.is_below());
        self.interval.covered(&own) * self.content.ground.covered(&below)
    }

    /// Pieces of the interval that are lost in a state with `choices`. Components without a choice keep all they can.
    pub fn lost(&self, choices: &[Choice]) -> Vec<u32> {
        let own: Vec<_> = choices.iter().copied().filter(|choice| !choice.is_below()).collect();
        self.interval.lost(&own)
    }
}

/// The crash states of a space that agree on `chosen`. They are the ground of a recovery that read these components and
/// no others.
pub struct CrashState<'a> {
    pub space: Space<'a>,
    /// Version by component.
    pub chosen: HashMap<u32, u32>,
}

impl CrashState<'_> {
    /// All choices of the space: those that were made, and those of `choices` that concern its components.
    fn all(&self, choices: &[Choice]) -> Vec<Choice> {
        let later = choices.iter().map(|choice| Choice { component: choice.component & !BELOW, ..*choice });
        self.chosen.iter().map(|(&component, &version)| Choice { component, version }).chain(later).collect()
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

    fn is_image(&self, sector: u64, sectors: u64) -> bool {
        self.space.is_image(sector, sectors)
    }

    fn options(&self, number: u32) -> Options {
        self.space.options(number & !BELOW)
    }

    fn covered(&self, choices: &[Choice]) -> BigUint {
        self.space.covered(&self.all(choices))
    }

    fn mapped(&self) -> &MappedFile {
        self.space.content.ground.mapped()
    }
}
