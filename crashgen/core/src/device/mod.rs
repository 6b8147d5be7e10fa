//! Device models: what a power cut may do to writes that the drive had taken.
//!
//! These words are used by all models. A write is cut into *pieces* at multiples of the atomic unit; a piece persists
//! whole or not at all. A piece is *in flight* from its submission until it is *stable*; no crash takes a stable piece
//! back. A flush makes stable exactly the writes that had completed when it was submitted. It does so when it
//! completes. FUA makes its own write stable when the write completes. A PREFLUSH write is a flush that is submitted
//! with a write, and a write that starts when that flush is done (Linux,
//! Documentation/block/writeback_cache_control.rst): if any of the write is kept, nothing that the flush covers is
//! lost. Discard and write-zeroes are in flight like a write of zeros. What had completed when the set-up ended is
//! stable. A write that is never completed is in flight to the end.
//!
//! The models differ in which pieces a crash may keep: see [`cache`], [`ordered`], [`lying`], [`prefix`], [`through`] and
//! [`barrier`].
//!
//! The atomic unit is 4096 bytes unless the name of the model says otherwise: `cache:16384` is a drive that persists
//! units of 16 KiB, at multiples of 16 KiB, whole. An NVMe namespace with that NAWUPF (AWUPF of its controller)
//! promises this for writes that lie within one unit. For longer writes, and for writes that cross a multiple, it
//! promises this only in multiple atomicity mode with that NABSPF, and otherwise it promises nothing (NVM Command Set
//! specification 1.1, section 2.1.4): take `torn` for such writes.
//!
//! These are not modelled: bit rot, misdirected writes, pieces smaller than a sector, and a drive that returns anything
//! but zeros or the old content for a discarded sector.

pub mod barrier;
pub mod cache;
pub mod lying;
pub mod ordered;
pub mod prefix;
pub mod through;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use postcrash_wire::units::{BLOCK_SECTORS, SECTOR_BYTES};
use thiserror::Error;

use barrier::BarrierDrive;
use cache::Cache;
use lying::LyingDrive;
use ordered::OrderedDrive;
use prefix::Prefix;
use through::WriteThrough;

/// The order in which the pieces in flight persist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// In no order: each is kept or lost on its own, and a sector shows the kept piece that was submitted last.
    Free,
    /// In the order of submission: a crash keeps a prefix. Of one write it keeps a prefix of the sectors.
    Submission,
    /// In the order of completion: a crash keeps a prefix. A request that has not completed is lost.
    Completion,
}

/// A drive. [`named`] finds it by its name.
pub trait DeviceModel: Send + Sync {
    /// The name of the model; the shortest one if there are several.
    fn name(&self) -> String;
    /// Sectors (512 B) of the unit that persists whole or not at all; writes are cut at multiples of it.
    fn atomic_unit_sectors(&self) -> u64;
    fn order(&self) -> Order {
        Order::Free
    }
    /// Whether a completed flush makes anything stable.
    fn honours_flush(&self) -> bool {
        true
    }
    /// Whether a completed FUA write is stable.
    fn honours_fua(&self) -> bool {
        true
    }
    /// Whether every request is stable when it completes.
    fn writes_through(&self) -> bool {
        false
    }
    /// Whether a flush that makes nothing stable orders: what is behind it persists after what is in front of it.
    fn flush_orders(&self) -> bool {
        false
    }
    /// Whether a crash may keep a part of a block (4096 B).
    fn tears_blocks(&self) -> bool {
        self.atomic_unit_sectors() < BLOCK_SECTORS
    }
}

/// Which atomic units a family of models can have.
enum Unit {
    /// This many sectors, unless the name says otherwise.
    Usually(u64),
    /// Always this many sectors.
    Always(u64),
}

/// Models that differ in their atomic unit only.
struct Family {
    name: &'static str,
    unit: Unit,
    /// The model with an atomic unit of this many sectors.
    make: fn(u64) -> Box<dyn DeviceModel>,
    /// What the drive does, in words that follow "a disk:".
    prose: &'static str,
}

/// All models. A new one is a file with a [`DeviceModel`], and an entry here.
static FAMILIES: [Family; 8] = [
    Family {
        name: "cache",
        unit: Unit::Usually(BLOCK_SECTORS),
        make: |unit_sectors| Box::new(Cache { unit_sectors }),
        prose: "a volatile write cache; flush and FUA are honoured",
    },
    Family {
        name: "torn",
        unit: Unit::Always(1),
        make: |unit_sectors| Box::new(Cache { unit_sectors }),
        prose: "a volatile write cache; flush and FUA are honoured",
    },
    Family {
        name: "ordered",
        unit: Unit::Usually(BLOCK_SECTORS),
        make: |unit_sectors| Box::new(OrderedDrive { unit_sectors }),
        prose: "writes become durable in the order in which they were sent",
    },
    Family {
        name: "lying",
        unit: Unit::Usually(BLOCK_SECTORS),
        make: |unit_sectors| Box::new(LyingDrive { unit_sectors }),
        prose: "a volatile write cache; flushes are ignored",
    },
    Family {
        name: "prefix",
        unit: Unit::Always(u64::MAX),
        make: |_| Box::new(Prefix),
        prose: "writes become durable in the order in which they were completed",
    },
    Family {
        name: "through",
        unit: Unit::Usually(BLOCK_SECTORS),
        make: |unit_sectors| Box::new(WriteThrough { unit_sectors }),
        prose: "a write is durable when it completes",
    },
    Family {
        name: "plp",
        unit: Unit::Always(1),
        make: |unit_sectors| Box::new(WriteThrough { unit_sectors }),
        prose: "power-loss protection, a write is durable when it completes",
    },
    Family {
        name: "barrier",
        unit: Unit::Usually(BLOCK_SECTORS),
        make: |unit_sectors| Box::new(BarrierDrive { unit_sectors }),
        prose: "a volatile write cache; flushes order writes and make nothing durable",
    },
];

#[derive(Debug, Error, PartialEq, Eq)]
pub enum ModelError {
    #[error("unknown device model '{0}'; known: {known}", known = known())]
    Unknown(String),
    #[error("device model '{name}': the atomic unit is a power of two of at least {SECTOR_BYTES} bytes, not '{unit}'")]
    Unit { name: String, unit: String },
    #[error("device model '{name}': {family} takes no atomic unit")]
    NoUnit { name: String, family: String },
}

fn known() -> String {
    let names: Vec<&str> = names().collect();
    let free = FAMILIES.iter().filter(|family| matches!(family.unit, Unit::Usually(_))).map(|family| family.name);
    let free: Vec<&str> = free.collect();
    let (last, others) = free.split_last().expect("some have a unit");
    let takers = format!("{} and {last}", others.join(", "));
    format!("{}; {takers} take an atomic unit in bytes, as in cache:16384", names.join(", "))
}

/// Names of all models, with their usual atomic unit.
pub fn names() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().map(|family| family.name)
}

/// The model of that name.
pub fn named(name: &str) -> Option<&'static dyn DeviceModel> {
    find(name).ok()
}

/// The model of that name, or why there is none. A name gives the same model for as long as the program runs.
pub fn find(name: &str) -> Result<&'static dyn DeviceModel, ModelError> {
    static FOUND: Mutex<BTreeMap<String, &'static dyn DeviceModel>> = Mutex::new(BTreeMap::new());
    let model = make(name)?;
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(*found.entry(model.name()).or_insert_with(|| Box::leak(model)))
}

fn make(name: &str) -> Result<Box<dyn DeviceModel>, ModelError> {
    let (family, unit) = match name.split_once(':') {
        Some((family, unit)) => (family, Some(unit)),
        None => (name, None),
    };
    let Some(family) = FAMILIES.iter().find(|known| known.name == family) else {
        return Err(ModelError::Unknown(name.to_owned()));
    };
    let unit_sectors = match (&family.unit, unit) {
        (Unit::Usually(sectors) | Unit::Always(sectors), None) => *sectors,
        (Unit::Always(_), Some(_)) => {
            return Err(ModelError::NoUnit { name: name.to_owned(), family: family.name.to_owned() })
        }
        (Unit::Usually(_), Some(unit)) => {
            unit_sectors(unit).ok_or_else(|| ModelError::Unit { name: name.to_owned(), unit: unit.to_owned() })?
        }
    };
    Ok((family.make)(unit_sectors))
}

/// What the drive of a model does, in words.
pub fn prose(model: &dyn DeviceModel) -> String {
    let words = family_of(model).prose;
    match model.order() {
        Order::Free => {
            format!("{words}; units of {} bytes are never torn", model.atomic_unit_sectors() * SECTOR_BYTES as u64)
        }
        _ => words.to_owned(),
    }
}

/// The name of the same drive with an atomic unit of 4 KiB. A replay never cuts its entries.
pub fn untorn(model: &dyn DeviceModel) -> String {
    (family_of(model).make)(BLOCK_SECTORS).name()
}

fn family_of(model: &dyn DeviceModel) -> &'static Family {
    let name = model.name();
    let family = name.split(':').next().unwrap_or_default();
    FAMILIES.iter().find(|known| known.name == family).expect("every model is of a family")
}

/// The number of sectors in a unit, which is given in bytes.
fn unit_sectors(bytes: &str) -> Option<u64> {
    let digits = bytes.bytes().all(|byte| byte.is_ascii_digit());
    let bytes: u64 = bytes.parse().ok().filter(|_| digits)?;
    let sectors = bytes / SECTOR_BYTES as u64;
    (bytes.is_power_of_two() && sectors > 0).then_some(sectors)
}

/// The name of `family`, with the unit if it is not the usual one.
fn name_with_unit(family: &str, unit_sectors: u64) -> String {
    match unit_sectors {
        BLOCK_SECTORS => family.to_owned(),
        sectors => format!("{family}:{}", sectors * SECTOR_BYTES as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_found_by_each_of_its_names() {
        for name in names() {
            assert_eq!(find(name).map(|model| model.name()), Ok(name.to_owned()));
        }
        let names = [
            ("cache:4096", "cache"),
            ("cache:512", "torn"),
            ("cache:016384", "cache:16384"),
            ("lying:512", "lying:512"),
            ("ordered:4096", "ordered"),
            ("through:512", "plp"),
            ("through:4096", "through"),
            ("barrier:4096", "barrier"),
            ("cache:9223372036854775808", "cache:9223372036854775808"),
        ];
        for (name, shortest) in names {
            assert_eq!(find(name).map(|model| model.name()), Ok(shortest.to_owned()));
        }
    }

    #[test]
    fn a_model_says_what_it_does() {
        let summary = |name: &str| prose(find(name).expect("a model"));
        assert!(names().all(|name| !summary(name).is_empty()));
        assert!(summary("cache").ends_with("units of 4096 bytes are never torn"));
        assert!(summary("lying:16384").ends_with("flushes are ignored; units of 16384 bytes are never torn"));
        assert!(summary("prefix").ends_with("completed"));
        assert!(summary("plp").ends_with("completes; units of 512 bytes are never torn"));
        let untorn_of = |name: &str| untorn(find(name).expect("a model"));
        let whole = [
            ("torn", "cache"),
            ("plp", "through"),
            ("barrier:512", "barrier"),
            ("cache:16384", "cache"),
            ("prefix", "prefix"),
        ];
        assert!(whole.iter().all(|&(name, whole)| untorn_of(name) == whole));
        let tears = |name: &str| find(name).expect("a model").tears_blocks();
        assert_eq!(["torn", "cache:1024", "plp", "cache", "prefix"].map(tears), [true, true, true, false, false]);
    }

    #[test]
    fn what_is_no_model_is_told() {
        let message = |name: &str| find(name).map(|model| model.name()).expect_err("no model").to_string();
        for name in ["cash", "", ":512", "Cache", "cash:512", " cache"] {
            let known = "cache, torn, ordered, lying, prefix, through, plp, barrier; \
                         cache, ordered, lying, through and barrier take";
            assert!(message(name).starts_with(&format!("unknown device model '{name}'; known: {known}")));
        }
        for unit in ["", "0", "256", "511", "4095", "6144", "+512", "512:1", "x", "18446744073709551616"] {
            let wanted = "the atomic unit is a power of two of at least 512 bytes, not";
            assert_eq!(message(&format!("cache:{unit}")), format!("device model 'cache:{unit}': {wanted} '{unit}'"));
        }
        assert_eq!(message("torn:512"), "device model 'torn:512': torn takes no atomic unit");
        assert_eq!(message("prefix:x"), "device model 'prefix:x': prefix takes no atomic unit");
    }
}
