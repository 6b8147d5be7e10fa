//! What a recording's requests have left on the disk by some event, for requests in any order.

use std::collections::BTreeMap;

use postcrash_wire::units::SECTOR_BYTES;

use crate::recording::{Event, Recording};

/// Neighbouring sectors that were written, or zeroed.
#[derive(Debug, PartialEq, Eq)]
pub enum SectorExtent {
    Data { sector: u64, data: Vec<u8> },
    Zeros { sector: u64, sectors: u64 },
}

/// The sectors that were written before event number `end`, ascending, with their last content.
///
/// Each extent is as long as possible, so the extents depend on the contents only. If two writes to one sector were
/// under way together, the one that was submitted later counts, as in every device model except `prefix`.
pub fn contents(recording: &Recording, end: usize) -> Vec<SectorExtent> {
    let mut runs = Runs::default();
    for event in recording.events().iter().take(end) {
        match *event {
            Event::Write { sector, ref data, .. } => {
                runs.put(sector, SectorRun { sectors: (data.len() / SECTOR_BYTES) as u64, data: Some(data.start) });
            }
            Event::Zero { sector, sectors, .. } => runs.put(sector, SectorRun { sectors, data: None }),
            _ => {}
        }
    }
    runs.extents(recording.bytes())
}

/// Sectors that hold zeros, or data that starts at a byte of the recording.
#[derive(Clone, Copy)]
struct SectorRun {
    sectors: u64,
    data: Option<usize>,
}

/// Runs that do not overlap, by their first sectors.
#[derive(Default)]
struct Runs(BTreeMap<u64, SectorRun>);

impl Runs {
    fn put(&mut self, sector: u64, run: SectorRun) {
        let end = sector + run.sectors;
        self.cut(sector);
        self.cut(end);
        let covered: Vec<u64> = self.0.range(sector..end).map(|(&start, _)| start).collect();
        for start in covered {
            self.0.remove(&start);
        }
        self.0.insert(sector, run);
    }

    /// Split the run that reaches from before `sector` to behind it, so that no run crosses `sector`.
    fn cut(&mut self, sector: u64) {
        let Some((&start, run)) = self.0.range_mut(..sector).next_back() else { return };
        let first = sector - start;
        if run.sectors <= first {
            return;
        }
        let data = run.data.map(|data| data + first as usize * SECTOR_BYTES);
        let rest = SectorRun { sectors: run.sectors - first, data };
        run.sectors = first;
        self.0.insert(sector, rest);
    }

    fn extents(self, bytes: &[u8]) -> Vec<SectorExtent> {
        let mut extents = Vec::new();
        for (at, run) in self.0 {
            let content = run.data.map(|start| &bytes[start..start + run.sectors as usize * SECTOR_BYTES]);
            match (extents.last_mut(), content) {
                (Some(SectorExtent::Data { sector, data }), Some(content)) if *sector + sectors_in(data) == at => {
                    data.extend_from_slice(content);
                }
                (Some(SectorExtent::Zeros { sector, sectors }), None) if *sector + *sectors == at => {
                    *sectors += run.sectors;
                }
                (_, Some(content)) => extents.push(SectorExtent::Data { sector: at, data: content.to_vec() }),
                (_, None) => extents.push(SectorExtent::Zeros { sector: at, sectors: run.sectors }),
            }
        }
        extents
    }
}

fn sectors_in(data: &[u8]) -> u64 {
    (data.len() / SECTOR_BYTES) as u64
}
