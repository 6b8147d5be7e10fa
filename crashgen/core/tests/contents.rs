//! What requests have left on the disk, compared with a naive drive that has a letter for each sector.

mod common;

use common::{notation, parse, RecordedLog, Request, Step, SECTORS};
use fastrand::Rng;
use postcrash_core::contents::{contents, SectorExtent};
use postcrash_wire::units::SECTOR_BYTES;

const SEEDS: u64 = 2000;

/// Extents as the first sector and one letter for each sector; `0` is a zero.
fn shown(extents: &[SectorExtent]) -> Vec<(u64, String)> {
    let shown = |extent: &SectorExtent| match extent {
        SectorExtent::Data { sector, data } => {
            (*sector, data.iter().step_by(SECTOR_BYTES).map(|&byte| byte as char).collect())
        }
        SectorExtent::Zeros { sector, sectors } => (*sector, "0".repeat(*sectors as usize)),
    };
    extents.iter().map(shown).collect()
}

/// Every sector's last letter, as runs of neighbours. Data and zeros are in separate runs.
fn naive(steps: &[Step]) -> Vec<(u64, String)> {
    let mut disk = [None; SECTORS];
    for step in steps {
        match step {
            Step::Submit(_, Request::Write { sector, letters, .. }) => {
                letters.iter().enumerate().for_each(|(i, letter)| disk[sector + i] = Some(*letter as char));
            }
            Step::Submit(_, Request::Zero { sector, sectors, .. }) => disk[*sector..sector + sectors].fill(Some('0')),
            _ => {}
        }
    }
    let mut runs: Vec<(u64, String)> = Vec::new();
    for (sector, letter) in (0..).zip(disk) {
        let Some(letter) = letter else { continue };
        match runs.last_mut() {
            Some((first, run)) if *first + run.len() as u64 == sector && run.ends_with('0') == (letter == '0') => {
                run.push(letter);
            }
            _ => runs.push((sector, letter.to_string())),
        }
    }
    runs
}

fn random(seed: u64) -> Vec<Step> {
    let mut rng = Rng::with_seed(seed);
    let request = |rng: &mut Rng| {
        let sector = rng.usize(..SECTORS);
        let sectors = rng.usize(1..=SECTORS - sector);
        match rng.u8(..4) {
            0 => Request::Zero { sector, sectors, discard: rng.bool() },
            1 => Request::Flush,
            _ => Request::Write { sector, letters: vec![rng.u8(b'A'..=b'Z'); sectors], fua: false, preflush: false },
        }
    };
    (0..rng.u32(1..12)).map(|id| Step::Submit(id, request(&mut rng))).collect()
}

#[test]
fn runs_are_as_long_as_they_can_be_and_hold_what_was_written_last() {
    let recorded = RecordedLog::new(&parse("w.0-3=A; w.6-9=BC; w.4-5=D; zero .8-8; w.12-13=E; zero .9-10"));
    let expected = [(0, "AAAADDBC".to_owned()), (8, "000".to_owned()), (12, "EE".to_owned())];
    assert_eq!(shown(&contents(&recorded.recording, usize::MAX)), expected);
}

#[test]
fn nothing_counts_from_the_end_on() {
    let recorded = RecordedLog::new(&parse("w.0-1=A; w.1-2=B"));
    // Behind the mark: a submission, its completion, the next submission.
    assert_eq!(shown(&contents(&recorded.recording, 3)), [(0, "AA".to_owned())]);
    assert_eq!(shown(&contents(&recorded.recording, 4)), [(0, "ABB".to_owned())]);
    assert_eq!(contents(&recorded.recording, 0), []);
}

#[test]
fn random_requests_leave_what_a_naive_reading_says() {
    for seed in 0..SEEDS {
        let steps = random(seed);
        let recorded = RecordedLog::new(&steps);
        let found = shown(&contents(&recorded.recording, usize::MAX));
        assert_eq!(found, naive(&steps), "seed {seed}: {}", notation(&steps));
    }
}
