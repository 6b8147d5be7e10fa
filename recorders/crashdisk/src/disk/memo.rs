//! Remembers recoveries, so that a crash state is not run if a recovery of the same kind has read the same bytes
//! before.
//!
//! Whatever the guest itself wrote before it read it does not count as read. Files whose contents are looked up on the
//! host do not count either: their bytes are looked up again in each crash state.

use std::collections::{HashMap, HashSet};

use postcrash_core::explore::Explorer;
use postcrash_core::memo::{Digest, Disk, Memo, SectorRange};
use postcrash_core::space::Space;
use postcrash_wire::units::{BLOCK_BYTES, SECTOR_BYTES};
use postcrash_wire::Recover;

use crate::disk::contents::{looked_up, resolved};
use crate::disk::overlay::Overlay;

/// Everything remembered is forgotten once it takes more memory than this.
const BYTES_MAX: usize = 256 << 20;

/// What a recovery showed, before file contents are looked up.
struct RecoveryReport {
    report: Vec<u8>,
    /// Blocks of the report's files that the guest wrote itself.
    written: Overlay,
}

/// What a recovery read of its crash state, in the order in which reads were answered, and what the recovery showed.
#[derive(Default)]
pub struct Footprint {
    reads: Vec<SectorRange>,
    known: HashSet<SectorRange>,
    answer: Option<RecoveryReport>,
}

impl Footprint {
    /// `sectors` sectors from `sector` on were read. `overlay` holds what the guest had written there.
    pub fn read(&mut self, sector: u64, sectors: u64, overlay: &Overlay) {
        let mut rest = (sector..sector + sectors).peekable();
        while let Some(start) = rest.find(|&s| !overlay.has(s)) {
            let more = std::iter::from_fn(|| rest.next_if(|&s| !overlay.has(s))).count();
            let place = SectorRange { sector: start, sectors: 1 + more as u64 };
            if self.known.insert(place) {
                self.reads.push(place);
            }
        }
    }

    /// The agent reported. `overlay` holds what the guest has written.
    pub fn answered(&mut self, report: &[u8], overlay: &Overlay) {
        let places = looked_up(report);
        let needed = |block: u64| {
            let start = block.saturating_mul(BLOCK_BYTES as u64);
            places.iter().any(|&(first, end)| first < start.saturating_add(BLOCK_BYTES as u64) && start < end)
        };
        self.answer = Some(RecoveryReport { report: report.to_vec(), written: overlay.part(needed) });
    }
}

/// The recoveries that guests of one machine have run. These guests have the same kernel and a disk of the same size.
pub struct Recoveries {
    memo: Memo<RecoveryReport>,
    /// Places that hold the same content in all crash states of the interval that is being explored.
    stable: HashMap<SectorRange, Digest>,
}

impl Default for Recoveries {
    fn default() -> Self {
        Recoveries { memo: Memo::new(BYTES_MAX), stable: HashMap::new() }
    }
}

impl Recoveries {
    /// Start with another crash interval.
    pub fn enter(&mut self) {
        self.stable.clear();
    }

    /// What a guest would report of the state of `space` that `explorer` is at, if a recovery that reads the same is
    /// known. Components for which such a guest would wait are decided as if they were read. `awaited` says whether
    /// guests wait for a read at a sector.
    pub fn recall(
        &mut self,
        recover: &Recover,
        space: Space<'_>,
        explorer: &mut dyn Explorer,
        awaited: &dyn Fn(u64) -> bool,
    ) -> Option<Vec<u8>> {
        let mut state = State { space, explorer, awaited, stable: &mut self.stable };
        let answer = self.memo.find(&request(recover), &mut state)?;
        Some(resolved(space, &answer.written, state.explorer, &answer.report))
    }

    /// Remember the recovery of the state of `space` that `explorer` is at.
    pub fn remember(&mut self, recover: &Recover, space: Space<'_>, explorer: &mut dyn Explorer, footprint: Footprint) {
        let Some(answer) = footprint.answer else { return };
        let mut state = State { space, explorer, awaited: &|_| true, stable: &mut self.stable };
        let content = |&place| (place, state.content(place).expect("what was read is decided"));
        let reads: Vec<(SectorRange, Digest)> = footprint.reads.iter().map(content).collect();
        let bytes = answer.report.len() + answer.written.bytes();
        self.memo.keep(&request(recover), &reads, answer, bytes);
    }
}

/// A crash state as the memo sees it.
struct State<'a> {
    space: Space<'a>,
    explorer: &'a mut dyn Explorer,
    awaited: &'a dyn Fn(u64) -> bool,
    stable: &'a mut HashMap<SectorRange, Digest>,
}

impl State<'_> {
    fn read(&mut self, place: SectorRange) -> Vec<u8> {
        let mut bytes = vec![0; place.sectors as usize * SECTOR_BYTES];
        let State { space, explorer, .. } = self;
        let mut choose = |component| explorer.choose(component, &|| space.options(component));
        space.read(place.sector, &mut bytes, &mut choose);
        bytes
    }

    /// Whether the place depends on a component without a version among those `chosen`.
    fn is_open(&self, place: SectorRange, chosen: &dyn Fn(u32) -> Option<u32>) -> bool {
        (place.sector..place.sector + place.sectors).any(|sector| self.space.open(sector, chosen).is_some())
    }
}

impl Disk for State<'_> {
    fn content(&mut self, place: SectorRange) -> Option<Digest> {
        if let Some(&content) = self.stable.get(&place) {
            return Some(content);
        }
        if self.is_open(place, &|component| self.explorer.chosen(component)) {
            return None;
        }
        let content = Digest::of(&self.read(place));
        if !self.is_open(place, &|_| None) {
            self.stable.insert(place, content);
        }
        Some(content)
    }

    fn awaited(&self, place: SectorRange) -> bool {
        (self.awaited)(place.sector)
    }

    fn decide(&mut self, place: SectorRange) {
        self.read(place);
    }
}

fn request(recover: &Recover) -> Vec<u8> {
    serde_json::to_vec(recover).expect("it is plain data")
}
