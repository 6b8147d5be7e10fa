//! What each log means, and what each recording becomes.

mod common;

use common::{events_of, exported, folder, log_of, record, words_of, Files};
use postcrash_dm_log_writes::{ExportSummary, LogItem, LogMark};

/// A log, and the recording that it must become.
const IMPORTS: &[(&str, &str)] = &[
    ("", "durable"),
    ("w3=AB", "durable 0<w3=AB 0>"),
    ("w3=A w3=B f w4=C", "durable 0<w3=A 0> 1<w3=B 1> 2<f 2> 3<w4=C 3>"),
    ("f f", "durable 0<f 0> 1<f 1>"),
    ("w1=A+fua", "durable 0<w1=A+fua 0>"),
    ("d8-15 w9=A", "durable 0<d8-15 0> 1<w9=A 1>"),
    ("w1=A+meta f+meta", "durable 0<w1=A 0> 1<f 1>"),
    // The kernel never logs these two, because device mapper takes such requests apart, but the format has them.
    ("w1=A w2=B+flush", "durable 0<w1=A 0> 1<f 1> 2<w2=B 2>"),
    ("w1=A w2=B+flush+fua", "durable 0<w1=A 0> 1<f 1> 2<w2=B+fua 2>"),
    ("f+fua", "durable 0<f 0>"),
    ("m:a w1=A m:b", "durable 0<w1=A 0>"),
];

#[test]
fn each_log_means_what_it_should() {
    for (log, expected) in IMPORTS {
        let recording = Files::new(&log_of(log, 512)).import().expect(log);
        assert_eq!(&events_of(&recording), expected, "{log}");
    }
}

/// A recording, the log that it must become, and the summary of the export: (unfinished, overtaken, FUA behind a
/// flush).
const EXPORTS: &[(&str, &str, (u64, u64, u64))] = &[
    ("durable", "", (0, 0, 0)),
    ("durable 0<w1=A 0> 1<f 1>", "w1=A f", (0, 0, 0)),
    ("durable 0<w1=A 1<w2=B 1> 0>", "w2=B w1=A", (0, 0, 0)),
    ("durable 0<w1=A 0> 1<w2=B+fua 1>", "w1=A w2=B+fua", (0, 0, 0)),
    // The flush covers what had completed when it was submitted. Nothing else stands before it.
    ("durable 0<w1=A 0> 1<w2=B 2<f 1> 2>", "w1=A f w2=B", (0, 0, 0)),
    ("durable 0<f 1<w1=A 1> 2<f 3<w2=B 3> 2> 0>", "w1=A f f w2=B", (0, 0, 0)),
    ("durable 0<f 1<w1=A 1> 2<f 0> 2>", "f w1=A f", (0, 0, 0)),
    ("durable 0<f 1<w1=A+fua 1> 0>", "f w1=A+fua", (0, 0, 1)),
    ("durable 0<f 1<w1=A 1>", "w1=A", (0, 0, 0)),
    // A PREFLUSH write is a flush, then a write.
    ("durable 0<w1=A 0> 1<w2=B+pre 2<w3=C 2> 1>", "w1=A f w3=C w2=B", (0, 0, 0)),
    ("durable 0<w1=A 0> 1<w2=B+pre+fua 1>", "w1=A f w2=B+fua", (0, 0, 0)),
    // `durable` makes stable what no flush had covered, so the log has a flush there.
    ("0<w1=A 0> durable 1<w2=B 1>", "w1=A f w2=B", (0, 0, 0)),
    ("0<w1=A 0> 1<f 1> durable", "w1=A f", (0, 0, 0)),
    ("0<f 1<w1=A 1> durable 0>", "w1=A f f", (0, 0, 0)),
    ("durable 0<d8-15 0> 1<z16-17 1>", "d8-15 w16=00", (0, 0, 0)),
    ("durable 0<w1=A 1<w2=B 1>", "w2=B", (1, 0, 0)),
    ("durable 0<w1=AA 1<w2=B 1> 0>", "w2=B w1=AA", (0, 1, 0)),
    ("durable 0<w1=AA 1<w3=B 1> 0>", "w3=B w1=AA", (0, 0, 0)),
    ("durable 0<w1=A 1<w1=B 0> 1>", "w1=A w1=B", (0, 0, 0)),
];

#[test]
fn each_recording_becomes_the_log_that_it_should() {
    for (events, expected, (unfinished, overtaken, fua_behind_flush)) in EXPORTS {
        let folder = folder();
        let recording = record(&folder.path().join("log.pcr"), events);
        let (log, said) = exported(&recording, &[]);
        assert_eq!(&words_of(&log), expected, "{events}");
        let entries = expected.split_whitespace().count() as u64;
        let (unfinished, overtaken, fua_behind_flush) = (*unfinished, *overtaken, *fua_behind_flush);
        assert_eq!(said, ExportSummary { entries, unfinished, overtaken, fua_behind_flush }, "{events}");
    }
}

#[test]
fn a_summary_counts_what_is_there() {
    let files = Files::new(&log_of("m:start w1=A+fua+meta w2=BC m:middle w8=D f d0-15 m:end", 512));
    let summary = files.scan().expect("a sound log");
    let mark = |text: &str, event| LogMark { text: text.to_owned(), event };
    assert_eq!(summary.marks, [mark("start", 1), mark("middle", 5), mark("end", 11)]);
    assert_eq!((summary.entries, summary.log_sector_bytes), (8, 512));
    assert_eq!((summary.writes, summary.fua_writes, summary.flushes, summary.discards), (3, 1, 1, 1));
    assert_eq!((summary.metadata_flags, summary.marks_left_out, summary.padded_writes), (1, 0, 0));
    // Intervals end at the FUA write (one piece), at the flush (two) and at the end (two blocks discarded).
    assert_eq!((summary.interval_pieces, summary.interval_pieces_max), (5, 2));
    assert!(!summary.goes_on);
    let recording = files.import().expect("a sound log");
    assert_eq!(recording.events().len() as u64, 11);
}

#[test]
fn a_flush_keeps_the_fua_that_it_was_cut_off() {
    let files = Files::new(&log_of("w1=A f+fua w2=B+fua f w3=C f+fua", 512));
    let mut entries = files.entries();
    entries.retain(|(logged, _)| *logged == LogItem::Flush { fua: true });
    assert_eq!(entries.iter().map(|(_, events)| *events).collect::<Vec<_>>(), [3, 11]);
    assert_eq!(events_of(&files.import().expect("a sound log")).matches("<f").count(), 3);
}

#[test]
fn log_sectors_may_be_larger() {
    for sector_bytes in [1024, 4096] {
        let log = log_of("w1=A m:mark d2-3 f w4=B+fua", sector_bytes);
        let recording = Files::new(&log).import().expect("a sound log");
        let ratio = sector_bytes / 512;
        let (letters, fua) = ("A".repeat(ratio), "B".repeat(ratio));
        let discard = format!("1<d{}-{}", 2 * ratio, 4 * ratio - 1);
        let expected = format!("durable 0<w{ratio}={letters} 0> {discard} 1> 2<f 2> 3<w{}={fua}+fua 3>", 4 * ratio);
        assert_eq!(events_of(&recording), expected);
    }
}

#[test]
fn a_stale_superblock_shows() {
    let mut log = log_of("w1=A f w2=B", 512);
    log[16] = 2;
    let files = Files::new(&log);
    assert!(files.scan().expect("a sound log").goes_on);
    assert_eq!(events_of(&files.import().expect("a sound log")), "durable 0<w1=A 0> 1<f 1>");
    log.truncate(4 * 512);
    assert!(!Files::new(&log).scan().expect("a sound log").goes_on);
    log.extend([0; 4096]);
    assert!(!Files::new(&log).scan().expect("a sound log").goes_on);
}

#[test]
fn marks_are_cut_where_a_letter_ends() {
    let folder = folder();
    let recording = record(&folder.path().join("log.pcr"), "durable");
    let (log, _) = exported(&recording, &[(0, "ü".repeat(300)), (1, "short".to_owned())]);
    assert_eq!(words_of(&log), format!("m:{} m:short", "ü".repeat(239)));
}

#[test]
fn marks_that_are_no_text_are_escaped_and_their_number_is_limited() {
    let entry = |text: &[u8]| common::entry(0, 0, 8, text, &[], 512);
    let log = [common::superblock(2, 512), entry(b"\xff\n"), entry("\u{e4}".as_bytes())].concat();
    let marks = Files::new(&log).scan().expect("a sound log").marks;
    assert_eq!(marks.iter().map(|mark| mark.text.as_str()).collect::<Vec<_>>(), ["\\xff\\n", "\u{e4}"]);
    let many = [common::superblock(10_000, 512), entry(&[b'x'; 480]).repeat(10_000)].concat();
    let summary = Files::new(&many).scan().expect("a sound log");
    assert_eq!(summary.marks.len() as u64 + summary.marks_left_out, 10_000);
    assert_eq!(summary.marks.len(), (4 << 20) / (480 + 48));
}
