//! The disks of a recording. Their sectors are numbered one disk after the other, so that a sector tells its disk.

use std::ops::Range;

use postcrash_wire::units::BLOCK_SECTORS;

/// Sectors of all disks together: 16 TiB.
const SECTORS_MAX: u64 = 1 << 35;
/// Disks of a recording.
pub const DISKS_MAX: usize = 16;

/// Disks, each with some sectors of one range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disks {
    /// Where each disk ends.
    ends: Vec<u64>,
}

impl Disks {
    /// Disks of so many sectors each. An error says why there are no such disks.
    pub fn new(sizes: &[u64]) -> Result<Disks, String> {
        if sizes.is_empty() || sizes.len() > DISKS_MAX {
            return Err(format!("{} disks are not 1 to {DISKS_MAX}", sizes.len()));
        }
        let mut end = 0;
        let mut ends = Vec::new();
        for &sectors in sizes {
            if sectors == 0 || sectors > SECTORS_MAX - end {
                return Err(format!("a disk of {sectors} sectors is out of range"));
            }
            if sizes.len() > 1 && sectors % BLOCK_SECTORS != 0 {
                return Err(format!(
                    "one of several disks has {sectors} sectors, which is no multiple of {BLOCK_SECTORS}"
                ));
            }
            end += sectors;
            ends.push(end);
        }
        Ok(Disks { ends })
    }

    #[allow(clippy::len_without_is_empty)] // there is always one
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// How many sectors each disk has.
    pub fn sizes(&self) -> Vec<u64> {
        self.ranges().map(|disk| disk.end - disk.start).collect()
    }

    /// Sectors of all disks together.
    pub fn sectors(&self) -> u64 {
        *self.ends.last().expect("there is a disk")
    }

    /// The sectors of a disk.
    pub fn range(&self, disk: usize) -> Range<u64> {
        let start = disk.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[disk]
    }

    /// The sectors of each disk.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        (0..self.len()).map(|disk| self.range(disk))
    }

    /// The disk that a sector is on. The last one for sectors behind all disks.
    pub fn of(&self, sector: u64) -> usize {
        self.ends.partition_point(|&end| end <= sector).min(self.len() - 1)
    }

    /// Whether these sectors are there, and on one disk.
    pub fn have(&self, sector: u64, sectors: u64) -> bool {
        let disk = self.range(self.of(sector));
        sector.checked_add(sectors).is_some_and(|end| end <= disk.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_is_on_one_disk() {
        let disks = Disks::new(&[8, 16]).expect("two disks");
        assert_eq!([0, 7, 8, 23].map(|sector| disks.of(sector)), [0, 0, 1, 1]);
        assert_eq!((disks.range(0), disks.range(1), disks.sectors()), (0..8, 8..24, 24));
        assert!(disks.have(0, 8) && disks.have(8, 16));
        for (sector, sectors) in [(7, 2), (0, 9), (23, 2), (24, 1), (u64::MAX, 1), (1, u64::MAX)] {
            assert!(!disks.have(sector, sectors), "{sector} {sectors}");
        }
    }

    #[test]
    fn what_no_disks_are() {
        let reason = |sizes: &[u64]| Disks::new(sizes).expect_err("no disks");
        assert_eq!(reason(&[]), "0 disks are not 1 to 16");
        assert_eq!(reason(&[8; 17]), "17 disks are not 1 to 16");
        assert_eq!(reason(&[0]), "a disk of 0 sectors is out of range");
        assert_eq!(reason(&[8, 1 << 35]), format!("a disk of {} sectors is out of range", 1u64 << 35));
        assert_eq!(reason(&[8, 9]), "one of several disks has 9 sectors, which is no multiple of 8");
        assert!(Disks::new(&[9]).is_ok());
    }
}
