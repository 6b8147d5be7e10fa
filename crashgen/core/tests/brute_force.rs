//! Small random logs: the core finds what a naive reading of the rules of each device model finds (see
//! `common/reference.rs`).

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use common::reference::{Model, Piece, Reference, Space, MODELS};
use common::{contents, notation, read_letter, states, Disk, RecordedLog, Request, Step, BLOCK, SECTORS};
use num_bigint::BigUint;
use postcrash_core::choice::Choice;
use postcrash_core::explore::{BruteForce, Explorer};
use postcrash_core::ground::Content;
use postcrash_core::interval::Interval;
use postcrash_core::walk::{Limits, Walk};
use proptest::prelude::*;

const CASES: u32 = 3000;
const IN_FLIGHT_MAX: usize = 8;

/// What the generator asks for next. What is impossible at that point is left out.
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
    /// Let the operation under way return, or the next one start.
    Mark,
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
        3 => Just(Ask::Mark),
        1 => Just(Ask::Durable),
    ]
}

/// A log of those `asks` that are possible, with at most [`IN_FLIGHT_MAX`] pieces in flight at any time.
fn log(asks: Vec<Ask>, durable_first: bool, model: Model) -> Vec<Step> {
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
            Ask::Mark => {
                let marks = steps.iter().filter(|step| is_mark(step)).count() as u32;
                steps.push(if marks % 2 == 0 { Step::Started(marks / 2) } else { Step::Returned(marks / 2) });
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
        if (Reference { steps: &steps, model }).in_flight(steps.len()) > IN_FLIGHT_MAX {
            steps.pop();
            continue;
        }
        under_way.push(next);
        next += 1;
    }
    steps
}

fn is_mark(step: &Step) -> bool {
    matches!(step, Step::Started(_) | Step::Returned(_))
}

/// A failure prints the log as litmus.rs writes it.
#[derive(Clone)]
struct Log {
    steps: Vec<Step>,
    model: Model,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", notation(&self.steps), self.model.name)
    }
}

impl Log {
    fn reference(&self) -> Reference<'_> {
        Reference { steps: &self.steps, model: self.model }
    }
}

fn random_log() -> impl Strategy<Value = Log> {
    prop::sample::select(MODELS).prop_flat_map(random_log_on)
}

fn random_log_on(model: Model) -> impl Strategy<Value = Log> {
    let asks = prop::collection::vec(ask(), 0..40);
    let options = (prop::bool::weighted(0.8), Just(model));
    (asks, options).prop_map(|(asks, (durable_first, model))| Log { steps: log(asks, durable_first, model), model })
}

/// Contents and counts of each crash interval, by the events before which its instants are.
fn core_spaces(recorded: &RecordedLog, model: &str) -> BTreeMap<usize, Vec<BTreeMap<Disk, BigUint>>> {
    let mut all: BTreeMap<usize, Vec<BTreeMap<Disk, BigUint>>> = BTreeMap::new();
    recorded.each_interval(model, |interval, content| {
        let contents = contents(interval, content);
        assert_eq!(contents.values().sum::<BigUint>(), interval.states());
        for instant in &interval.instants {
            all.entry(instant.event).or_default().push(contents.clone());
        }
    });
    all
}

fn counts(space: &Space) -> BTreeMap<Disk, BigUint> {
    space.iter().map(|(disk, (count, _))| (*disk, BigUint::from(*count))).collect()
}

fn disks<'a, V: 'a>(spaces: impl IntoIterator<Item = &'a BTreeMap<Disk, V>>) -> BTreeSet<Disk> {
    spaces.into_iter().flat_map(|space| space.keys().copied()).collect()
}

/// The counts of all crash intervals of one instant added up.
fn added(stages: &[BTreeMap<Disk, BigUint>]) -> BTreeMap<Disk, BigUint> {
    let mut all: BTreeMap<Disk, BigUint> = BTreeMap::new();
    stages.iter().flatten().for_each(|(disk, count)| *all.entry(*disk).or_default() += count);
    all
}

fn check_spaces(log: &Log) {
    let reference = log.reference();
    let mut found = core_spaces(&RecordedLog::new(&log.steps), log.model.name);
    if log.model.has_stages() {
        found.values_mut().for_each(|stages| *stages = vec![added(stages)]);
    }
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), reference.judged(), "the instants that are judged");
    for (&edge, stages) in &found {
        let wanted = reference.spaces(edge);
        assert_eq!(disks(stages), disks(&wanted), "contents before step {edge}");
        let wanted: Vec<_> = wanted.iter().map(counts).collect();
        assert!(stages.iter().all(|stage| wanted.contains(stage)), "counts before step {edge}: {stages:?}");
        assert!(wanted.len() > 1 || wanted == *stages, "one stage before step {edge}");
    }
    check_every_instant(&reference, &found);
}

/// Whatever a crash at any instant can leave is also found at a later instant with the same operations started and
/// returned. If a write is stable when it completes, it may be found at an earlier one.
fn check_every_instant(reference: &Reference, found: &BTreeMap<usize, Vec<BTreeMap<Disk, BigUint>>>) {
    let Some(durable) = reference.find(|step| *step == Step::Durable) else { return };
    for now in durable + 1..=reference.steps.len() {
        let first = if reference.only_grows() { now } else { 0 };
        let same = found.range(first..).filter(|(&judged, _)| reference.marks(judged) == reference.marks(now));
        let stages: Vec<_> = same.flat_map(|(_, stages)| stages).cloned().collect();
        let early = disks(&reference.spaces(now));
        assert!(early.is_subset(&disks(&stages)), "what step {now} can show is shown at no other instant");
    }
}

/// An interval knows which operations had started and which had returned at each of its instants.
fn check_marks(reference: &Reference, interval: &Interval) {
    for instant in &interval.instants {
        assert_eq!((instant.started, instant.returned), reference.marks(instant.event), "step {}", instant.event);
    }
}

/// For each instant and disk content, the fewest lost pieces that a state with that content names.
type Fewest = BTreeMap<usize, BTreeMap<Disk, Vec<usize>>>;

/// What becomes of a piece in a state of a crash interval that loses `lost` of the interval's pieces.
fn is_kept(reference: &Reference, interval: &Interval, piece: &Piece, lost: &[u32]) -> bool {
    let event = reference.submitted(piece.request);
    let is_same = |known: &postcrash_core::piece::Piece| (known.event, known.sector) == (event, piece.sector() as u64);
    match interval.pieces.iter().position(is_same) {
        Some(index) => !lost.contains(&(index as u32)),
        None => !interval.absent.contains(&event) && event < interval.instants[0].event,
    }
}

/// The pieces that a state names as lost give its content when they are lost, and the rules allow that.
fn check_lost(reference: &Reference, interval: &Interval, content: Content<'_>, fewest: &mut Fewest) {
    let components = 0..interval.components.len() as u32;
    let first: Vec<_> = components.map(|component| Choice { component, version: 0 }).collect();
    assert!(interval.lost(&first).is_empty(), "the first versions keep all");
    let nothing: Vec<u32> = interval.components.iter().map(|component| component.options().nothing_kept).collect();
    let all: Vec<u32> = (0..interval.pieces.len() as u32).collect();
    for now in interval.instants.iter().map(|instant| instant.event) {
        let pieces = reference.pieces(now);
        let forced = reference.forced(&pieces, now);
        let keeping =
            |lost: &[u32]| pieces.iter().map(|p| is_kept(reference, interval, p, lost)).collect::<Vec<bool>>();
        for (choices, disk) in states(interval, content) {
            if choices.iter().map(|choice| choice.version).eq(nothing.iter().copied()) {
                assert_eq!(disk, Reference::shown(&pieces, &keeping(&all)), "nothing kept but what must be");
            }
            let lost = interval.lost(&choices);
            let kept = keeping(&lost);
            assert_eq!(Reference::shown(&pieces, &kept), disk, "lost pieces {lost:?}");
            assert!(reference.is_in_order(&pieces, &kept, now), "lost pieces {lost:?}");
            if reference.spaces_count(now) == 1 {
                assert_eq!(interval.torn(&lost), Reference::torn(&pieces, &forced, &kept));
            }
            let lost: Vec<usize> = (0..kept.len()).filter(|&i| !kept[i]).collect();
            let known = fewest.entry(now).or_default().entry(disk).or_insert_with(|| lost.clone());
            if lost.len() < known.len() {
                *known = lost;
            }
        }
    }
}

/// Losing fewer pieces does not give the content.
fn check_fewest(reference: &Reference, fewest: &Fewest) {
    for (&now, contents) in fewest {
        let [space] = &reference.spaces(now)[..] else { continue };
        for (disk, lost) in contents {
            let wanted = &space[disk].1;
            assert_eq!(lost.len(), wanted.len(), "fewest losses for {}", common::shown(disk));
            assert!(lost == wanted || reference.model.has_stages(), "losses for {}", common::shown(disk));
        }
    }
}

/// A place that is said to be as in the image is so in all crash states. A place in blocks that no request touched is
/// known to be so.
fn check_image(log: &Log, interval: &Interval, content: Content<'_>) {
    let space = postcrash_core::space::Space { content, interval };
    let states = states(interval, content);
    let touched = |block: usize| log.steps.iter().any(|step| touches(step, block * BLOCK, (block + 1) * BLOCK));
    for (start, end) in (0..SECTORS).flat_map(|start| (start + 1..=SECTORS).map(move |end| (start, end))) {
        let is_image = space.is_image(start as u64, (end - start) as u64);
        if is_image {
            assert!(states.iter().all(|(_, disk)| disk[start..end].iter().all(|&letter| letter == b'.')));
            assert!((start..end).all(|sector| space.open(sector as u64, &|_| None).is_none()));
        } else {
            assert!((start / BLOCK..end.div_ceil(BLOCK)).any(touched), "{start} to {end} are as in the image");
        }
    }
    assert!(space.is_image(u64::MAX, 5), "behind the end of the disk nothing is written");
}

fn touches(step: &Step, start: usize, end: usize) -> bool {
    let Step::Submit(_, request) = step else { return false };
    let (sector, sectors) = match request {
        Request::Write { sector, letters, .. } => (*sector, letters.len()),
        Request::Zero { sector, sectors, .. } => (*sector, *sectors),
        Request::Flush => return false,
    };
    sector < end && start < sector + sectors
}

/// A program that reads sectors and returns what it saw. Which sectors it reads depends on what it has read.
fn read(interval: &Interval, content: Content<'_>, seed: u64, explorer: &mut dyn Explorer) -> Vec<u8> {
    let options = |component: u32| interval.components[component as usize].options();
    let mut seen = Vec::new();
    let mut next = || {
        let mut hasher = DefaultHasher::new();
        (seed, &seen).hash(&mut hasher);
        let sector = hasher.finish() as usize % (SECTORS + 4);
        if sector >= SECTORS {
            return false;
        }
        let mut choose = |component| explorer.choose(component, &|| options(component));
        seen.push(read_letter(interval, content, sector, &mut choose));
        seen.len() < 12
    };
    while next() {}
    seen
}

/// Run the program to the explorer's end. Returns how many crash states each outcome stands for. An outcome whose states
/// are all counted in another interval is left out.
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
        let combinations: BigUint = interval.components.iter().map(|component| component.versions.len()).product();
        assert!(executions <= combinations, "more executions than contents");
        let outcome = read(interval, content, seed, &mut explorer);
        *outcomes.entry(outcome).or_default() += interval.covered(&explorer.choices());
    }
    outcomes.retain(|_, states| *states != BigUint::ZERO);
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
        let mut fewest = Fewest::new();
        RecordedLog::new(&log.steps).each_interval(log.model.name, |interval, content| {
            check_lost(&reference, interval, content, &mut fewest);
            check_marks(&reference, interval);
        });
        check_fewest(&reference, &fewest);
    }

    #[test]
    fn what_is_said_to_be_as_in_the_image_is(log in random_log()) {
        let recorded = RecordedLog::new(&log.steps);
        recorded.each_interval(log.model.name, |interval, content| check_image(&log, interval, content));
    }

    #[test]
    fn lazy_reading_reaches_every_outcome_and_counts_every_state(log in random_log(), seed in any::<u64>()) {
        RecordedLog::new(&log.steps).each_interval(log.model.name, |interval, content| {
            let versions = interval.components.iter().map(|component| component.versions.len() as u32).collect();
            let lazy = outcomes(interval, content, seed, Walk::new(&Limits::default()));
            let brute = outcomes(interval, content, seed, BruteForce::new(versions));
            assert_eq!(lazy.values().sum::<BigUint>(), interval.states());
            assert_eq!(lazy, brute);
        });
    }
}

/// Pairs of models: the second one has every state of the first, at each instant that both judge.
const WIDER: &[(&str, &str)] = &[
    ("through", "cache"),
    ("plp", "torn"),
    ("through", "plp"),
    ("cache", "barrier"),
    ("torn", "barrier:512"),
    ("barrier", "lying"),
    ("barrier:512", "lying:512"),
    ("barrier", "barrier:2048"),
    ("ordered", "barrier"),
];

fn pair_with_log() -> impl Strategy<Value = (&'static str, Log)> {
    prop::sample::select(WIDER).prop_flat_map(|(narrow, wide)| {
        let wide = MODELS.iter().find(|model| model.name == wide).expect("a model");
        (Just(narrow), random_log_on(*wide))
    })
}

fn check_wider(log: &Log, narrow: &str) {
    let recorded = RecordedLog::new(&log.steps);
    let wide = log.model.name;
    let [few, more] = [narrow, wide].map(|model| core_spaces(&recorded, model));
    let both: Vec<_> = few.keys().filter(|event| more.contains_key(event)).collect();
    assert!(both.contains(&&log.steps.len()) || few.is_empty(), "the end of the log is judged");
    for event in both {
        let found = disks(&more[event]);
        for disk in disks(&few[event]) {
            assert!(found.contains(&disk), "{} before step {event}: on {narrow}, not on {wide}", common::shown(&disk));
        }
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_model_has_every_state_of_a_narrower_one((narrow, log) in pair_with_log()) {
        check_wider(&log, narrow);
    }
}
