//! Remembers recoveries, so that a crash state is not run if a recovery of the same kind has read the same bytes
//! before.
//!
//! Whatever the guest itself wrote before it read it does not count as read. Files whose contents are looked up on the
//! host do not count either: their bytes are looked up again in each crash state.

use foldhash::{HashMap, HashMapExt, HashSet};
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
        if overlay.has_none(sector, sectors) {
            return self.note(SectorRange { sector, sectors });
        }
        let mut rest = (sector..sector + sectors).peekable();
        while let Some(start) = rest.find(|&s| !overlay.has(s)) {
            let more = std::iter::from_fn(|| rest.next_if(|&s| !overlay.has(s))).count();
            self.note(SectorRange { sector: start, sectors: 1 + more as u64 });
        }
    }

    fn note(&mut self, place: SectorRange) {
        if self.known.insert(place) {
            self.reads.push(place);
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
    /// What the base image that is being explored holds in places that a recovery has read.
    image: HashMap<SectorRange, Digest>,
}

impl Default for Recoveries {
    fn default() -> Self {
        Recoveries { memo: Memo::new(BYTES_MAX), stable: HashMap::new(), image: HashMap::new() }
    }
}

impl Recoveries {
    /// Start with another recording, which may have another base image.
    pub fn begin(&mut self) {
        self.stable.clear();
        self.image.clear();
    }

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
        let Recoveries { memo, stable, image } = self;
        let mut state = State { space, explorer, awaited, stable, image };
        let answer = memo.find(&request(recover), &mut state)?;
        Some(resolved(space, &answer.written, state.explorer, &answer.report))
    }

    /// Remember the recovery of the state of `space` that `explorer` is at.
    pub fn remember(&mut self, recover: &Recover, space: Space<'_>, explorer: &mut dyn Explorer, footprint: Footprint) {
        let Some(answer) = footprint.answer else { return };
        let Recoveries { memo, stable, image } = self;
        let mut state = State { space, explorer, awaited: &|_| true, stable, image };
        let content = |&place| (place, state.content(place).expect("what was read is decided"));
        let reads: Vec<(SectorRange, Digest)> = footprint.reads.iter().map(content).collect();
        let bytes = answer.report.len() + answer.written.bytes();
        memo.keep(&request(recover), &reads, answer, bytes);
    }
}

/// A crash state as the memo sees it.
struct State<'a> {
    space: Space<'a>,
    explorer: &'a mut dyn Explorer,
    awaited: &'a dyn Fn(u64) -> bool,
    stable: &'a mut HashMap<SectorRange, Digest>,
    image: &'a mut HashMap<SectorRange, Digest>,
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
        if self.space.is_image(place.sector, place.sectors) {
            let known = self.image.get(&place).copied();
            let content = known.unwrap_or_else(|| Digest::of(&self.read(place)));
            self.image.insert(place, content);
            self.stable.insert(place, content);
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use postcrash_core::cursor::Cursor;
    use postcrash_core::device;
    use postcrash_core::ground::Base;
    use postcrash_core::recording::{Recording, RecordingWriter};
    use postcrash_core::walk::{Limits, Walk};
    use serde_json::json;

    use super::*;

    const SECTORS: u64 = 16;

    /// An image of one letter, and a recording of a write of each of the letters to the first block, each durable.
    struct Disks {
        base: Base,
        recording: Recording,
    }

    impl Disks {
        fn new(folder: &Path, letter: u8, writes: &[u8]) -> Disks {
            let (image, log) = (folder.join("image"), folder.join("log"));
            std::fs::write(&image, [letter; SECTORS as usize * SECTOR_BYTES]).expect("an image");
            let mut writer = RecordingWriter::create(&log, &[SECTORS], "{}").expect("a recording");
            writer.durable().expect("recorded");
            for (id, letter) in (0..).zip(writes) {
                writer.write(id, 0, &[*letter; BLOCK_BYTES], true, false).expect("recorded");
                writer.complete(id).expect("recorded");
            }
            writer.finish().expect("finished");
            Disks { base: Base::open(&image).expect("the image"), recording: Recording::open(&log).expect("the log") }
        }

        /// In each crash interval, in a state that keeps all: whether what a recovery of the whole disk showed there is
        /// known already. It is remembered there.
        fn known(&self, recoveries: &mut Recoveries) -> Vec<bool> {
            let recover = serde_json::from_value(json!({"mount": {"fstype": "ext4"}, "walk": true})).expect("valid");
            let mut cursor = Cursor::new(&self.recording, &self.base, device::named("cache").expect("a device model"));
            let mut known = Vec::new();
            while let Some(interval) = cursor.next_interval() {
                let space = Space { content: cursor.content(), interval: &interval };
                let mut explorer = Walk::new(&Limits::default());
                explorer.next_execution();
                recoveries.enter();
                known.push(recoveries.recall(&recover, space, &mut explorer, &|_| true).is_some());
                space.read(0, &mut [0; SECTORS as usize * SECTOR_BYTES], &mut |c| {
                    explorer.choose(c, &|| space.options(c))
                });
                let (mut footprint, overlay) = (Footprint::default(), Overlay::default());
                (0..SECTORS).step_by(8).for_each(|sector| footprint.read(sector, 8, &overlay));
                footprint.answered(b"{}", &overlay);
                recoveries.remember(&recover, space, &mut explorer, footprint);
            }
            known
        }
    }

    #[test]
    fn a_recovery_of_an_image_is_not_taken_for_one_of_another_image() {
        let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let (a, b) = (Disks::new(folders[0].path(), b'a', &[]), Disks::new(folders[1].path(), b'b', &[]));
        let mut recoveries = Recoveries::default();
        for (disks, is_known) in [(&a, false), (&b, false), (&a, true), (&b, true)] {
            recoveries.begin();
            assert_eq!(disks.known(&mut recoveries), [is_known]);
        }
    }

    #[test]
    fn what_a_write_has_changed_is_not_taken_for_the_image() {
        let folder = tempfile::tempdir().expect("a folder");
        let disks = Disks::new(folder.path(), b'a', b"xyx");
        let mut recoveries = Recoveries::default();
        recoveries.begin();
        // x is in flight, y, x again, and nothing any more. What is in flight is kept.
        assert_eq!(disks.known(&mut recoveries), [false, false, true, true]);
    }
}
