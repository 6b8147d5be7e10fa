//! Logs that are cut short, changed, or made to do harm. Each gives one error, leaves nothing behind and takes no more
//! memory than the log needs.

mod common;

use common::{entry, events_of, exported, folder, log_of, record, superblock, words_of, Files};
use postcrash_core::recording::{Event, Recording};
use postcrash_dm_log_writes::{export, import, scan, LogError};
use proptest::prelude::*;

fn said(log: &[u8]) -> String {
    let files = Files::new(log);
    let import = files.import().err().expect("import must refuse").to_string();
    assert_eq!(files.scan().expect_err("scan must refuse").to_string(), import);
    import.split_once(": ").expect("the path stands in front").1.to_owned()
}

fn one_entry(sector: u64, sectors: u64, flags: u64, text_bytes: u64) -> Vec<u8> {
    let mut log = [superblock(1, 512), entry(sector, sectors, flags, &[], &[], 512)].concat();
    log[512 + 24..512 + 32].copy_from_slice(&text_bytes.to_le_bytes());
    log
}

#[test]
fn errors_say_what_and_where() {
    let mut magic = log_of("f", 512);
    magic[0] = 0;
    let mut version = log_of("f", 512);
    version[8] = 2;
    let sized = |bytes: u32| [&superblock(0, 512)[..24], &bytes.to_le_bytes()].concat();
    let second = [superblock(2, 512), entry(0, 0, 1, &[], &[], 512), entry(0, 0, 32, &[], &[], 512)].concat();
    let cases: &[(Vec<u8>, &str)] = &[
        (vec![1; 27], "27 bytes cannot hold a superblock (byte 0)"),
        (vec![0; 512], "its superblock was never written (the kernel writes it at a FUA write or a mark, QEMU at a flush) (byte 0)"),
        (magic, "it starts with 0x6a736677736800 instead of 0x6a736677736872 (byte 0)"),
        (version, "version 2 is unknown, it must be 1 (byte 0)"),
        (sized(0), "log sectors of 0 bytes (byte 0)"),
        (sized(256), "log sectors of 256 bytes (byte 0)"),
        (sized(1536), "log sectors of 1536 bytes (byte 0)"),
        (sized(1 << 24), "log sectors of 16777216 bytes (byte 0)"),
        (one_entry(0, 0, 0, 0), "entry 0 of 1: it is empty (byte 512)"),
        (one_entry(0, 0, 2, 0), "entry 0 of 1: it is empty (byte 512)"),
        (one_entry(0, 0, 4, 0), "entry 0 of 1: it is empty (byte 512)"),
        (second, "entry 1 of 2: unknown flags 0x20 (byte 1024)"),
        (one_entry(0, 1, 4 | 2, 0), "entry 0 of 1: flags 0x6 contradict each other (byte 512)"),
        (one_entry(0, 0, 8 | 1, 0), "entry 0 of 1: flags 0x9 contradict each other (byte 512)"),
        (one_entry(0, 1, 8, 0), "entry 0 of 1: a mark with 1 sectors of data (byte 512)"),
        (one_entry(0, 0, 8, 481), "entry 0 of 1: a mark of 481 bytes, there is room for 480 (byte 512)"),
        (one_entry(0, 0, 8, u64::MAX), "entry 0 of 1: a mark of 18446744073709551615 bytes, there is room for 480 (byte 512)"),
        (one_entry(64, 1, 4, 0), "entry 0 of 1: 1 sectors of 512 bytes from sector 64 do not fit on a disk of 32768 bytes (byte 512)"),
        (one_entry(u64::MAX, 2, 0, 0), "entry 0 of 1: 2 sectors of 512 bytes from sector 18446744073709551615 do not fit on a disk of 32768 bytes (byte 512)"),
        (one_entry(0, u64::MAX, 0, 0), "entry 0 of 1: 18446744073709551615 sectors of 512 bytes from sector 0 do not fit on a disk of 32768 bytes (byte 512)"),
        (one_entry(0, 2, 0, 0), "entry 0 of 1: the log ends too early: 1024 bytes are needed from byte 1024 on, 0 are there (byte 512)"),
        (superblock(u64::MAX, 512), "entry 0 of 18446744073709551615: the log ends too early: 512 bytes are needed from byte 512 on, 0 are there (byte 512)"),
    ];
    for (log, expected) in cases {
        assert_eq!(said(log), format!("not a log of dm-log-writes: {expected}"));
    }
}

#[test]
fn a_log_that_is_cut_short_anywhere_is_refused() {
    let log = log_of("w1=AB m:mark d2-3 f w4=C+fua", 512);
    for length in 0..log.len() {
        let reason = said(&log[..length]);
        assert!(reason.contains("(byte "), "{length}: {reason}");
    }
}

#[test]
fn what_is_no_file_is_refused() {
    let folder = folder();
    let out = folder.path().join("out");
    for (place, expected) in [
        (folder.path().to_owned(), "it is neither a file nor a block device"),
        ("/dev/zero".into(), "it is neither a file nor a block device"),
        (folder.path().join("absent"), "No such file or directory (os error 2)"),
    ] {
        let error = scan(&place, 64, &mut || true).expect_err("scan must refuse");
        assert_eq!(error.to_string(), format!("{}: {expected}", place.display()));
        assert!(import(&place, 64, &out, "{}", &mut || true).is_err());
    }
    let recording = record(&folder.path().join("log.pcr"), "durable");
    let error = export(&recording, folder.path(), &[], &mut || true).expect_err("export must refuse").to_string();
    assert!(error.ends_with("it is there already and is not a file"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    let files = Files::new(&log_of("w1=A f w2=B", 512));
    let mut left = 2;
    let mut twice = || {
        left -= 1;
        left >= 0
    };
    let result = import(&files.log, 64, &files.recording, "{}", &mut twice);
    assert!(matches!(result, Err(LogError::Interrupted)));
    assert!(matches!(scan(&files.log, 64, &mut || false), Err(LogError::Interrupted)));
    let recording = files.import().expect("a sound log");
    let out = files.log.with_file_name("out");
    assert!(matches!(export(&recording, &out, &[], &mut || false), Err(LogError::Interrupted)));
    let entries = std::fs::read_dir(out.parent().expect("a folder")).expect("a folder").count();
    assert_eq!(entries, 2);
}

#[test]
fn a_large_write_is_recorded_in_parts_and_its_zeros_as_such() {
    const SECTORS: u64 = 20_000;
    let mut data = vec![0; SECTORS as usize * 512];
    data[0] = b'A';
    let log = [superblock(1, 512), entry(3, SECTORS, 0, &[], &data, 512)].concat();
    let files = Files::new(&log);
    import(&files.log, 1 << 20, &files.recording, "{}", &mut || true).expect("a sound log");
    let recording = Recording::open(&files.recording).expect("a recording just written");
    let shown: Vec<String> = events_of(&recording).split(' ').map(|word| word.chars().take(12).collect()).collect();
    assert_eq!(shown, ["durable", "0<w3=A000000", "1<z8192-1638", "2<z16384-200", "0>", "1>", "2>"]);
    let (log, _) = exported(&recording, &[]);
    assert_eq!(words_of(&log).matches('w').count(), 3);
}

/// Words of an entry that a log may hold and that an export writes alike.
fn word() -> impl Strategy<Value = String> {
    let place = (0..60u64, 1..4u64);
    prop_oneof![
        (place.clone(), "[A-Z]{1,4}", any::<bool>())
            .prop_map(|((sector, _), letters, fua)| format!("w{sector}={letters}{}", if fua { "+fua" } else { "" })),
        place.prop_map(|(sector, sectors)| format!("d{sector}-{}", sector + sectors - 1)),
        Just("f".to_owned()),
        "[a-z]{0,9}".prop_map(|text| format!("m:{text}")),
    ]
}

fn words() -> impl Strategy<Value = String> {
    prop::collection::vec(word(), 0..12).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_imported_and_exported_again_is_the_same_log(words in words()) {
        let log = log_of(&words, 512);
        let files = Files::new(&log);
        let summary = files.scan().expect("a sound log");
        let recording = files.import().expect("a sound log");
        let marks: Vec<(u64, String)> = summary.marks.into_iter().map(|mark| (mark.event, mark.text)).collect();
        prop_assert_eq!(exported(&recording, &marks).0, log);
    }

    #[test]
    fn a_changed_log_is_refused_or_read_but_does_no_harm(
        words in words(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut log = log_of(&words, 512);
        for (place, byte) in changes {
            // Change mostly the words of headers, which stand at the starts of sectors.
            let at = place.index(log.len());
            let at = if byte % 4 == 0 { at } else { at - at % 512 + at % 32 };
            log[at] = byte;
        }
        if cut.index(4) == 0 {
            log.truncate(cut.index(log.len()));
        }
        let files = Files::new(&log);
        match (files.scan(), files.import()) {
            (Ok(summary), Ok(recording)) => {
                let requests = summary.writes + summary.flushes + summary.discards;
                let completed = recording.events().iter().filter(|event| matches!(event, Event::Complete { .. }));
                prop_assert_eq!(completed.count() as u64, requests);
                prop_assert!(recording.bytes().len() < log.len() + 64 * log.len().div_ceil(512) + 200);
            }
            (Err(scanned), Err(imported)) => prop_assert_eq!(scanned.to_string(), imported.to_string()),
            (scanned, imported) => prop_assert!(false, "{:?} but {:?}", scanned, imported.is_ok()),
        }
    }
}
