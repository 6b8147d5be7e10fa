//! The component of pieces that are kept in order: one choice, how many of them.
//!
//! Each sector has a history: what it shows from which number of kept pieces on. That takes memory for each sector
//! of each piece, not for each sector of each version.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use num_bigint::BigUint;

use crate::component::{position, Component, SameContent, Shown, Version};
use crate::interval::{Piece, Source};
use crate::view::Content;

/// What sectors show as more and more pieces are kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    /// For each sector, from how many kept pieces on it shows what; from none on, first.
    changes: HashMap<u64, Vec<(u32, Source)>>,
}

impl History {
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    pub fn sectors(&self) -> impl Iterator<Item = u64> + '_ {
        self.changes.keys().copied()
    }

    /// What `sector` shows when `kept` pieces are.
    pub fn source(&self, sector: u64, kept: u32) -> Source {
        let changes = &self.changes[&sector];
        changes[changes.partition_point(|change| change.0 <= kept) - 1].1
    }
}

/// Numbers of kept pieces that give one content.
struct SameDisk {
    /// The largest.
    kept: u32,
    count: u32,
}

/// Keeps one piece after the other and tells which numbers of kept pieces give the same content.
struct Builder<'a> {
    pieces: &'a [Piece],
    content: &'a Content<'a>,
    same: SameContent<'a>,
    history: History,
    /// Changes with what any sector shows: equal for equal contents.
    fingerprint: u64,
    disks: Vec<SameDisk>,
    by_fingerprint: HashMap<u64, Vec<usize>>,
}

impl Builder<'_> {
    /// Keep piece number `index`, and so one more than `index` pieces.
    fn keep(&mut self, index: usize) {
        let kept = index as u32 + 1;
        for (sector, source) in self.pieces[index].sources() {
            let source = self.same.first(sector, source);
            let (same, content) = (&mut self.same, self.content);
            let stable = || vec![(0, same.first(sector, content.stable_source(sector)))];
            let changes = self.history.changes.entry(sector).or_insert_with(stable);
            let shown = changes[changes.len() - 1].1;
            if shown != source {
                changes.push((kept, source));
                self.fingerprint ^= mark(sector, shown) ^ mark(sector, source);
            }
        }
        self.count(kept);
    }

    fn count(&mut self, kept: u32) {
        let alike = self.by_fingerprint.get(&self.fingerprint).map_or(&[][..], |disks| disks);
        match alike.iter().copied().find(|&disk| self.is_same(self.disks[disk].kept, kept)) {
            Some(disk) => {
                self.disks[disk].kept = kept;
                self.disks[disk].count += 1;
            }
            None => {
                self.by_fingerprint.entry(self.fingerprint).or_default().push(self.disks.len());
                self.disks.push(SameDisk { kept, count: 1 });
            }
        }
    }

    /// Whether the disk shows the same with `fewer` pieces as with `more`.
    fn is_same(&self, fewer: u32, more: u32) -> bool {
        let between = &self.pieces[fewer as usize..more as usize];
        let mut sectors = between.iter().flat_map(|piece| piece.sector..piece.end());
        sectors.all(|sector| self.history.source(sector, fewer) == self.history.source(sector, more))
    }

    fn finish(mut self) -> Component {
        self.history.changes.retain(|_, changes| changes.len() > 1);
        let nothing = self.disks[0].kept;
        self.disks.sort_by_key(|disk| std::cmp::Reverse(disk.kept));
        let version = |disk: &SameDisk| Version { weight: disk.count.into(), shown: Shown::First(disk.kept) };
        Component {
            sector: self.history.sectors().min().unwrap_or(0),
            sectors: self.history.changes.len() as u64,
            pieces: self.pieces.len() as u32,
            states: BigUint::from(self.pieces.len() + 1),
            versions: self.disks.iter().map(version).collect(),
            nothing_kept: position(&self.disks, |disk| disk.kept == nothing),
            history: self.history,
        }
    }
}

fn mark(sector: u64, source: Source) -> u64 {
    let mut hasher = DefaultHasher::new();
    (sector, source).hash(&mut hasher);
    hasher.finish()
}

/// The component of all `pieces`, kept up to one of them in the given order, each over those before it.
pub(crate) fn in_order(pieces: &[Piece], content: &Content<'_>) -> Component {
    let mut builder = Builder {
        pieces,
        content,
        same: SameContent::new(content),
        history: History::default(),
        fingerprint: 0,
        disks: Vec::new(),
        by_fingerprint: HashMap::new(),
    };
    builder.count(0);
    (0..pieces.len()).for_each(|index| builder.keep(index));
    builder.finish()
}
