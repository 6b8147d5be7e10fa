//! Litmus tables of the device models. Each row is a log (see `common`). For each of its crash intervals it has the
//! number of crash states and every disk content that they show. `*n` marks a content that n of them show.

mod common;
#[path = "litmus/drives.rs"]
mod drives;

use std::collections::BTreeMap;

use common::{contents, parse, shown, RecordedLog};
use drives::{BARRIER, PLP, THROUGH};
use num_bigint::BigUint;

struct Row {
    /// What the row shows.
    rule: &'static str,
    log: &'static str,
    intervals: &'static [&'static str],
}

const fn row(rule: &'static str, log: &'static str, intervals: &'static [&'static str]) -> Row {
    Row { rule, log, intervals }
}

const FLUSH: &[Row] = &[
    row("an empty log has one state", "", &["1: .."]),
    row("a completed write may be lost", "w0=A", &["2: .. A."]),
    row("a write that never completed may be kept", "a<w0=A", &["2: .. A."]),
    row("a flush keeps what had completed", "w0=A; w1=B; flush; w0=C", &["4: .. A. .B AB", "2: AB CB"]),
    row("what is submitted after a flush is not covered", "f<flush; w0=A; f>; w1=B", &["4: .. A. .B AB"]),
    row("what completes after a flush's submission is not", "a<w0=A; f<flush; a>; f>; w1=B", &["4: .. A. .B AB"]),
    row("what never completes is not covered either", "a<w0=A; flush; w1=B", &["4: .. A. .B AB"]),
    row("a flush covers nothing before it completes", "w0=A; f<flush; w1=B; f>", &["4: .. A. .B AB", "2: A. AB"]),
    row("a flush that never completes keeps nothing", "w0=A; f<flush; w1=B", &["4: .. A. .B AB"]),
    row("every flush ends an interval", "w0=A; flush; w0=B; flush; w0=C", &["2: .. A.", "2: A. B.", "2: B. C."]),
    row("a flush of nothing new ends none", "w0=A; flush; flush; w1=B", &["2: .. A.", "2: A. AB"]),
    row("the end of the log is a crash", "w0=A; flush", &["2: .. A.", "1: A."]),
    row(
        "of two flushes the later covers what both do",
        "w0=A; f<flush; w1=B; g<flush; g>; f>",
        &["4: .. A. .B AB", "1: AB"],
    ),
    row(
        "of two flushes the earlier covers only its own",
        "w0=A; f<flush; w1=B; g<flush; f>; g>",
        &["4: .. A. .B AB", "2: A. AB", "1: AB"],
    ),
];

const SET_UP: &[Row] = &[
    row("what completed in the set-up is stable", "w0=A; durable; w0=B", &["2: A. B."]),
    row("what had not completed is in flight", "w0=A; a<w1=B; durable; a>; w0=C", &["4: A. AB C. CB"]),
    row("no crash in the set-up is looked at", "w0=A; flush; w0=B+fua; durable", &["1: B."]),
    row("a flush from the set-up keeps what it covers", "w0=A; f<flush; durable; f>; w1=B", &["2: A. AB"]),
];

const FUA: &[Row] = &[
    row("FUA keeps its own write", "w0=A+fua", &["2: .. A.", "1: A."]),
    row("FUA is not a barrier", "w0=A; w1=B+fua", &["4: .. A. .B AB", "2: .B AB"]),
    row("FUA keeps nothing before it completes", "w0=A; b<w1=B+fua", &["4: .. A. .B AB"]),
    row("a later write goes over a stable one", "w0=A+fua; w0=B", &["2: .. A.", "2: A. B."]),
    row("content never runs backwards", "a<w0=A; w0=B+fua; a>", &["4: .. A. B.*2", "2: B.*2"]),
    row(
        "content does not run backwards when the older write is flushed later",
        "a<w0=A; w0=B+fua; a>; flush; w1=C",
        &["4: .. A. B.*2", "2: B.*2", "2: B. BC"],
    ),
    row(
        "an older write shows beside a stable one",
        "a<w.2-5=A; w.4=B+fua; a>",
        &["4: .. [..AAAA..]. [....B...]. [..AABA..].", "2: [....B...]. [..AABA..]."],
    ),
    row(
        "an older write is flushed beside a stable one",
        "a<w.2-5=A; w.4=B+fua; a>; flush",
        &["4: .. [..AAAA..]. [....B...]. [..AABA..].", "2: [....B...]. [..AABA..].", "1: [..AABA..]."],
    ),
    row("a discard does not run backwards either", "d<discard 0; w0=A+fua; d>", &["4: .. 0. A.*2", "2: A.*2"]),
];

const PREFLUSH: &[Row] = &[
    row("PREFLUSH is a flush, then a write", "w0=A; w1=B+pre", &["2: .. A.", "2: A. AB", "2: A. AB"]),
    row("PREFLUSH with FUA keeps its own write", "w0=A; w1=B+pre+fua", &["2: .. A.", "2: A. AB", "1: AB"]),
    row("PREFLUSH alone does not", "w0=A+pre; w1=B", &["4: .. A. .B AB"]),
    row("its flush may be done before it completes", "w0=A; b<w1=B+pre", &["2: .. A.", "2: A. AB"]),
    row("the write before it may be to its own block", "w0=A; w0=B+pre+fua", &["2: .. A.", "2: A. B.", "1: B."]),
    row(
        "what completes after its submission is not covered",
        "a<w0=A; b<w1=B+pre+fua; a>; b>",
        &["4: .. A. .B AB", "2: .B AB"],
    ),
    row("what is submitted after it waits for nothing", "w0=A; b<w1=B+pre; w0=C", &["4: .. A. C.*2", "4: A. AB C. CB"]),
    row(
        "two of them: no flush is done, the first is, both are",
        "w.0=A; b<w.1=B+pre; w.2=C; d<w.3=D+pre",
        &[
            "4: .. [A.......]. [..C.....]. [A.C.....].",
            "4: [A.......]. [AB......]. [A.C.....]. [ABC.....].",
            "4: [A.C.....]. [ABC.....]. [A.CD....]. [ABCD....].",
        ],
    ),
    row(
        "two that flush the same are in flight together",
        "w.0=A; b<w.1=B+pre+fua; c<w.2=C+pre+fua; c>",
        &["2: .. [A.......].", "4: [A.......]. [AB......]. [A.C.....]. [ABC.....].", "2: [A.C.....]. [ABC.....]."],
    ),
];

const PIECES: &[Row] = &[
    row("the blocks of one write are independent", "w.0-15=A", &["4: .. A. .A AA"]),
    row(
        "also where it starts and ends inside them",
        "w.6-9=ABCD",
        &["4: .. [......AB]. .[CD......] [......AB][CD......]"],
    ),
    row("a flush keeps all of its blocks", "w.0-15=A; flush; w0=B", &["4: .. A. .A AA", "2: AA BA"]),
    row("FUA too", "w.0-15=A+fua", &["4: .. A. .A AA", "1: AA"]),
    row(
        "two writes of 512 bytes to one block are independent",
        "w.0=A; w.1=B",
        &["4: .. [A.......]. [.B......]. [AB......]."],
    ),
    row("512 bytes over a block", "w0=A; w.3=B", &["4: .. A. [...B....]. [AAABAAAA]."]),
    row("a block over 512 bytes", "w.3=B; w0=A", &["4: .. [...B....]. A.*2"]),
    row("an overlap shows the later write", "w.0-3=A; w.2-5=B", &["4: .. [AAAA....]. [..BBBB..]. [AABBBB..]."]),
    row("the last kept of three shows", "w0=A; w0=B; w0=C", &["8: .. A. B.*2 C.*4"]),
    row("last by submission, not by completion", "a<w0=A; b<w0=B; b>; a>", &["4: .. A. B.*2"]),
    row("also once it is stable", "a<w0=A; b<w0=B; b>; a>; flush", &["4: .. A. B.*2", "1: B."]),
    row("also where only the later is stable", "a<w0=A; b<w0=B; b>; f<flush; a>; f>", &["4: .. A. B.*2", "2: B.*2"]),
    row("a stable write leaves its neighbours open", "w.0=A+fua; w0=B", &["2: .. [A.......].", "2: [A.......]. B."]),
];

const ZEROES: &[Row] = &[
    row("a discard may be lost", "w0=A; flush; discard 0", &["2: .. A.", "2: A. 0."]),
    row("write-zeroes too", "w0=A; flush; zero 0", &["2: .. A.", "2: A. 0."]),
    row("a flush keeps it", "discard 0; flush; w1=B", &["2: .. 0.", "2: 0. 0B"]),
    row("it stands in submission order", "w0=A; discard 0; w0=B", &["8: .. A. 0.*2 B.*4"]),
    row("it may cover a part of a block", "w0=A; durable; discard .2-3", &["2: A. [AA00AAAA]."]),
    row("it is cut at blocks", "zero .6-9", &["4: .. [......00]. .[00......] [......00][00......]"]),
    row("a discard that never completes may be kept", "d<discard 0; w1=A", &["4: .. 0. .A 0A"]),
];

const MERGED: &[Row] = &[
    row("the same content twice is one content", "w0=A; w0=A", &["4: .. A.*3"]),
    row("the old content written again is no new one", "w0=.", &["2: ..*2"]),
    row("it does not change how others are counted", "w0=.; w1=A", &["4: ..*2 .A*2"]),
    row("zeros written and zeros discarded are the same", "discard 0; w0=0", &["4: .. 0.*3"]),
    row("back to the old content", "w0=A; durable; w0=B; w0=A", &["4: A.*3 B."]),
    row("the same by other ways", "w.0-1=A; w.0=A; w.1=A", &["8: .. [A.......]. [.A......]. [AA......].*5"]),
];

const LYING: &[Row] = &[
    row("a flush does nothing", "w0=A; flush; w1=B", &["4: .. A. .B AB"]),
    row("FUA does nothing", "w0=A+fua; w1=B", &["4: .. A. .B AB"]),
    row("PREFLUSH does nothing", "w0=A; w1=B+pre+fua", &["4: .. A. .B AB"]),
    row("submission order still counts", "a<w0=A; w0=B+fua; a>", &["4: .. A. B.*2"]),
    row("the set-up is stable all the same", "w0=A; durable; flush; w1=B", &["2: A. AB"]),
];

const LYING_HALVES: &[Row] =
    &[row("a unit of 2 KiB, and still no FUA", "w.3-4=A+fua", &["4: .. [...A....]. [....A...]. [...AA...]."])];

const TORN: &[Row] = &[
    row("a block tears between sectors", "w.0-1=A", &["4: .. [A.......]. [.A......]. [AA......]."]),
    row(
        "an overlap tears too",
        "w.0-1=A; w.1-2=B",
        &["16: .. [A.......]. [.A......]. [AA......]. [.B......].*2 [AB......].*2 \
           [..B.....]. [A.B.....]. [.AB.....]. [AAB.....]. [.BB.....].*2 [ABB.....].*2"],
    ),
    row("a discard tears", "w.0-1=A; durable; discard .0-1", &["4: [AA......]. [0A......]. [A0......]. [00......]."]),
    row(
        "a flush keeps every sector",
        "w.0-1=A; flush; w.0=B",
        &["4: .. [A.......]. [.A......]. [AA......].", "2: [AA......]. [BA......]."],
    ),
    row("FUA too", "w.0-1=A+fua", &["4: .. [A.......]. [.A......]. [AA......].", "1: [AA......]."]),
    row(
        "PREFLUSH is a flush, then a write that tears",
        "w.0=A; w.1-2=B+pre+fua",
        &["2: .. [A.......].", "4: [A.......]. [AB......]. [A.B.....]. [ABB.....].", "1: [ABB.....]."],
    ),
    row(
        "no sector runs backwards",
        "a<w.0-1=A; w.1=B+fua; a>",
        &["8: .. [A.......]. [.A......]. [AA......]. [.B......].*2 [AB......].*2", "4: [.B......].*2 [AB......].*2"],
    ),
    row(
        "a write that never completed may be kept in part",
        "a<w.0-1=A",
        &["4: .. [A.......]. [.A......]. [AA......]."],
    ),
];

const TWO_BLOCKS: &[Row] = &[
    row("a unit of two blocks persists whole", "w.0-15=A", &["2: .. AA"]),
    row("also what starts inside of it", "w.6-9=ABCD", &["2: .. [......AB][CD......]"]),
    row("two writes to one unit are independent", "w0=A; w1=B", &["4: .. A. .B AB"]),
    row("a discard is whole too", "w.0-15=A; durable; discard .7-8", &["2: AA [AAAAAAA0][0AAAAAAA]"]),
    row("content never runs backwards", "a<w.0-15=A; w0=B+fua; a>", &["4: .. AA B. BA", "2: B. BA"]),
];

const HALF_A_BLOCK: &[Row] = &[
    row("a block is two units", "w0=A", &["4: .. [AAAA....]. [....AAAA]. A."]),
    row("they end at multiples of 2 KiB", "w.2-5=A", &["4: .. [..AA....]. [....AA..]. [..AAAA..]."]),
    row("no unit is cut", "w.4-7=A", &["2: .. [....AAAA]."]),
];

const ORDERED: &[Row] = &[
    row("a crash keeps a prefix of the writes", "w0=A; w1=B; w0=C", &["4: .. A. AB CB"]),
    row("in the order of submission, not of completion", "a<w0=A; b<w1=B; b>; a>", &["3: .. A. AB"]),
    row("a write that never completed is kept if a later one is", "a<w0=A; w1=B", &["3: .. A. AB"]),
    row("a write is kept from its first sector on", "w.0-15=A", &["3: .. A. AA"]),
    row("a flush keeps what had completed", "w0=A; flush; w1=B", &["2: .. A.", "2: A. AB"]),
    row("it does not keep what completes after its submission", "a<w0=A; f<flush; a>; f>; w1=B", &["3: .. A. AB"]),
    row(
        "a flush keeps all that was submitted before the last write that it covers",
        "a<w0=A; w1=B; flush; w0=C",
        &["3: .. A. AB", "2: AB CB"],
    ),
    row("a flush that keeps nothing new ends none", "a<w0=A; w1=B; flush; a>; flush", &["3: .. A. AB", "1: AB"]),
    row("FUA keeps its own write and all before", "w0=A; w1=B+fua; w0=C", &["3: .. A. AB", "2: AB CB"]),
    row("none behind it", "w0=A; b<w1=B+fua; w0=C; b>", &["4: .. A. AB CB", "2: AB CB"]),
    row("PREFLUSH comes behind what it covers", "w0=A; b<w1=B+pre", &["3: .. A. AB"]),
    row("and keeps it", "w0=A; w1=B+pre", &["3: .. A. AB", "2: A. AB"]),
    row("with FUA its own write too", "w0=A; w1=B+pre+fua", &["3: .. A. AB", "1: AB"]),
    row("a discard stands in its place", "w0=A; discard 0; w0=B", &["4: .. A. 0. B."]),
    row("content never runs backwards", "a<w0=A; w0=B+fua; a>", &["3: .. A. B.", "1: B."]),
    row("512 bytes over a block", "w0=A; w.3=B", &["3: .. A. [AAABAAAA]."]),
    row("the same content twice is one content", "w0=A; w0=A", &["3: .. A.*2"]),
    row("also with other content in between", "w0=A; durable; w0=B; w0=A; w1=C", &["4: A.*2 B. AC"]),
    row("the same on one block is not the same disk", "w0=A; w1=B; w0=.; w1=.", &["5: ..*2 A. AB .B"]),
    row("what the set-up left under way is in flight", "w0=A; a<w1=B; durable; a>; w0=C", &["3: A. AB CB"]),
    row("unless it stands before what is stable", "a<w0=A; w1=B; durable", &["1: AB"]),
];

const ORDERED_SECTORS: &[Row] = &[row(
    "a block is kept from its first sector on",
    "w.0-1=A; w.3=B",
    &["4: .. [A.......]. [AA......]. [AA.B....]."],
)];

const PREFIX: &[Row] = &[
    row("a crash keeps a prefix of the log", "w0=A; w1=B; w0=C", &["4: .. A. AB CB"]),
    row("in the order of completion, not of submission", "a<w0=A; b<w1=B; b>; a>", &["3: .. .B AB"]),
    row("what never completed is in no log", "a<w0=A; w1=B", &["2: .. .B"]),
    row("an entry is never cut", "w.0-15=A", &["2: .. AA"]),
    row("what completed last shows, even if it is older", "a<w0=A; w0=B; a>", &["3: .. B. A."]),
    row("it also shows once it is stable", "a<w0=A; w0=B; a>; flush; w1=C", &["3: .. B. A.", "2: A. AC"]),
    row("a flush keeps what had completed", "w0=A; flush; w1=B", &["2: .. A.", "2: A. AB"]),
    row(
        "a flush does not keep what completes after its submission",
        "w0=A; f<flush; w1=B; f>; w0=C",
        &["3: .. A. AB", "3: A. AB CB"],
    ),
    row("FUA keeps all that had completed", "w0=A; w1=B+fua; w0=C", &["2: .. A.", "2: AB CB"]),
    row("FUA does not keep what had not", "a<w0=A; w1=B+fua; a>", &["1: ..", "2: .B AB"]),
    row("PREFLUSH is a flush", "w0=A; w1=B+pre", &["2: .. A.", "2: A. AB"]),
    row("with FUA it keeps its own write", "w0=A; w1=B+pre+fua", &["2: .. A.", "1: AB"]),
    row("a discard is an entry", "w0=A; discard .0-8", &["3: .. A. 0[0.......]"]),
    row("the same content twice is one content", "w0=A; w1=B; w1=.; w1=B", &["5: .. A.*2 AB*2"]),
    row("what the set-up left under way is in flight", "w0=A; a<w1=B; durable; a>; w0=C", &["3: A. AB CB"]),
    row("also if it was submitted first", "a<w0=A; w1=B; durable; a>", &["2: .B AB"]),
];

/// An interval as the tables write it: the number of states, and for each content how many states show it.
type Expected = (BigUint, BTreeMap<String, BigUint>);

fn expected(text: &str) -> Expected {
    let number = |text: &str| text.parse::<BigUint>().expect(text);
    let (states, contents) = text.split_once(": ").expect(text);
    let content = |word: &str| {
        let (disk, weight) = word.split_once('*').unwrap_or((word, "1"));
        (disk.to_owned(), number(weight))
    };
    (number(states), contents.split(' ').map(content).collect())
}

fn found(log: &str, model: &str) -> Vec<Expected> {
    let mut intervals = Vec::new();
    RecordedLog::new(&parse(log)).each_interval(model, |interval, content| {
        let contents = contents(interval, content).into_iter().map(|(disk, weight)| (shown(&disk), weight));
        intervals.push((interval.states(), contents.collect()));
    });
    intervals
}

fn check(rows: &[Row], model: &str) {
    for Row { rule, log, intervals } in rows {
        let wanted: Vec<Expected> = intervals.iter().map(|text| expected(text)).collect();
        for (states, contents) in &wanted {
            assert_eq!(states, &contents.values().sum(), "the row does not add up: {rule}");
        }
        assert_eq!(found(log, model), wanted, "{rule}: {log} on {model}");
    }
}

#[test]
fn a_flush_makes_stable_what_had_completed_when_it_was_submitted() {
    check(FLUSH, "cache");
}

#[test]
fn the_set_up_is_stable() {
    check(SET_UP, "cache");
}

#[test]
fn fua_makes_stable_its_own_write_and_nothing_else() {
    check(FUA, "cache");
}

#[test]
fn preflush_is_a_flush_and_then_a_write() {
    check(PREFLUSH, "cache");
}

#[test]
fn pieces_are_kept_or_lost_one_by_one() {
    check(PIECES, "cache");
}

#[test]
fn discard_and_write_zeroes_are_in_flight_like_writes() {
    check(ZEROES, "cache");
}

#[test]
fn equal_contents_are_one_version_that_counts_for_all() {
    check(MERGED, "cache");
}

#[test]
fn a_lying_drive_makes_nothing_stable() {
    check(LYING, "lying");
    check(LYING_HALVES, "lying:2048");
}

#[test]
fn a_torn_write_leaves_any_of_its_sectors() {
    check(TORN, "torn");
    check(TORN, "cache:512");
}

#[test]
fn the_atomic_unit_persists_whole_or_not_at_all() {
    check(PIECES, "cache:4096");
    check(TWO_BLOCKS, "cache:8192");
    check(HALF_A_BLOCK, "cache:2048");
}

#[test]
fn an_ordered_drive_keeps_a_prefix_of_what_was_submitted() {
    check(ORDERED, "ordered");
    check(ORDERED_SECTORS, "ordered:512");
}

#[test]
fn a_replayed_log_is_a_prefix_of_what_was_completed() {
    check(PREFIX, "prefix");
}

#[test]
fn a_drive_that_writes_through_loses_only_what_is_under_way() {
    check(THROUGH, "through");
    check(PLP, "plp");
}

#[test]
fn a_barrier_orders_and_does_not_persist() {
    check(BARRIER, "barrier");
}

#[test]
fn the_blocks_of_one_torn_write_count_as_sectors() {
    RecordedLog::new(&parse("w.0-15=A")).each_interval("torn", |interval, _| {
        assert_eq!(interval.components.len(), 16);
        assert_eq!((interval.states(), interval.contents()), (BigUint::from(1u32 << 16), BigUint::from(1u32 << 16)));
    });
}

#[test]
fn a_prefix_may_be_as_long_as_the_recording() {
    let letters = |i: usize| [b'A' + (i % 26) as u8, b'A' + (i / 26 % 26) as u8, b'A' + (i / 676) as u8];
    let write = |i: usize| format!("w.{}-{}={}", i % 8, i % 8 + 2, String::from_utf8_lossy(&letters(i)));
    let log: Vec<String> = (0..6000).map(write).collect();
    for model in ["ordered:2048", "prefix"] {
        RecordedLog::new(&parse(&log.join("; "))).each_interval(model, |interval, content| {
            assert!(interval.too_large.is_none() && interval.components.len() == 1);
            assert_eq!(interval.states(), BigUint::from(interval.pieces.len() + 1));
            assert_eq!(contents(interval, content).values().sum::<BigUint>(), interval.states());
        });
    }
}

#[test]
fn an_interval_says_at_which_instants_a_crash_finds_it() {
    let log = "start; w0=A; return; start; w1=B; f<flush; f>; return; start; return; start; w0=C";
    let mut found = Vec::new();
    RecordedLog::new(&parse(log)).each_interval("cache", |interval, _| {
        let instants = interval.instants.iter().map(|instant| (instant.event, instant.started, instant.returned));
        found.push((interval.index, interval.pieces.len(), instants.collect::<Vec<_>>()));
    });
    let expected = [
        (0, 0, vec![(1, 0, 0)]),
        (1, 1, vec![(4, 1, 0), (5, 1, 1)]),
        (2, 2, vec![(9, 2, 1)]),
        (3, 0, vec![(10, 2, 1), (11, 2, 2), (12, 3, 2), (13, 3, 3)]),
        (4, 1, vec![(16, 4, 3)]),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_stage_that_can_grow_no_more_is_handed_out_once_for_all_its_instants() {
    let log = "start; w0=A; flush; return; start; w1=B; flush; return; start; w0=C; return";
    let mut found = Vec::new();
    RecordedLog::new(&parse(log)).each_interval("barrier", |interval, _| {
        let instants = interval.instants.iter().map(|instant| (instant.event, instant.started, instant.returned));
        let written = interval.pieces.iter().map(|piece| piece.event).collect::<Vec<_>>();
        found.push((written, interval.absent.clone(), interval.states(), instants.collect::<Vec<_>>()));
    });
    let before = vec![(1, 0, 0)];
    let [first, second, third] =
        [vec![(6, 1, 0), (7, 1, 1)], vec![(12, 2, 1), (13, 2, 2)], vec![(16, 3, 2), (17, 3, 3)]];
    let one = || BigUint::from(1u32);
    let expected = [
        (vec![], vec![], one(), before),
        (vec![2], vec![], one() + 1u32, first),
        (vec![2], vec![8], one(), [&second[..], &third].concat()),
        (vec![8], vec![], one() + 1u32, second),
        (vec![8], vec![14], one(), third.clone()),
        (vec![14], vec![], one() + 1u32, third),
    ];
    assert_eq!(found, expected);
}

#[test]
fn many_epochs_have_few_intervals() {
    const EPOCHS: usize = 300;
    let letter = |i: usize| (b'A' + (i % 26) as u8) as char;
    let epoch = |i: usize| format!("start; w.{}={}; flush; return", i % 16, letter(i));
    let log: Vec<String> = (0..EPOCHS).map(epoch).collect();
    let (mut intervals, mut pieces) = (0, 0);
    let mut at: BTreeMap<u32, BigUint> = BTreeMap::new();
    RecordedLog::new(&parse(&log.join("; "))).each_interval("barrier", |interval, _| {
        intervals += 1;
        pieces += interval.pieces.len();
        let instants = interval.instants.iter().filter(|instant| instant.started > instant.returned);
        instants.for_each(|instant| *at.entry(instant.started).or_default() += interval.states());
    });
    assert_eq!((intervals, pieces), (2 * EPOCHS, 2 * EPOCHS - 1));
    assert!((1..=EPOCHS as u32).all(|writes| at[&writes] == BigUint::from(writes + 1)), "one for each prefix");
}

#[test]
fn a_log_without_the_end_of_the_set_up_has_no_interval() {
    let steps = &parse("w0=A; flush; w1=B")[1..];
    RecordedLog::new(steps).each_interval("cache", |interval, _| panic!("interval {}", interval.index));
}

#[test]
fn more_contents_than_can_be_listed_are_reported() {
    let twice: String = (0..8).flat_map(|s| ["A", "B"].map(|letter| format!("; w.{s}={letter}"))).collect();
    let mut reasons = Vec::new();
    RecordedLog::new(&parse(&format!("w0=Z{twice}"))).each_interval("cache", |interval, _| {
        assert_eq!(interval.states(), BigUint::from(1u32 << 17));
        reasons.extend(interval.too_large.as_ref().map(ToString::to_string));
    });
    assert_eq!(reasons, ["17 overlapping writes at sector 0 leave more than 4096 contents"]);
}
