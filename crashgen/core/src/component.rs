//! Components: the independent choices of a crash interval.
//!
//! Pieces that overlap, directly or through others, form a component: a short run of sectors within one block.
//! What a crash leaves in one component says nothing about another, so a crash state is one [`Version`] per component.
//! Versions are distinct contents; each knows how many keep-or-lose assignments of its pieces lead to it.

use std::collections::HashMap;

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
        let mut same = SameContent { content, sector, known: vec![HashMap::new(); stable.len()] };
        let first = Version { sources: same.all(stable.clone()), weight: BigUint::one(), lost: Vec::new() };
        let mut versions = vec![first];
        for &index in pieces {
            let piece = &all[index as usize];
            let mut next: Vec<Version> = Vec::with_capacity(versions.len() * 2);
            for version in versions {
                let mut kept = version.clone();
                piece.show(&mut kept.sources, &stable, sector);
                kept.sources = same.all(kept.sources);
                let mut lost = version;
                lost.lost.push(index);
                merge(&mut next, kept);
                merge(&mut next, lost);
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

/// Add `version`, or its weight to the version with the same content.
fn merge(versions: &mut Vec<Version>, version: Version) {
    match versions.iter_mut().find(|known| known.sources == version.sources) {
        None => versions.push(version),
        Some(known) => {
            known.weight += version.weight;
            if version.lost.len() < known.lost.len() {
                known.lost = version.lost;
            }
        }
    }
}

/// Replaces each source by the first one that gives its sector the same bytes, so that equal contents compare equal.
struct SameContent<'a> {
    content: &'a Content<'a>,
    /// The component's first sector.
    sector: u64,
    /// For each sector, what each source that it has had is replaced by.
    known: Vec<HashMap<Source, Source>>,
}

impl SameContent<'_> {
    fn all(&mut self, sources: Vec<Source>) -> Vec<Source> {
        sources.into_iter().enumerate().map(|(at, source)| self.first(at, source)).collect()
    }

    fn first(&mut self, at: usize, source: Source) -> Source {
        if let Some(&first) = self.known[at].get(&source) {
            return first;
        }
        let bytes = self.bytes(at, source);
        let same = self.known[at].values().copied().find(|&known| self.bytes(at, known) == bytes);
        let first = same.unwrap_or(source);
        self.known[at].insert(source, first);
        first
    }

    fn bytes(&self, at: usize, source: Source) -> [u8; SECTOR_BYTES] {
        let mut out = [0; SECTOR_BYTES];
        self.content.read_source(source, self.sector + at as u64, &mut out);
        out
    }
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
