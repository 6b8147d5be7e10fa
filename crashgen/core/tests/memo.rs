//! The memo of recoveries answers what running them would have given.

use std::collections::{BTreeMap, BTreeSet};

use num_bigint::BigUint;
use postcrash_core::choice::Options;
use postcrash_core::explore::Explorer;
use postcrash_core::memo::{Digest, Disk, Memo, SectorRange};
use postcrash_core::walk::{Limits, Walk};

fn place(sector: u64) -> SectorRange {
    SectorRange { sector, sectors: 1 }
}

fn reads(all: &[(u64, u8)]) -> Vec<(SectorRange, Digest)> {
    all.iter().map(|&(sector, byte)| (place(sector), Digest::of(&[byte]))).collect()
}

/// A disk of one-byte sectors. Those in `open` are still to be decided. Guests do not wait for the ones in `ahead`.
struct Sectors<'a> {
    disk: &'a [u8],
    open: BTreeSet<u64>,
    ahead: &'a [u64],
    asked: Vec<u64>,
}

impl Disk for Sectors<'_> {
    fn content(&mut self, place: SectorRange) -> Option<Digest> {
        self.asked.push(place.sector);
        let settled = !self.open.contains(&place.sector);
        settled.then(|| Digest::of(&[self.disk[place.sector as usize]]))
    }

    fn awaited(&self, place: SectorRange) -> bool {
        !self.ahead.contains(&place.sector)
    }

    fn decide(&mut self, place: SectorRange) {
        assert!(self.open.remove(&place.sector), "{place:?} was decided already");
    }
}

/// What is known of a disk, and what was read to find it.
fn found(memo: &Memo<u32>, request: &[u8], disk: &[u8]) -> (Option<u32>, Vec<u64>) {
    let mut sectors = Sectors { disk, open: BTreeSet::new(), ahead: &[], asked: Vec::new() };
    let answer = memo.find(request, &mut sectors).copied();
    (answer, sectors.asked)
}

#[test]
fn what_was_not_read_makes_no_difference_and_all_that_was_read_does() {
    let mut memo = Memo::new(1 << 20);
    memo.keep(b"mount", &reads(&[(2, 7), (0, 1)]), 10, 0);
    memo.keep(b"mount", &reads(&[(2, 7), (0, 2), (1, 5)]), 11, 0);
    assert_eq!(found(&memo, b"mount", &[1, 9, 7]), (Some(10), vec![2, 0]));
    assert_eq!(found(&memo, b"mount", &[2, 5, 7]), (Some(11), vec![2, 0, 1]));
    assert_eq!(found(&memo, b"mount", &[2, 6, 7]), (None, vec![2, 0, 1]));
    assert_eq!(found(&memo, b"mount", &[3, 5, 7]), (None, vec![2, 0]));
    assert_eq!(found(&memo, b"mount", &[1, 9, 8]), (None, vec![2]));
    assert_eq!(found(&memo, b"fsck", &[1, 9, 7]), (None, vec![]));
}

#[test]
fn an_execution_may_read_in_another_order_and_not_read_what_others_do() {
    let mut memo = Memo::new(1 << 20);
    memo.keep(b"", &reads(&[(0, 1), (1, 1)]), 10, 0);
    memo.keep(b"", &reads(&[(2, 4), (1, 2), (0, 1)]), 11, 0);
    memo.keep(b"", &reads(&[(1, 3), (2, 4)]), 12, 0);
    assert_eq!(found(&memo, b"", &[1, 2, 4]), (Some(11), vec![0, 1, 2]));
    assert_eq!(found(&memo, b"", &[1, 1, 4]), (Some(10), vec![0, 1]));
    assert_eq!(found(&memo, b"", &[9, 3, 4]), (Some(12), vec![0, 1, 2]));
    assert_eq!(found(&memo, b"", &[1, 3, 4]).0, Some(12));
    assert_eq!(found(&memo, b"", &[9, 3, 5]).0, None);
}

#[test]
fn only_what_guests_wait_for_is_decided() {
    let mut memo = Memo::new(1 << 20);
    memo.keep(b"", &reads(&[(0, 1), (1, 1), (2, 1)]), 10, 0);
    memo.keep(b"", &reads(&[(0, 1), (2, 2)]), 11, 0);
    let decided = |disk: &[u8], open: &[u64], ahead: &[u64]| {
        let open: BTreeSet<u64> = open.iter().copied().collect();
        let mut sectors = Sectors { disk, open: open.clone(), ahead, asked: Vec::new() };
        let answer = memo.find(b"", &mut sectors).copied();
        (answer, open.difference(&sectors.open).copied().collect::<Vec<_>>())
    };
    assert_eq!(decided(&[1, 1, 1], &[0, 1, 2], &[]), (Some(10), vec![0, 1, 2]));
    assert_eq!(decided(&[1, 1, 1], &[0, 1, 2], &[1]), (None, vec![0, 2]));
    assert_eq!(decided(&[1, 1, 2], &[0, 1, 2], &[1]), (Some(11), vec![0, 2]));
    assert_eq!(decided(&[2, 1, 1], &[0, 1, 2], &[]), (None, vec![0]));
    assert_eq!(decided(&[1, 1, 2], &[1], &[]), (Some(11), vec![]));
}

#[test]
fn a_request_that_reads_nothing_has_one_answer() {
    let mut memo = Memo::new(1 << 20);
    memo.keep(b"", &[], 3, 0);
    memo.keep(b"", &reads(&[(0, 1)]), 4, 0);
    assert_eq!(found(&memo, b"", &[]), (Some(3), vec![]));
}

#[test]
fn when_it_is_full_it_starts_anew() {
    let mut memo = Memo::new(1000);
    memo.keep(b"", &reads(&[(0, 0)]), 0, 900);
    assert_eq!(found(&memo, b"", &[0]).0, Some(0));
    memo.keep(b"", &reads(&[(0, 1)]), 1, 900);
    assert_eq!((found(&memo, b"", &[0]).0, found(&memo, b"", &[1]).0), (None, Some(1)));
}

#[test]
fn the_digest_depends_on_every_byte() {
    let bytes = [0x5a; 4096];
    let of_others = (0..bytes.len()).map(|at| {
        let mut other = bytes;
        other[at] ^= 1;
        Digest::of(&other)
    });
    assert!(of_others.chain([Digest::of(&bytes[..4095])]).all(|digest| digest != Digest::of(&bytes)));
}

/// A program on eight bytes: where it reads depends on what it has read.
fn program(seed: u64, read: &mut dyn FnMut(u64) -> u8) -> u32 {
    let mut state = seed;
    for _ in 0..5 {
        let byte = read(state % 8);
        state = (state ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        if state % 5 == 0 {
            break;
        }
    }
    state as u32 % 7
}

/// The versions of a disk's bytes, chosen by a walk.
struct Chosen<'a> {
    versions: &'a [[u8; 2]; 8],
    walk: &'a mut Walk,
}

impl Chosen<'_> {
    fn read(&mut self, sector: u64) -> u8 {
        let options = || Options { nothing_kept: 1, weights: vec![BigUint::from(1u32); 2] };
        self.versions[sector as usize][self.walk.choose(sector as u32, &options) as usize]
    }
}

impl Disk for Chosen<'_> {
    fn content(&mut self, place: SectorRange) -> Option<Digest> {
        self.walk.chosen(place.sector as u32)?;
        Some(Digest::of(&[self.read(place.sector)]))
    }

    fn awaited(&self, place: SectorRange) -> bool {
        place.sector % 3 > 0
    }

    fn decide(&mut self, place: SectorRange) {
        self.read(place.sector);
    }
}

/// How many states lead to each outcome, and how many executions were run. A memo is used if there is one.
fn outcomes(seed: u64, versions: &[[u8; 2]; 8], mut memo: Option<&mut Memo<u32>>) -> (BTreeMap<u32, u32>, usize) {
    let mut walk = Walk::new(&Limits::default());
    let (mut states, mut run) = (BTreeMap::new(), 0);
    let request = seed.to_le_bytes();
    while walk.next_execution() {
        let mut disk = Chosen { versions, walk: &mut walk };
        let known = memo.as_ref().and_then(|memo| memo.find(&request, &mut disk).copied());
        let outcome = known.unwrap_or_else(|| {
            let mut footprint = Vec::new();
            let outcome = program(seed, &mut |sector| {
                let byte = disk.read(sector);
                footprint.push((place(sector), Digest::of(&[byte])));
                byte
            });
            run += 1;
            if let Some(memo) = memo.as_mut() {
                memo.keep(&request, &footprint, outcome, 0);
            }
            outcome
        });
        *states.entry(outcome).or_default() += 1 << (8 - walk.choices().len());
    }
    (states, run)
}

#[test]
fn a_walk_with_a_memo_finds_what_a_walk_without_one_finds() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut memo = Memo::new(1 << 30);
    let (mut with, mut without) = (0, 0);
    for _ in 0..400 {
        let seed = random.u64(..6);
        let disk = [(); 8].map(|()| [random.u8(..3), random.u8(..3)]);
        let (truth, runs) = outcomes(seed, &disk, None);
        let (states, fewer) = outcomes(seed, &disk, Some(&mut memo));
        assert_eq!(states, truth, "seed {seed}, disk {disk:?}");
        (with, without) = (with + fewer, without + runs);
    }
    assert!(with * 2 < without, "{with} of {without} executions were run");
}
