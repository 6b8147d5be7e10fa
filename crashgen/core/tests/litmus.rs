//! Litmus tables of the device model: one row is a log (see `common`), and for each of its crash intervals the number of
//! crash states and every disk content that they show, `*n` for one that n of them show.

mod common;

use std::collections::BTreeMap;

use common::{contents, parse, shown, Recorded};
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
    row("nor what never completes", "a<w0=A; flush; w1=B", &["4: .. A. .B AB"]),
    row("a flush covers nothing before it completes", "w0=A; f<flush; w1=B; f>", &["4: .. A. .B AB", "2: A. AB"]),
    row("a flush that never completes keeps nothing", "w0=A; f<flush; w1=B", &["4: .. A. .B AB"]),
    row("every flush ends an interval", "w0=A; flush; w0=B; flush; w0=C", &["2: .. A.", "2: A. B.", "2: B. C."]),
    row("but not one of nothing new", "w0=A; flush; flush; w1=B", &["2: .. A.", "2: A. AB"]),
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
    row("what did not is in flight", "w0=A; a<w1=B; durable; a>; w0=C", &["4: A. AB C. CB"]),
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
        "not even when the older write is flushed later",
        "a<w0=A; w0=B+fua; a>; flush; w1=C",
        &["4: .. A. B.*2", "2: B.*2", "2: B. BC"],
    ),
    row(
        "an older write shows beside a stable one",
        "a<w.2-5=A; w.4=B+fua; a>",
        &["4: .. [..AAAA..]. [....B...]. [..AABA..].", "2: [....B...]. [..AABA..]."],
    ),
    row(
        "and is flushed beside it",
        "a<w.2-5=A; w.4=B+fua; a>; flush",
        &["4: .. [..AAAA..]. [....B...]. [..AABA..].", "2: [....B...]. [..AABA..].", "1: [..AABA..]."],
    ),
    row("a discard does not run backwards either", "d<discard 0; w0=A+fua; d>", &["4: .. 0. A.*2", "2: A.*2"]),
];

const PREFLUSH: &[Row] = &[
    row("PREFLUSH is a flush, then a write", "w0=A; w1=B+pre", &["2: .. A.", "2: A. AB", "2: A. AB"]),
    row("with FUA it keeps its own write", "w0=A; w1=B+pre+fua", &["2: .. A.", "2: A. AB", "1: AB"]),
    row("alone it does not", "w0=A+pre; w1=B", &["4: .. A. .B AB"]),
    row("its flush may be done before it completes", "w0=A; b<w1=B+pre", &["2: .. A.", "2: A. AB"]),
    row("the write before it may be its own block's", "w0=A; w0=B+pre+fua", &["2: .. A.", "2: A. B.", "1: B."]),
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
    row("what was there already is none", "w0=.", &["2: ..*2"]),
    row("and leaves the others' count", "w0=.; w1=A", &["4: ..*2 .A*2"]),
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

/// An interval as the tables write it: number of states, and contents with how many states show each.
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
    Recorded::new(&parse(log)).each_interval(model, |interval, content| {
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
}

#[test]
fn an_interval_says_where_it_ends_and_which_operations_had_returned() {
    let log = "start; w0=A; return; start; w1=B; f<flush; f>; return; start; w0=C";
    let mut marks = Vec::new();
    Recorded::new(&parse(log)).each_interval("cache", |interval, _| {
        marks.push((interval.index, interval.event, interval.started, interval.returned));
    });
    assert_eq!(marks, [(0, 9, 2, 1), (1, 14, 3, 2)]);
}

#[test]
fn a_log_without_the_end_of_the_set_up_has_no_interval() {
    let steps = &parse("w0=A; flush; w1=B")[1..];
    Recorded::new(steps).each_interval("cache", |interval, _| panic!("interval {}", interval.index));
}

#[test]
fn more_contents_than_can_be_listed_are_reported() {
    let twice: String = (0..8).flat_map(|s| ["A", "B"].map(|letter| format!("; w.{s}={letter}"))).collect();
    let mut reasons = Vec::new();
    Recorded::new(&parse(&format!("w0=Z{twice}"))).each_interval("cache", |interval, _| {
        assert_eq!(interval.states(), BigUint::from(1u32 << 17));
        reasons.extend(interval.too_large.as_ref().map(ToString::to_string));
    });
    assert_eq!(reasons, ["17 overlapping writes at sector 0 leave more than 4096 contents"]);
}
