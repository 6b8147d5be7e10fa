//! Components: the independent choices of a crash interval.
//!
//! Where each piece is kept or lost on its own, pieces that overlap, directly or through others, form a component: a short run
//! of sectors. Where pieces are kept in order, all of them form one. What a crash leaves in one component says nothing about
//! another, so a crash state is one [`Version`] per component. Versions are distinct contents; each knows how many
//! crash states lead to it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use num_bigint::BigUint;
use num_traits::One;
use thiserror::Error;

use crate::history::History;
use crate::interval::{Piece, Source};
use crate::view::Content;
use crate::SECTOR_BYTES;

/// More distinct contents than this in one component of overlapping pieces and the interval is not explored.
pub const VERSIONS_MAX: usize = 4096;

/// One content that a crash may leave in a component.
#[derive(Debug, Clone)]
pub struct Version {
    /// How many of the component's states give this content.
    pub weight: BigUint,
    pub(crate) shown: Shown,
}

/// What a version shows, and what is lost in the state with the fewest losses that gives it.
#[derive(Debug, Clone)]
pub(crate) enum Shown {
    /// Where each sector's content comes from; the lost pieces (indices into the interval's).
    Sources { sources: Vec<Source>, lost: Vec<u32> },
    /// What the component's history shows once so many pieces are kept; the others are lost.
    First(u32),
}

/// Sectors with the contents that a crash may leave there, fewest losses first.
#[derive(Debug, Clone)]
pub struct Component {
    /// The first sector, and how many there are: a run, unless pieces are kept in order.
    pub sector: u64,
    pub sectors: u64,
    pub pieces: u32,
    /// How many crash states the component has: the weights of its versions together.
    pub states: BigUint,
    pub versions: Vec<Version>,
    /// The version that is left when every piece is lost.
    pub nothing_kept: u32,
    /// What its sectors show as more pieces are kept in order; empty for a run.
    pub(crate) history: History,
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("{pieces} overlapping writes at sector {sector} leave more than {VERSIONS_MAX} contents")]
pub struct TooManyVersions {
    pub sector: u64,
    pub pieces: usize,
}

impl Component {
    /// The versions of the component made by `pieces` (indices into `all`, in submission order), each kept or lost on its
    /// own.
    ///
    /// Folds the pieces in submission order over the stable content: each either leaves a content as it is or
    /// shows in the sectors where nothing submitted later is stable.
    pub fn build(pieces: &[u32], all: &[Piece], content: &Content<'_>) -> Result<Component, TooManyVersions> {
        let (sector, end) = span(pieces, all);
        let stable: Vec<Source> = (sector..end).map(|s| content.stable_source(s)).collect();
        let mut same = SameContent::new(content);
        let mut first =
            |sources: Vec<Source>| (sector..).zip(sources).map(|(s, source)| same.first(s, source)).collect();
        let nothing: Vec<Source> = first(stable.clone());
        let mut assigned = vec![Assigned { sources: nothing.clone(), weight: BigUint::one(), lost: Vec::new() }];
        for &index in pieces {
            let piece = &all[index as usize];
            let mut next: Vec<Assigned> = Vec::with_capacity(assigned.len() * 2);
            for version in assigned {
                let mut kept = version.clone();
                piece.show(&mut kept.sources, &stable, sector);
                kept.sources = first(kept.sources);
                let mut lost = version;
                lost.lost.push(index);
                merge(&mut next, kept);
                merge(&mut next, lost);
            }
            if next.len() > VERSIONS_MAX {
                return Err(TooManyVersions { sector, pieces: pieces.len() });
            }
            assigned = next;
        }
        assigned.sort_by_key(|version| version.lost.len());
        let pieces = pieces.len() as u32;
        let nothing_kept = position(&assigned, |version| version.sources == nothing);
        let (sectors, states) = (end - sector, BigUint::one() << pieces);
        let versions = assigned.into_iter().map(Version::from).collect();
        Ok(Component { sector, sectors, pieces, states, versions, nothing_kept, history: History::default() })
    }

    /// Where the content of one of its sectors comes from in a version.
    pub fn source(&self, version: u32, sector: u64) -> Source {
        match &self.versions[version as usize].shown {
            Shown::Sources { sources, .. } => sources[(sector - self.sector) as usize],
            Shown::First(kept) => self.history.source(sector, *kept),
        }
    }

    /// Pieces (indices into the interval's) lost in the state with the fewest losses that gives a version.
    pub fn lost(&self, version: u32) -> Vec<u32> {
        match &self.versions[version as usize].shown {
            Shown::Sources { lost, .. } => lost.clone(),
            Shown::First(kept) => (*kept..self.pieces).collect(),
        }
    }

    /// Call `each` with every sector.
    pub fn each_sector(&self, mut each: impl FnMut(u64)) {
        match self.history.is_empty() {
            true => (self.sector..self.sector + self.sectors).for_each(each),
            false => self.history.sectors().for_each(&mut each),
        }
    }
}

/// A content that some assignments of keep or lose to pieces give.
#[derive(Clone)]
struct Assigned {
    sources: Vec<Source>,
    weight: BigUint,
    lost: Vec<u32>,
}

impl From<Assigned> for Version {
    fn from(Assigned { sources, weight, lost }: Assigned) -> Version {
        Version { weight, shown: Shown::Sources { sources, lost } }
    }
}

/// Where the one that is `wanted` stands.
pub(crate) fn position<T>(all: &[T], wanted: impl FnMut(&T) -> bool) -> u32 {
    all.iter().position(wanted).expect("it is one of them") as u32
}

fn span(pieces: &[u32], all: &[Piece]) -> (u64, u64) {
    let start = pieces.iter().map(|&i| all[i as usize].sector).min().expect("a component has pieces");
    let end = pieces.iter().map(|&i| all[i as usize].end()).max().expect("a component has pieces");
    (start, end)
}

/// Add `version`, or its weight to the version with the same content.
fn merge(versions: &mut Vec<Assigned>, version: Assigned) {
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
pub(crate) struct SameContent<'a> {
    content: &'a Content<'a>,
    /// What each source that a sector has had is replaced by.
    known: HashMap<(u64, Source), Source>,
    /// The sources that replace others, by sector and a hash of the bytes.
    firsts: HashMap<(u64, u64), Vec<Source>>,
}

impl<'a> SameContent<'a> {
    pub fn new(content: &'a Content<'a>) -> Self {
        SameContent { content, known: HashMap::new(), firsts: HashMap::new() }
    }

    pub fn first(&mut self, sector: u64, source: Source) -> Source {
        if let Some(&first) = self.known.get(&(sector, source)) {
            return first;
        }
        let bytes = self.bytes(sector, source);
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let place = (sector, hasher.finish());
        let alike = self.firsts.get(&place).map_or(&[][..], |sources| sources);
        let same = alike.iter().copied().find(|&known| self.bytes(sector, known) == bytes);
        if same.is_none() {
            self.firsts.entry(place).or_default().push(source);
        }
        self.known.insert((sector, source), same.unwrap_or(source));
        same.unwrap_or(source)
    }

    fn bytes(&self, sector: u64, source: Source) -> [u8; SECTOR_BYTES] {
        let mut out = [0; SECTOR_BYTES];
        self.content.read_source(source, sector, &mut out);
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
