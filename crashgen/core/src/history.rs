//! The component of pieces that are kept in order: one choice, how many of them.
//!
//! Each sector has a history: the numbers of kept pieces from which on it shows something else. This takes memory for
//! each sector of each piece, but not for each sector of each version.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::choice::position;
use crate::ground::Content;
use crate::piece::{Piece, Source};
use crate::same_content::SameContent;

const SECTORS_BETWEEN_LOOKS: usize = 64;

/// What sectors show as more and more pieces are kept.
#[derive(Debug, Clone)]
pub struct PieceHistory {
    /// Distinct contents. The one with the most kept pieces comes first.
    pub(crate) versions: Vec<SameDisk>,
    /// The version with no piece kept.
    pub(crate) nothing_kept: u32,
    /// The number of the first piece in the interval. The others follow.
    first: u32,
    /// Changes ordered by sector, then by the number of kept pieces. Each sector has at least two.
    changes: Vec<SectorChange>,
}

/// From this many kept pieces on, a sector shows this source. With `kept` 0 it is what the sector shows at first.
#[derive(Debug, Clone, Copy)]
struct SectorChange {
    sector: u64,
    source: Source,
    kept: u32,
}

/// Numbers of kept pieces that give one content.
#[derive(Debug, Clone)]
pub(crate) struct SameDisk {
    /// The largest of these numbers.
    pub kept: u32,
    pub count: u32,
}

impl PieceHistory {
    /// What `pieces`, of which the first one has the number `first`, show when they are kept up to one of them in the
    /// given order, each over those before it. `look` is called from time to time while bytes of recording and base
    /// image are read.
    pub(crate) fn of(pieces: &[Piece], first: u32, content: &Content<'_>, look: &dyn Fn()) -> PieceHistory {
        let changes = changes(pieces, content, look);
        let history = PieceHistory { versions: Vec::new(), nothing_kept: 0, first, changes };
        let mut builder = Builder { pieces, history, fingerprint: 0, by_fingerprint: HashMap::new() };
        builder.keep_all();
        let mut history = builder.history;
        let nothing = history.versions[0].kept;
        history.versions.sort_by_key(|disk| std::cmp::Reverse(disk.kept));
        history.nothing_kept = position(&history.versions, |disk| disk.kept == nothing);
        history
    }

    /// The first sector that can show different things.
    pub(crate) fn first_sector(&self) -> u64 {
        self.changes.first().map_or(0, |change| change.sector)
    }

    pub(crate) fn has(&self, sector: u64) -> bool {
        self.changes.binary_search_by_key(&sector, |change| change.sector).is_ok()
    }

    /// What `sector` shows when `kept` pieces are kept.
    pub(crate) fn source(&self, sector: u64, kept: u32) -> Source {
        let later = self.changes.partition_point(|change| (change.sector, change.kept) <= (sector, kept));
        self.changes[later - 1].source
    }

    /// The numbers of the pieces that are lost in a version, of `pieces` in all.
    pub(crate) fn lost(&self, version: u32, pieces: u32) -> Vec<u32> {
        (self.first + self.versions[version as usize].kept..self.first + pieces).collect()
    }

    pub(crate) fn sectors(&self) -> u64 {
        self.changes.iter().filter(|change| change.kept == 0).count() as u64
    }
}

/// Keeps one piece after the other and finds the numbers of kept pieces that give the same content.
struct Builder<'a> {
    pieces: &'a [Piece],
    history: PieceHistory,
    /// A hash of what all sectors show. It is equal for equal contents.
    fingerprint: u64,
    by_fingerprint: HashMap<u64, Vec<usize>>,
}

impl Builder<'_> {
    /// Keep one piece after the other, starting with none.
    fn keep_all(&mut self) {
        let mut changes: Vec<usize> = (0..self.history.changes.len()).collect();
        changes.retain(|&change| self.history.changes[change].kept > 0);
        changes.sort_by_key(|&change| self.history.changes[change].kept);
        let mut changes = changes.into_iter().peekable();
        for kept in 0..=self.pieces.len() as u32 {
            while let Some(change) = changes.next_if(|&change| self.history.changes[change].kept == kept) {
                let [before, now] = [change - 1, change].map(|change| self.history.changes[change]);
                self.fingerprint ^= mark(now.sector, before.source) ^ mark(now.sector, now.source);
            }
            self.count(kept);
        }
    }

    fn count(&mut self, kept: u32) {
        let alike = self.by_fingerprint.get(&self.fingerprint).map_or(&[][..], |disks| disks);
        if let Some(disk) = alike.iter().copied().find(|&disk| self.is_same(self.history.versions[disk].kept, kept)) {
            self.history.versions[disk].kept = kept;
            self.history.versions[disk].count += 1;
        } else {
            self.by_fingerprint.entry(self.fingerprint).or_default().push(self.history.versions.len());
            self.history.versions.push(SameDisk { kept, count: 1 });
        }
    }

    /// Whether the disk shows the same with `fewer` kept pieces as with `more`.
    fn is_same(&self, fewer: u32, more: u32) -> bool {
        let between = &self.pieces[fewer as usize..more as usize];
        let mut sectors = between.iter().flat_map(|piece| piece.sector..piece.end());
        let history = &self.history;
        sectors.all(|sector| !history.has(sector) || history.source(sector, fewer) == history.source(sector, more))
    }
}

fn mark(sector: u64, source: Source) -> u64 {
    let mut hasher = DefaultHasher::new();
    (sector, source).hash(&mut hasher);
    hasher.finish()
}

/// What the sectors of `pieces` show as more pieces are kept. Sectors that always show the same are left out.
///
/// `look` is called from time to time while bytes of recording and base image are read.
fn changes(pieces: &[Piece], content: &Content<'_>, look: &dyn Fn()) -> Vec<SectorChange> {
    let written = |(kept, piece): (u32, &Piece)| {
        piece.sources().map(move |(sector, source)| SectorChange { sector, source, kept }).collect::<Vec<_>>()
    };
    let mut written: Vec<SectorChange> = (1..).zip(pieces).flat_map(written).collect();
    written.sort_unstable_by_key(|change| (change.sector, change.kept));
    let mut changes: Vec<SectorChange> = Vec::new();
    for (number, of_sector) in written.chunk_by(|a, b| a.sector == b.sector).enumerate() {
        if number % SECTORS_BETWEEN_LOOKS == 0 {
            look();
        }
        let sector = of_sector[0].sector;
        let mut same = SameContent::new(content);
        let first = changes.len();
        changes.push(SectorChange { sector, source: same.first(sector, content.stable_source(sector)), kept: 0 });
        for write in of_sector {
            let source = same.first(sector, write.source);
            if source != changes[changes.len() - 1].source {
                changes.push(SectorChange { source, ..*write });
            }
        }
        if changes.len() == first + 1 {
            changes.pop();
        }
    }
    changes
}
