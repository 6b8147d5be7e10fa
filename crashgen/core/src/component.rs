//! Components: the independent choices of a crash interval.
//!
//! In a model that keeps or loses each piece on its own, pieces that overlap, directly or through others, form a
//! component: a short run of sectors. In a model that keeps pieces in order, all those of a disk form one component. What a
//! crash leaves in one component says nothing about another, so a crash state is one version per component. Versions
//! are distinct contents. Each version knows how many crash states lead to it.

use std::collections::btree_map::Entry;
use std::collections::BTreeMap;
use std::ops::Range;

use num_bigint::BigUint;
use num_traits::One;
use thiserror::Error;

use crate::choice::{position, Options};
use crate::ground::Content;
use crate::history::PieceHistory;
use crate::piece::{Piece, Source};
use crate::same_content::SameContent;

/// An interval is not explored if one component of overlapping pieces has more distinct contents than this.
pub const VERSIONS_MAX: usize = 4096;

/// Sectors with the contents that a crash may leave there. The content with the fewest losses comes first.
#[derive(Debug, Clone)]
pub struct Component {
    /// The first sector, and the number of sectors. They are a run, unless pieces are kept in order.
    pub sector: u64,
    pub sectors: u64,
    pub pieces: u32,
    /// How many of the pieces the next crash interval keeps in all its states.
    kept_next: u32,
    pub versions: Versions,
}

/// The distinct contents of a component. Most components are one piece, so the variant for one piece is kept small.
#[derive(Debug, Clone)]
pub enum Versions {
    /// The piece (index into the interval's) is kept or lost. `source` is the source of its first sector.
    One { piece: u32, source: Source },
    /// Pieces that overlap, each kept or lost on its own.
    Overlapping(Box<Overlap>),
    /// Pieces that are kept in order.
    InOrder(Box<PieceHistory>),
}

impl Versions {
    #[allow(clippy::len_without_is_empty)] // there is always one
    pub fn len(&self) -> usize {
        match self {
            Versions::One { .. } => 2,
            Versions::Overlapping(overlapping) => overlapping.versions.len(),
            Versions::InOrder(history) => history.versions.len(),
        }
    }
}

/// What pieces that overlap can leave.
#[derive(Debug, Clone)]
pub struct Overlap {
    /// Indices into the interval's pieces, in submission order.
    pieces: Vec<u32>,
    versions: Vec<Version>,
    /// The version with no piece kept.
    nothing_kept: u32,
}

#[derive(Debug, Clone)]
struct Version {
    /// Where each sector's content comes from.
    sources: Vec<Source>,
    shown: Assignments,
}

/// The assignments of kept or lost to each piece that give one content.
#[derive(Debug, Clone)]
struct Assignments {
    /// How many there are.
    weight: BigUint,
    /// How many of them keep everything that the next crash interval keeps.
    weight_next: BigUint,
    /// One with the fewest losses. It has a bit for each lost piece among the first `until`; all later pieces are lost.
    lost: BigUint,
    until: u64,
}

impl Assignments {
    fn has_lost(&self, piece: u64) -> bool {
        piece >= self.until || self.lost.bit(piece)
    }

    /// How many of the first `pieces` are lost.
    fn losses(&self, pieces: u64) -> u64 {
        self.lost.count_ones() + (pieces - self.until)
    }

    /// The assignments that also keep piece number `piece`, which comes after all pieces so far.
    fn keeping(&self, piece: u64) -> Assignments {
        let between = (BigUint::one() << piece) - (BigUint::one() << self.until);
        let (weight, weight_next) = (self.weight.clone(), self.weight_next.clone());
        Assignments { weight, weight_next, lost: &self.lost | between, until: piece + 1 }
    }
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("{pieces} overlapping writes at sector {sector} leave more than {VERSIONS_MAX} contents")]
pub struct TooManyVersions {
    pub sector: u64,
    pub pieces: usize,
}

impl Component {
    /// The component made by `pieces` (indices into `all`, in submission order), each kept or lost on its own. None if
    /// there is only one piece and keeping it changes nothing. `is_kept_next` tells which pieces the next interval keeps
    /// in all its states.
    pub fn build(
        pieces: &[u32],
        all: &[Piece],
        content: &Content<'_>,
        is_kept_next: &dyn Fn(&Piece) -> bool,
    ) -> Result<Option<Component>, TooManyVersions> {
        let kept_next = pieces.iter().filter(|&&index| is_kept_next(&all[index as usize])).count() as u32;
        if let &[index] = pieces {
            let piece = &all[index as usize];
            let versions = Versions::One { piece: index, source: piece.source };
            let component = Component { sector: piece.sector, sectors: piece.sectors, pieces: 1, kept_next, versions };
            return Ok(shows(piece, content).then_some(component));
        }
        let (sector, end) = span(pieces, all);
        let (versions, nothing_kept) = assignments(pieces, all, content, sector..end, is_kept_next)?;
        let pieces = pieces.to_vec();
        let count = pieces.len() as u32;
        let versions = Versions::Overlapping(Box::new(Overlap { pieces, versions, nothing_kept }));
        Ok(Some(Component { sector, sectors: end - sector, pieces: count, kept_next, versions }))
    }

    /// The component of all `pieces` of a disk, which are kept in the given order. The interval has them from its piece
    /// number `first` on. `look` is that of [`PieceHistory::of`].
    pub fn in_order(pieces: &[Piece], first: u32, content: &Content<'_>, look: &dyn Fn()) -> Component {
        let history = PieceHistory::of(pieces, first, content, look);
        Component {
            sector: history.first_sector(),
            sectors: history.sectors(),
            pieces: pieces.len() as u32,
            kept_next: 0,
            versions: Versions::InOrder(Box::new(history)),
        }
    }

    /// How many crash states the component has: the sum of the weights of its versions.
    pub fn states(&self) -> BigUint {
        match self.versions {
            Versions::One { .. } | Versions::Overlapping(_) => BigUint::one() << self.pieces,
            Versions::InOrder(_) => BigUint::from(self.pieces) + 1u32,
        }
    }

    /// How many of the component's states give the content of a version.
    pub fn weight(&self, version: u32) -> BigUint {
        match &self.versions {
            Versions::One { .. } => BigUint::one(),
            Versions::Overlapping(overlapping) => overlapping.versions[version as usize].shown.weight.clone(),
            Versions::InOrder(history) => history.versions[version as usize].count.into(),
        }
    }

    pub(crate) fn kept_next(&self) -> u32 {
        self.kept_next
    }

    /// How many choices of its pieces keep everything that the next crash interval keeps. Pieces are not kept in order.
    pub(crate) fn states_next(&self) -> BigUint {
        BigUint::one() << (self.pieces - self.kept_next)
    }

    /// How many of them give the content of a version.
    pub(crate) fn weight_next(&self, version: u32) -> BigUint {
        match &self.versions {
            Versions::Overlapping(overlapping) => overlapping.versions[version as usize].shown.weight_next.clone(),
            _ => BigUint::from(u32::from(version == 0 || self.kept_next == 0)),
        }
    }

    /// How many versions only choices give that keep everything that the next crash interval keeps.
    pub(crate) fn versions_of_next(&self) -> usize {
        let versions = 0..self.versions.len() as u32;
        versions.filter(|&version| self.weight(version) == self.weight_next(version)).count()
    }

    /// What an explorer chooses from.
    pub fn options(&self) -> Options {
        let nothing_kept = match &self.versions {
            Versions::One { .. } => 1,
            Versions::Overlapping(overlapping) => overlapping.nothing_kept,
            Versions::InOrder(history) => history.nothing_kept,
        };
        Options { nothing_kept, weights: (0..self.versions.len() as u32).map(|version| self.weight(version)).collect() }
    }

    /// Where the content of one of its sectors comes from in a version, laid over what is stable in `content`.
    pub fn source(&self, version: u32, sector: u64, content: &Content<'_>) -> Source {
        match &self.versions {
            Versions::One { source, .. } => {
                let stable = content.stable_source(sector);
                match version {
                    0 => stable.max(source.sector(sector - self.sector)),
                    _ => stable,
                }
            }
            Versions::Overlapping(overlapping) => {
                overlapping.versions[version as usize].sources[(sector - self.sector) as usize]
            }
            Versions::InOrder(history) => history.source(sector, history.versions[version as usize].kept),
        }
    }

    /// Pieces (indices into the interval's) lost in the state with the fewest losses that gives a version.
    pub fn lost(&self, version: u32) -> Vec<u32> {
        match &self.versions {
            Versions::One { piece, .. } => (0..version).map(|_| *piece).collect(),
            Versions::Overlapping(overlapping) => {
                let shown = &overlapping.versions[version as usize].shown;
                let lost = (0..).zip(&overlapping.pieces).filter(|(number, _)| shown.has_lost(*number));
                lost.map(|(_, piece)| *piece).collect()
            }
            Versions::InOrder(history) => history.lost(version, self.pieces),
        }
    }

    pub fn has(&self, sector: u64) -> bool {
        match &self.versions {
            Versions::InOrder(history) => history.has(sector),
            _ => (self.sector..self.sector + self.sectors).contains(&sector),
        }
    }

    /// Whether it decides any of these sectors.
    pub fn touches(&self, sector: u64, sectors: u64) -> bool {
        let end = sector.saturating_add(sectors);
        match &self.versions {
            Versions::InOrder(history) => (sector..end).any(|s| history.has(s)),
            _ => self.sector < end && sector < self.sector + self.sectors,
        }
    }
}

/// Whether keeping `piece`, the only one there, changes one of its sectors.
fn shows(piece: &Piece, content: &Content<'_>) -> bool {
    piece.sources().any(|(sector, source)| {
        let stable = content.stable_source(sector);
        source > stable
            && content.settled(stable, sector).is_none_or(|lost| content.settled(source, sector) != Some(lost))
    })
}

/// The distinct contents of `sectors`, which `pieces` write, with the fewest losses first. Also returns which content
/// is left when all pieces are lost.
///
/// Folds the pieces in submission order over the stable content. A lost piece leaves a content as it is. A kept piece
/// shows in the sectors where nothing submitted later is stable.
fn assignments(
    pieces: &[u32],
    all: &[Piece],
    content: &Content<'_>,
    sectors: Range<u64>,
    is_kept_next: &dyn Fn(&Piece) -> bool,
) -> Result<(Vec<Version>, u32), TooManyVersions> {
    let sector = sectors.start;
    let stable: Vec<Source> = sectors.map(|s| content.stable_source(s)).collect();
    let mut same = SameContent::new(content);
    let nothing: Vec<Source> = (sector..).zip(&stable).map(|(s, &source)| same.first(s, source)).collect();
    let one = BigUint::one();
    let all_lost = Assignments { weight: one.clone(), weight_next: one.clone(), lost: BigUint::ZERO, until: 0 };
    let mut free = 0;
    let mut known: BTreeMap<Vec<Source>, Assignments> = BTreeMap::from([(nothing.clone(), all_lost)]);
    for (number, &index) in (0..).zip(pieces) {
        let piece = all[index as usize].sources().map(|(s, source)| ((s - sector) as usize, s, source));
        let written: Vec<(usize, Source)> = piece
            .filter(|&(at, _, source)| source > stable[at])
            .map(|(at, s, source)| (at, same.first(s, source)))
            .collect();
        let mut kept = BTreeMap::new();
        if written.len() == stable.len() {
            // The piece hides everything that was there.
            let (weight, weight_next) = (&one << number, &one << free);
            let shown = Assignments { weight, weight_next, lost: BigUint::ZERO, until: number + 1 };
            kept.insert(written.into_iter().map(|(_, source)| source).collect(), shown);
        } else {
            for (sources, shown) in &known {
                let mut sources = sources.clone();
                for &(at, source) in &written {
                    sources[at] = source;
                }
                merge(&mut kept, sources, shown.keeping(number), number + 1);
            }
        }
        if is_kept_next(&all[index as usize]) {
            known.values_mut().for_each(|lost| lost.weight_next = BigUint::ZERO);
        } else {
            free += 1;
        }
        for (sources, shown) in kept {
            merge(&mut known, sources, shown, number + 1);
        }
        if known.len() > VERSIONS_MAX {
            return Err(TooManyVersions { sector, pieces: pieces.len() });
        }
    }
    let mut versions: Vec<Version> = known.into_iter().map(|(sources, shown)| Version { sources, shown }).collect();
    versions.sort_by_key(|version| version.shown.losses(pieces.len() as u64));
    let nothing_kept = position(&versions, |version| version.sources == nothing);
    Ok((versions, nothing_kept))
}

fn span(pieces: &[u32], all: &[Piece]) -> (u64, u64) {
    let start = pieces.iter().map(|&i| all[i as usize].sector).min().expect("a component has pieces");
    let end = pieces.iter().map(|&i| all[i as usize].end()).max().expect("a component has pieces");
    (start, end)
}

/// Add assignments of the first `pieces` that show `sources`. If these contents are known already, add the weight to
/// theirs.
fn merge(versions: &mut BTreeMap<Vec<Source>, Assignments>, sources: Vec<Source>, shown: Assignments, pieces: u64) {
    match versions.entry(sources) {
        Entry::Vacant(place) => {
            place.insert(shown);
        }
        Entry::Occupied(mut place) => {
            let known = place.get_mut();
            let weight = std::mem::take(&mut known.weight) + &shown.weight;
            let weight_next = std::mem::take(&mut known.weight_next) + &shown.weight_next;
            if shown.losses(pieces) < known.losses(pieces) {
                *known = shown;
            }
            (known.weight, known.weight_next) = (weight, weight_next);
        }
    }
}

/// Pieces grouped into components, by their first sector: lists of indices in submission order.
pub fn groups(pieces: &[Piece]) -> impl Iterator<Item = Vec<u32>> + '_ {
    let mut order: Vec<u32> = (0..pieces.len() as u32).collect();
    order.sort_by_key(|&i| pieces[i as usize].sector);
    let mut rest = order.into_iter().peekable();
    std::iter::from_fn(move || {
        let first = rest.next()?;
        let mut group = vec![first];
        let mut reach = pieces[first as usize].end();
        while let Some(index) = rest.next_if(|&index| pieces[index as usize].sector < reach) {
            group.push(index);
            reach = reach.max(pieces[index as usize].end());
        }
        group.sort_unstable();
        Some(group)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_for_each_piece_is_small() {
        assert_eq!((size_of::<Piece>(), size_of::<Component>()), (32, 40));
        assert_eq!(size_of::<crate::recording::Event>(), 32);
    }
}
