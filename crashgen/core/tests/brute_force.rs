//! Small random logs: what the core finds is what a naive reading of the rules in device.rs finds.
//!
//! The reference shares no code with the core. It knows no intervals: at any instant it looks through the whole log for
//! what is stable, and tries every assignment of the pieces in flight, for every set of PREFLUSH writes under way whose
//! flush may be done.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use common::{contents, notation, read_letter, states, Disk, Recorded, Request, Step, SECTORS};
use num_bigint::BigUint;
use postcrash_core::explore::{BruteForce, DepthFirst, Explorer};
use postcrash_core::interval::Interval;
use postcrash_core::view::Content;
use proptest::prelude::*;

const CASES: u32 = 3000;
const IN_FLIGHT_MAX: usize = 8;

/// A piece of a write or discard, in submission order.
struct Piece {
    request: u32,
    /// What each of its sectors shows.
    shows: Vec<(usize, u8)>,
}

/// For each disk content: how many assignments give it, and the fewest pieces lost in one that does.
type Space = BTreeMap<Disk, (u64, usize)>;

struct Reference<'a> {
    steps: &'a [Step],
    lying: bool,
}

impl Reference<'_> {
    fn find(&self, wanted: impl Fn(&Step) -> bool) -> Option<usize> {
        self.steps.iter().position(wanted)
    }

    fn request(&self, id: u32) -> &Request {
        let of = |step: &&Step| matches!(step, Step::Submit(other, _) if *other == id);
        match self.steps.iter().find(of) {
            Some(Step::Submit(_, request)) => request,
            _ => panic!("request {id} is never submitted"),
        }
    }

    fn submitted(&self, id: u32) -> usize {
        self.find(|step| matches!(step, Step::Submit(other, _) if *other == id)).expect("submitted")
    }

    /// When `id` completed, if that was before `now`.
    fn completed(&self, id: u32, now: usize) -> Option<usize> {
        self.find(|step| *step == Step::Complete(id)).filter(|&at| at < now)
    }

    fn submitted_before(&self, now: usize) -> Vec<u32> {
        let id = |step: &Step| if let Step::Submit(id, _) = step { Some(*id) } else { None };
        self.steps[..now].iter().filter_map(id).collect()
    }

    fn is_preflush(&self, id: u32) -> bool {
        matches!(self.request(id), Request::Write { preflush: true, .. })
    }

    /// PREFLUSH writes under way.
    fn held(&self, now: usize) -> Vec<u32> {
        let all = self.submitted_before(now);
        all.into_iter().filter(|&id| !self.lying && self.is_preflush(id) && self.completed(id, now).is_none()).collect()
    }

    /// Whether `id` is stable at `now`, where the flushes in the writes `flushed` are done.
    fn is_stable(&self, id: u32, now: usize, flushed: &[u32]) -> bool {
        let Some(completed) = self.completed(id, now) else { return false };
        let set_up = self.find(|step| *step == Step::Durable).filter(|&at| at < now);
        if set_up.is_some_and(|end| completed < end) {
            return true;
        }
        if self.lying {
            return false;
        }
        let is_flush = |&id: &u32| *self.request(id) == Request::Flush || self.is_preflush(id);
        let is_done = |&id: &u32| self.completed(id, now).is_some() || flushed.contains(&id);
        let mut flushes = self.submitted_before(now).into_iter().filter(is_flush).filter(is_done);
        let fua = matches!(self.request(id), Request::Write { fua: true, .. });
        fua || flushes.any(|flush| self.submitted(flush) > completed)
    }

    /// Every piece submitted so far: a block at a time.
    fn pieces(&self, now: usize) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for request in self.submitted_before(now) {
            let shows: Vec<(usize, u8)> = match self.request(request) {
                Request::Flush => continue,
                Request::Write { sector, letters, .. } => (*sector..).zip(letters.iter().copied()).collect(),
                Request::Zero { sector, sectors, .. } => (*sector..sector + sectors).map(|s| (s, b'0')).collect(),
            };
            for block in 0..SECTORS / 8 {
                let shows: Vec<(usize, u8)> = shows.iter().copied().filter(|(s, _)| s / 8 == block).collect();
                if !shows.is_empty() {
                    pieces.push(Piece { request, shows });
                }
            }
        }
        pieces
    }

    /// What the disk can show at `now` if of the PREFLUSH writes under way just `flushed` have had their flush.
    fn space(&self, now: usize, flushed: &[u32]) -> Space {
        let waiting: Vec<u32> = self.held(now).into_iter().filter(|id| !flushed.contains(id)).collect();
        let mut pieces = self.pieces(now);
        pieces.retain(|piece| !waiting.contains(&piece.request));
        let stable: Vec<bool> = pieces.iter().map(|p| self.is_stable(p.request, now, flushed)).collect();
        let open: Vec<usize> = (0..pieces.len()).filter(|&i| !stable[i]).collect();
        let mut space = Space::new();
        for lost in 0..1u64 << open.len() {
            let mut disk: Disk = [b'.'; SECTORS];
            for (i, piece) in pieces.iter().enumerate() {
                let is_lost = open.iter().position(|&o| o == i).is_some_and(|bit| lost >> bit & 1 == 1);
                if !is_lost {
                    piece.shows.iter().for_each(|&(sector, letter)| disk[sector] = letter);
                }
            }
            let (count, fewest) = space.entry(disk).or_insert((0, usize::MAX));
            *count += 1;
            *fewest = (*fewest).min(lost.count_ones() as usize);
        }
        space
    }

    /// One space for each set of PREFLUSH writes under way.
    fn spaces(&self, now: usize) -> Vec<Space> {
        let held = self.held(now);
        let set = |mask: u32| held.iter().enumerate().filter(move |(i, _)| mask >> i & 1 == 1).map(|(_, &id)| id);
        (0..1 << held.len()).map(|mask| self.space(now, &set(mask).collect::<Vec<_>>())).collect()
    }

    /// Pieces in flight just before step `now`, waiting or not.
    fn in_flight(&self, now: usize) -> usize {
        self.pieces(now).iter().filter(|piece| !self.is_stable(piece.request, now, &[])).count()
    }

    /// Instants just before something becomes stable after the set-up, and the end.
    fn edges(&self) -> Vec<usize> {
        let Some(durable) = self.find(|step| *step == Step::Durable) else { return Vec::new() };
        let stable = |now: usize| {
            let writes = self.pieces(now);
            writes.iter().filter(|piece| self.is_stable(piece.request, now, &[])).count()
        };
        let end = self.steps.len();
        (durable + 1..end).filter(|&now| stable(now) != stable(now + 1)).chain([end]).collect()
    }
}

/// What the generator asks for next; what cannot be is left out.
#[derive(Debug, Clone)]
enum Ask {
    Write {
        sector: usize,
        letters: Vec<u8>,
        flags: u8,
    },
    Zero {
        sector: usize,
        sectors: usize,
        discard: bool,
    },
    Flush,
    /// Complete one of the requests under way.
    Complete(prop::sample::Index),
    Durable,
}

fn ask() -> impl Strategy<Value = Ask> {
    let letter = prop::sample::select(b"ABC.0".to_vec());
    let letters = prop_oneof![
        letter.clone().prop_flat_map(|l| (1..9usize).prop_map(move |n| vec![l; n])),
        prop::collection::vec(letter, 1..9),
    ];
    let place = 0..SECTORS;
    prop_oneof![
        6 => (place.clone(), letters, prop_oneof![3 => Just(0u8), 2 => 1..4u8])
            .prop_map(|(sector, letters, flags)| Ask::Write { sector, letters, flags }),
        1 => (place, 1..9usize, any::<bool>())
            .prop_map(|(sector, sectors, discard)| Ask::Zero { sector, sectors, discard }),
        2 => Just(Ask::Flush),
        9 => any::<prop::sample::Index>().prop_map(Ask::Complete),
        1 => Just(Ask::Durable),
    ]
}

/// A log of what can be of `asks`, with at most [`IN_FLIGHT_MAX`] pieces in flight at any time.
fn log(asks: Vec<Ask>, durable_first: bool, lying: bool) -> Vec<Step> {
    let mut steps = if durable_first { vec![Step::Durable] } else { Vec::new() };
    let mut under_way: Vec<u32> = Vec::new();
    let mut next = 0;
    for ask in asks {
        let request = match ask {
            Ask::Durable if !steps.contains(&Step::Durable) => {
                steps.push(Step::Durable);
                continue;
            }
            Ask::Complete(index) if !under_way.is_empty() => {
                steps.push(Step::Complete(under_way.remove(index.index(under_way.len()))));
                continue;
            }
            Ask::Durable | Ask::Complete(_) => continue,
            Ask::Flush => Request::Flush,
            Ask::Write { sector, mut letters, flags } => {
                letters.truncate(SECTORS - sector);
                Request::Write { sector, letters, fua: flags & 1 != 0, preflush: flags & 2 != 0 }
            }
            Ask::Zero { sector, sectors, discard } => {
                Request::Zero { sector, sectors: sectors.min(SECTORS - sector), discard }
            }
        };
        steps.push(Step::Submit(next, request));
        if (Reference { steps: &steps, lying }).in_flight(steps.len()) > IN_FLIGHT_MAX {
            steps.pop();
            continue;
        }
        under_way.push(next);
        next += 1;
    }
    steps
}

/// A failure shows the log as litmus.rs writes it.
#[derive(Clone)]
struct Log {
    steps: Vec<Step>,
    lying: bool,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", notation(&self.steps), self.model())
    }
}

impl Log {
    fn model(&self) -> &'static str {
        if self.lying {
            "lying"
        } else {
            "cache"
        }
    }

    fn reference(&self) -> Reference<'_> {
        Reference { steps: &self.steps, lying: self.lying }
    }
}

fn random_log() -> impl Strategy<Value = Log> {
    let asks = prop::collection::vec(ask(), 0..40);
    let flags = (prop::bool::weighted(0.8), prop::bool::weighted(0.1));
    (asks, flags).prop_map(|(asks, (durable_first, lying))| Log { steps: log(asks, durable_first, lying), lying })
}

/// Contents and counts of each crash interval, by the event that it ends before.
fn core_spaces(recorded: &Recorded, model: &str) -> BTreeMap<usize, Vec<BTreeMap<Disk, BigUint>>> {
    let mut all: BTreeMap<usize, Vec<BTreeMap<Disk, BigUint>>> = BTreeMap::new();
    recorded.each_interval(model, |interval, content| {
        let contents = contents(interval, content);
        assert_eq!(contents.values().sum::<BigUint>(), interval.states());
        all.entry(interval.event).or_default().push(contents);
    });
    all
}

fn counts(space: &Space) -> BTreeMap<Disk, BigUint> {
    space.iter().map(|(disk, (count, _))| (*disk, BigUint::from(*count))).collect()
}

fn disks<'a, V: 'a>(spaces: impl IntoIterator<Item = &'a BTreeMap<Disk, V>>) -> BTreeSet<Disk> {
    spaces.into_iter().flat_map(|space| space.keys().copied()).collect()
}

fn check_spaces(log: &Log) {
    let reference = log.reference();
    let found = core_spaces(&Recorded::new(&log.steps), log.model());
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), reference.edges(), "the edges of the intervals");
    for (&edge, stages) in &found {
        let wanted = reference.spaces(edge);
        assert_eq!(disks(stages), disks(&wanted), "contents before step {edge}");
        let wanted: Vec<_> = wanted.iter().map(counts).collect();
        assert!(stages.iter().all(|stage| wanted.contains(stage)), "counts before step {edge}: {stages:?}");
        assert!(wanted.len() > 1 || wanted == *stages, "one stage before step {edge}");
    }
    check_every_instant(&reference, &found);
}

/// The latest instant of an interval has the contents of every earlier one.
fn check_every_instant(reference: &Reference, found: &BTreeMap<usize, Vec<BTreeMap<Disk, BigUint>>>) {
    let Some(durable) = reference.find(|step| *step == Step::Durable) else { return };
    for now in durable + 1..=reference.steps.len() {
        let (edge, stages) = found.range(now..).next().expect("the end is an edge");
        let early = disks(&reference.spaces(now));
        assert!(early.is_subset(&disks(stages)), "what step {now} can show, step {edge} cannot");
    }
}

/// The pieces that a state says it lost give its content when they are lost, and fewer do not.
fn check_lost(reference: &Reference, interval: &Interval, content: Content<'_>) {
    let space = reference.space(interval.event, &[]);
    for (choices, disk) in states(interval, content) {
        let lost = interval.lost(&choices);
        assert_eq!(lost.len(), space[&disk].1, "fewest losses for {}", common::shown(&disk));
        let mut shown: Disk = [b'.'; SECTORS];
        let mut index = 0;
        for piece in reference.pieces(interval.event) {
            let in_flight = !reference.is_stable(piece.request, interval.event, &[]);
            if !(in_flight && lost.contains(&index)) {
                piece.shows.iter().for_each(|&(sector, letter)| shown[sector] = letter);
            }
            index += u32::from(in_flight);
        }
        assert_eq!(shown, disk, "lost pieces {lost:?}");
    }
}

/// A program that reads sectors, which ones depending on what it has read, and gives what it saw.
fn read(interval: &Interval, content: Content<'_>, seed: u64, explorer: &mut dyn Explorer) -> Vec<u8> {
    let versions = |component: u32| interval.components[component as usize].versions.len() as u32;
    let mut seen = Vec::new();
    let mut next = || {
        let mut hasher = DefaultHasher::new();
        (seed, &seen).hash(&mut hasher);
        let sector = hasher.finish() as usize % (SECTORS + 4);
        if sector >= SECTORS {
            return false;
        }
        let mut choose = |component| explorer.choose(component, versions(component));
        seen.push(read_letter(interval, content, sector, &mut choose));
        seen.len() < 12
    };
    while next() {}
    seen
}

/// Run the program to the explorer's end; for each outcome, how many crash states it stands for.
fn outcomes(
    interval: &Interval,
    content: Content<'_>,
    seed: u64,
    mut explorer: impl Explorer,
) -> BTreeMap<Vec<u8>, BigUint> {
    let mut outcomes: BTreeMap<Vec<u8>, BigUint> = BTreeMap::new();
    let mut executions = BigUint::ZERO;
    while explorer.next_execution() {
        executions += 1u32;
        assert!(executions <= interval.contents(), "more executions than contents");
        let outcome = read(interval, content, seed, &mut explorer);
        *outcomes.entry(outcome).or_default() += interval.covered(&explorer.choices());
    }
    outcomes
}

fn cases() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(CASES);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn the_core_finds_what_every_assignment_gives(log in random_log()) {
        check_spaces(&log);
    }

    #[test]
    fn a_state_loses_the_fewest_pieces(log in random_log()) {
        let reference = log.reference();
        Recorded::new(&log.steps).each_interval(log.model(), |interval, content| {
            if reference.held(interval.event).is_empty() {
                check_lost(&reference, interval, content);
            }
        });
    }

    #[test]
    fn lazy_reading_reaches_every_outcome_and_counts_every_state(log in random_log(), seed in any::<u64>()) {
        Recorded::new(&log.steps).each_interval(log.model(), |interval, content| {
            let versions = interval.components.iter().map(|component| component.versions.len() as u32).collect();
            let lazy = outcomes(interval, content, seed, DepthFirst::default());
            let brute = outcomes(interval, content, seed, BruteForce::new(versions));
            assert_eq!(lazy.values().sum::<BigUint>(), interval.states());
            assert_eq!(lazy, brute);
        });
    }
}
