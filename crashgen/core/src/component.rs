//! Components: the independent choices of a crash interval.
//!
//! Pieces that overlap, directly or through others, form a component: a short run of sectors within one block.
//! What a crash leaves in one component says nothing about another, so a crash state is one [`Version`] per component.
//! Versions are distinct contents; each knows how many keep-or-lose assignments of its pieces lead to it.

use num_bigint::BigUint;
use num_traits::One;
use thiserror::Error;

use crate::interval::{Piece, Source};
use crate::view::Content;
use crate::SECTOR_BYTES;

/// More distinct contents than this in one component and the interval is not explored.
pub const VERSIONS_MAX: usize = 4096;

/// One content that a crash may leave in a component.
#[derive(Debug, Clone)]
pub struct Version {
    /// Where each sector's content comes from.
    pub sources: Vec<Source>,
    /// How many assignments of the component's pieces give this content.
    pub weight: BigUint,
    /// Pieces (indices into the interval's) lost in the assignment with the fewest losses that gives this content.
    pub lost: Vec<u32>,
}

/// A run of sectors with the contents that a crash may leave there, fewest losses first.
#[derive(Debug, Clone)]
pub struct Component {
    pub sector: u64,
    pub sectors: u64,
    pub pieces: u32,
    pub versions: Vec<Version>,
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("{pieces} overlapping writes at sector {sector} leave more than {VERSIONS_MAX} contents")]
pub struct TooManyVersions {
    pub sector: u64,
    pub pieces: usize,
}

impl Component {
    /// The versions of the component made by `pieces` (indices into `all`, in submission order).
    ///
    /// Folds the pieces in submission order over the stable content: each either leaves a content as it is or
    /// shows in the sectors where nothing submitted later is stable.
    pub fn build(pieces: &[u32], all: &[Piece], content: &Content<'_>) -> Result<Component, TooManyVersions> {
        let (sector, end) = span(pieces, all);
        let stable: Vec<Source> = (sector..end).map(|s| content.stable_source(s)).collect();
        let first = Version { sources: stable.clone(), weight: BigUint::one(), lost: Vec::new() };
        let mut versions = vec![first];
        for &index in pieces {
            let piece = &all[index as usize];
            let mut next: Vec<Version> = Vec::with_capacity(versions.len() * 2);
            for version in versions {
                let mut kept = version.clone();
                piece.show(&mut kept.sources, &stable, sector);
                let mut lost = version;
                lost.lost.push(index);
                merge(&mut next, kept, content, sector);
                merge(&mut next, lost, content, sector);
            }
            if next.len() > VERSIONS_MAX {
                return Err(TooManyVersions { sector, pieces: pieces.len() });
            }
            versions = next;
        }
        versions.sort_by_key(|version| version.lost.len());
        Ok(Component { sector, sectors: end - sector, pieces: pieces.len() as u32, versions })
    }
}

fn span(pieces: &[u32], all: &[Piece]) -> (u64, u64) {
    let start = pieces.iter().map(|&i| all[i as usize].sector).min().expect("a component has pieces");
    let end = pieces.iter().map(|&i| all[i as usize].end()).max().expect("a component has pieces");
    (start, end)
}

/// Add `version`, or its weight to the version with the same bytes.
fn merge(versions: &mut Vec<Version>, version: Version, content: &Content<'_>, sector: u64) {
    let same = |known: &Version| {
        known.sources == version.sources || bytes(known, content, sector) == bytes(&version, content, sector)
    };
    match versions.iter_mut().find(|known| same(known)) {
        None => versions.push(version),
        Some(known) => {
            known.weight += version.weight;
            if version.lost.len() < known.lost.len() {
                known.lost = version.lost;
            }
        }
    }
}

fn bytes(version: &Version, content: &Content<'_>, sector: u64) -> Vec<u8> {
    let mut out = vec![0; version.sources.len() * SECTOR_BYTES];
    for (i, chunk) in out.chunks_exact_mut(SECTOR_BYTES).enumerate() {
        content.read_source(version.sources[i], sector + i as u64, chunk);
    }
    out
}

/// Group pieces into components: lists of indices in submission order.
pub fn group(pieces: &[Piece]) -> Vec<Vec<u32>> {
    let mut order: Vec<u32> = (0..pieces.len() as u32).collect();
    order.sort_by_key(|&i| pieces[i as usize].sector);
    let mut groups: Vec<Vec<u32>> = Vec::new();
    let mut reach = 0;
    for index in order {
        let piece = &pieces[index as usize];
        match groups.last_mut() {
            Some(group) if piece.sector < reach => group.push(index),
            _ => groups.push(vec![index]),
        }
        reach = reach.max(piece.end());
    }
    for group in &mut groups {
        group.sort_unstable();
    }
    groups
}
