//! Recordings come back as they were written, and no file makes the reader panic.

mod common;

use std::path::{Path, PathBuf};

use postcrash_core::calls::{CallNote, CallStep, NOTES_MAX, TEXT_BYTES_MAX};
use postcrash_core::cursor::Cursor;
use postcrash_core::device;
use postcrash_core::ground::Base;
use postcrash_core::recording::{Event, Recording, RecordingError, RecordingWriter};
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

const DISK_SECTORS: u64 = 64;
const METADATA: &str = r#"{"name": "test"}"#;

struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir_in(common::fast_folder()).expect("a folder"))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("a listing");
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }

    fn open(&self, bytes: &[u8]) -> Result<Recording, RecordingError> {
        let path = self.file("mutated.pcr");
        std::fs::write(&path, bytes).expect("written");
        Recording::open(&path)
    }

    /// Why `bytes` are no recording. The reason has the file's name and the position in it.
    fn reason(&self, bytes: &[u8]) -> String {
        match self.open(bytes) {
            Err(error @ RecordingError::Malformed { .. }) => error.to_string(),
            Err(error) => panic!("not malformed but {error}"),
            Ok(_) => panic!("it opens"),
        }
    }
}

fn write_sample(writer: &mut RecordingWriter) -> Result<(), RecordingError> {
    writer.write(0, 8, &[7; 1024], false, false)?;
    writer.complete(0)?;
    writer.durable()?;
    writer.started(0)?;
    writer.call_begins(1, "sh", "sync()")?;
    writer.call_begins(2, "mv", "rename(\"ä\", \"b\")")?;
    writer.write(1, 3, &[9; 512], true, false)?;
    writer.write(2, 3, &[8; 512], false, true)?;
    writer.zero(3, 0, 16, true)?;
    writer.zero(4, 16, 8, false)?;
    writer.flush(5, 0)?;
    for id in [2, 5, 1] {
        writer.complete(id)?;
    }
    writer.call_ends(2, -2)?;
    writer.returned(0, 28)
}

fn sample(path: &Path) -> Vec<u8> {
    let mut writer = RecordingWriter::create(path, &[DISK_SECTORS], METADATA).expect("a writer");
    write_sample(&mut writer).expect("written");
    writer.finish().expect("finished");
    std::fs::read(path).expect("read")
}

/// A file of `events` (bytes). Everything around them is as it should be.
fn sealed(events: &[u8], count: u64) -> Vec<u8> {
    let mut bytes = b"PCREC01\n".to_vec();
    bytes.extend(DISK_SECTORS.to_le_bytes());
    bytes.extend((METADATA.len() as u32).to_le_bytes());
    bytes.extend(METADATA.bytes());
    bytes.extend(events);
    bytes.push(0);
    bytes.extend(count.to_le_bytes());
    seal(bytes)
}

fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let digest = Sha256::digest(&bytes);
    bytes.extend(digest);
    bytes
}

/// `bytes` with a checksum that fits again.
fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len().saturating_sub(32));
    seal(bytes)
}

/// An event as bytes of the file: a kind, then numbers of the given width.
fn event(kind: u8, fields: &[(usize, u64)]) -> Vec<u8> {
    let bytes = fields.iter().flat_map(|&(width, number)| number.to_le_bytes().into_iter().take(width));
    std::iter::once(kind).chain(bytes).collect()
}

fn write_event(id: u64, sector: u64, length: u64, data: usize) -> Vec<u8> {
    [event(1, &[(4, id), (1, 0), (8, sector), (4, length)]), vec![1; data]].concat()
}

#[test]
fn a_recording_comes_back_as_it_was_written() {
    let folder = Folder::new();
    let path = folder.file("a.pcr");
    let bytes = sample(&path);
    let recording = Recording::open(&path).expect("a recording");
    assert_eq!((recording.disk_sectors(), recording.metadata()), (DISK_SECTORS, METADATA));
    assert_eq!(recording.digest(), &Sha256::digest(&bytes[..bytes.len() - 32])[..]);
    assert_eq!(recording.path(), path);
    let mut data = Vec::new();
    for event in recording.events() {
        if let Event::Write { id, sector, data: range, fua, preflush } = event {
            data.push((*id, *sector, recording.bytes()[range.clone()].to_vec(), *fua, *preflush));
        }
    }
    let wanted =
        [(0, 8, vec![7; 1024], false, false), (1, 3, vec![9; 512], true, false), (2, 3, vec![8; 512], false, true)];
    assert_eq!(data, wanted);
    let rest: Vec<&Event> = recording.events().iter().filter(|e| !matches!(e, Event::Write { .. })).collect();
    assert!(matches!(rest[3], Event::Zero { id: 3, sector: 0, sectors: 16, discard: true, .. }));
    assert!(matches!(rest[4], Event::Zero { id: 4, sector: 16, sectors: 8, discard: false, .. }));
    let simple = [Event::Complete { id: 0 }, Event::Durable, Event::Started { op: 0 }];
    assert!(rest[..3].iter().copied().eq(&simple));
    assert_eq!(*rest[5], Event::Flush { id: 5, disk: 0 });
    assert_eq!(*rest[9], Event::Returned { op: 0, errno: 28 });
    assert_eq!(folder.names(), ["a.pcr"]);
}

#[test]
fn notes_of_calls_come_back_with_their_places_and_are_no_events() {
    let folder = Folder::new();
    let path = folder.file("a.pcr");
    sample(&path);
    let recording = Recording::open(&path).expect("a recording");
    let told: Vec<_> =
        recording.calls().iter().map(|note| (note.events, note.thread, text(&recording, note))).collect();
    let wanted = [(4, 1, "sh: sync()"), (4, 2, "mv: rename(\"ä\", \"b\")"), (12, 2, "-2")];
    assert_eq!(told, wanted.map(|(events, thread, text)| (events, thread, text.to_owned())));
    assert_eq!(recording.events().len(), 13);
}

fn text(recording: &Recording, note: &CallNote) -> String {
    match &note.step {
        CallStep::Begins { program, call } => format!("{}: {}", recording.text(program), recording.text(call)),
        CallStep::Ends { result } => result.to_string(),
    }
}

#[test]
fn a_recording_has_so_many_notes_and_no_more() {
    let folder = Folder::new();
    let mut writer = RecordingWriter::create(&folder.file("a.pcr"), &[DISK_SECTORS], METADATA).expect("a writer");
    for _ in 0..NOTES_MAX / 2 {
        writer.call_begins(1, "sh", "sync()").expect("room");
        writer.call_ends(1, 0).expect("room");
    }
    let error = writer.call_begins(1, "sh", "sync()").expect_err("too many").to_string();
    assert!(error.contains("more than 65536 notes of system calls"), "{error}");
    let long = "x".repeat(TEXT_BYTES_MAX + 1);
    let mut writer = RecordingWriter::create(&folder.file("b.pcr"), &[DISK_SECTORS], METADATA).expect("a writer");
    assert!(writer.call_begins(1, "sh", &long).is_err());
}

#[test]
fn zeros_and_writes_are_ordered_by_their_place_in_the_file() {
    let folder = Folder::new();
    let path = folder.file("a.pcr");
    sample(&path);
    let recording = Recording::open(&path).expect("a recording");
    let place = |event: &Event| match event {
        Event::Write { data, .. } => Some(data.start),
        Event::Zero { order, .. } => Some(*order),
        _ => None,
    };
    let places: Vec<usize> = recording.events().iter().filter_map(place).collect();
    assert_eq!(places.len(), 5);
    assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "{places:?}");
}

#[test]
fn a_recording_cut_short_anywhere_does_not_open() {
    let folder = Folder::new();
    let bytes = sample(&folder.file("a.pcr"));
    for length in 0..bytes.len() {
        folder.reason(&bytes[..length]);
    }
    folder.reason(&[&bytes[..], &[0]].concat());
}

#[test]
fn a_recording_cut_short_and_sealed_again_does_not_open() {
    let folder = Folder::new();
    let bytes = sample(&folder.file("a.pcr"));
    for length in 0..bytes.len() - 32 {
        folder.reason(&seal(bytes[..length].to_vec()));
    }
}

#[test]
fn a_changed_byte_is_noticed() {
    let folder = Folder::new();
    let bytes = sample(&folder.file("a.pcr"));
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x40;
        folder.reason(&changed);
    }
}

#[test]
fn a_hostile_header_is_an_error() {
    let folder = Folder::new();
    let bytes = sample(&folder.file("a.pcr"));
    let with = |at: usize, field: &[u8]| {
        let mut changed = bytes.clone();
        changed[at..at + field.len()].copy_from_slice(field);
        folder.reason(&resealed(changed))
    };
    for (at, field, reason) in [
        (0, &b"PCREC00\n"[..], "does not start with a recording's header (byte 0)"),
        (0, &b"PCREC02\n"[..], "disks are not 1 to 16"),
        (8, &0u64.to_le_bytes(), "a disk of 0 sectors is out of range"),
        (8, &u64::MAX.to_le_bytes(), "a disk of 18446744073709551615 sectors is out of range"),
        (8, &1u64.to_le_bytes(), "do not fit on a disk of 1"),
        (16, &u32::MAX.to_le_bytes(), "ends in the middle of a field"),
        (16, &0u32.to_le_bytes(), "the metadata is not JSON"),
        (20, b"x", "the metadata is not JSON"),
        (20, b"\xff", "the metadata is not JSON"),
    ] {
        let found = with(at, field);
        assert!(found.contains(reason), "{found}, not {reason}");
        assert!(found.contains("mutated.pcr: not a recording: "), "{found}");
    }
    assert!(folder.reason(b"").contains("byte 0"));
}

#[test]
fn metadata_that_is_too_long_or_too_deep_is_an_error() {
    let folder = Folder::new();
    for (metadata, reason) in [
        (vec![b' '; (16 << 20) + 1], "metadata of 16777217 bytes is too long"),
        (vec![b'['; 1 << 20], "the metadata is not JSON"),
    ] {
        let header = [&b"PCREC01\n"[..], &8u64.to_le_bytes(), &(metadata.len() as u32).to_le_bytes()].concat();
        let found = folder.reason(&seal([&header[..], &metadata, &[0; 9]].concat()));
        assert!(found.contains(reason), "{found}");
    }
}

#[test]
fn events_that_cannot_be_are_errors() {
    let folder = Folder::new();
    let call = |text: &[u8]| [event(9, &[(4, 1), (4, text.len() as u64)]), text.to_vec(), event(0, &[(3, 0)])].concat();
    let flush = |id| event(4, &[(4, id)]);
    let complete = |id| event(5, &[(4, id)]);
    let started = |op| event(6, &[(4, op)]);
    let returned = |op| event(7, &[(4, op), (4, 0)]);
    for (events, reason) in [
        (vec![event(12, &[])], "unknown event kind 12"),
        (vec![event(11, &[(4, 0), (4, 1)])], "there is no disk 1"),
        (vec![event(10, &[(4, 1), (8, 0)])], "thread 1 ends a system call that it has not begun"),
        (vec![call(b"sh"), call(b"sh")], "thread 1 begins a system call within another one"),
        (vec![call(b"\xff")], "a system call's text cannot be read"),
        (vec![call(&[b'x'; 4097])], "a system call's text of 4097 bytes is too long"),
        (vec![event(9, &[(4, 1), (4, 0xffff_ffff)])], "ends in the middle of a field"),
        (vec![complete(3)], "request 3 completes but is not outstanding"),
        (vec![flush(3), complete(3), complete(3)], "request 3 completes but is not outstanding"),
        (vec![flush(3), flush(3)], "request 3 is submitted twice"),
        (vec![flush(3), complete(3), write_event(3, 0, 512, 512)], "request 3 is submitted twice"),
        (vec![write_event(0, 64, 512, 512)], "1 sectors from sector 64 do not fit on a disk of 64"),
        (vec![write_event(0, u64::MAX, 512, 512)], "do not fit"),
        (vec![write_event(0, 0, 0, 0)], "a write of 0 bytes is not whole sectors"),
        (vec![write_event(0, 0, 100, 100)], "a write of 100 bytes is not whole sectors"),
        (vec![write_event(0, 0, 0xffff_fe00, 512)], "ends in the middle of a field"),
        (vec![event(2, &[(4, 0), (8, 0), (8, 0)])], "0 sectors from sector 0 do not fit"),
        (vec![event(2, &[(4, 0), (8, 1), (8, u64::MAX)])], "do not fit"),
        (vec![event(3, &[(4, 0), (8, 60), (8, 5)])], "5 sectors from sector 60 do not fit"),
        (vec![started(1)], "operation 1 is marked out of order"),
        (vec![started(0), started(1)], "operation 1 is marked out of order"),
        (vec![returned(0)], "operation 0 is marked out of order"),
        (vec![started(0), returned(0), returned(0)], "operation 0 is marked out of order"),
        (vec![started(0), returned(0), started(0)], "operation 0 is marked out of order"),
        (vec![event(8, &[]), event(8, &[])], "the set-up ends twice"),
    ] {
        let found = folder.reason(&sealed(&events.concat(), events.len() as u64));
        assert!(found.contains(reason), "{found}, not {reason}");
    }
    assert!(folder.reason(&sealed(&flush(0), 2)).contains("the number of events does not match"));
    assert!(folder.reason(&sealed(&[flush(0), vec![0; 9]].concat(), 1)).contains("number of events does not match"));
    let end = [&[0][..], &1u64.to_le_bytes()].concat();
    assert!(folder.reason(&sealed(&[flush(0), end].concat(), 1)).contains("there is more after its end"));
    folder.open(&sealed(&flush(0), 1)).expect("sealed by hand it opens");
}

#[test]
fn an_unfinished_recording_leaves_nothing_behind() {
    let folder = Folder::new();
    let mut writer = RecordingWriter::create(&folder.file("a.pcr"), &[DISK_SECTORS], METADATA).expect("a writer");
    write_sample(&mut writer).expect("written");
    assert_eq!(folder.names().len(), 1);
    assert!(!folder.file("a.pcr").exists());
    drop(writer);
    assert!(folder.names().is_empty());
}

#[test]
fn a_recording_replaces_the_file_in_its_place_only_when_it_is_whole() {
    let folder = Folder::new();
    let path = folder.file("a.pcr");
    std::fs::write(&path, b"before").expect("written");
    drop(RecordingWriter::create(&path, &[DISK_SECTORS], METADATA).expect("a writer"));
    assert_eq!(std::fs::read(&path).expect("read"), b"before");
    sample(&path);
    Recording::open(&path).expect("a recording");
}

#[test]
fn what_could_not_be_opened_again_is_refused() {
    let folder = Folder::new();
    let path = folder.file("a.pcr");
    for (sectors, metadata) in [(0, "{}"), (1 << 36, "{}"), (8, ""), (8, "{")] {
        assert!(matches!(RecordingWriter::create(&path, &[sectors], metadata), Err(RecordingError::Refused { .. })));
    }
    let mut writer = RecordingWriter::create(&path, &[8], "{}").expect("a writer");
    writer.flush(0, 0).expect("written");
    let error = writer.flush(0, 0).expect_err("twice").to_string();
    assert!(error.ends_with("a.pcr: cannot be recorded: request 0 is submitted twice"), "{error}");
    writer.write(1, 0, &[0; 100], false, false).expect_err("not whole sectors");
    writer.write(1, 8, &[0; 512], false, false).expect_err("outside the disk");
    writer.complete(7).expect_err("never submitted");
    writer.write(1, 7, &[0; 512], false, false).expect("a refusal changes nothing");
    writer.finish().expect("finished");
    assert_eq!(Recording::open(&path).expect("a recording").events().len(), 2);
}

#[test]
fn a_file_that_is_not_there_is_an_io_error() {
    let folder = Folder::new();
    let Err(error) = Recording::open(&folder.file("absent.pcr")) else { panic!("it opens") };
    assert!(matches!(error, RecordingError::Io { .. }) && error.to_string().contains("absent.pcr"), "{error}");
    let created = RecordingWriter::create(&folder.file("no/folder.pcr"), &[DISK_SECTORS], METADATA);
    assert!(matches!(created, Err(RecordingError::Io { .. })));
}

#[derive(Debug, Clone)]
enum Mutation {
    Set(prop::sample::Index, u8),
    Insert(prop::sample::Index, u8),
    Remove(prop::sample::Index),
    /// Copy some bytes to another place.
    Repeat(prop::sample::Index, prop::sample::Index, usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<prop::sample::Index>;
    let byte = || prop_oneof![any::<u8>(), 0..11u8, Just(0xff)];
    prop_oneof![
        4 => (at(), byte()).prop_map(|(at, byte)| Mutation::Set(at, byte)),
        1 => (at(), byte()).prop_map(|(at, byte)| Mutation::Insert(at, byte)),
        1 => at().prop_map(Mutation::Remove),
        1 => (at(), at(), 1..40usize).prop_map(|(from, to, length)| Mutation::Repeat(from, to, length)),
    ]
}

/// Apply the mutation to the bytes between magic and checksum.
fn mutate(bytes: &mut Vec<u8>, mutation: &Mutation) {
    let place = |index: &prop::sample::Index, length: usize| 8 + index.index(length - 8);
    let length = bytes.len();
    match mutation {
        Mutation::Set(at, byte) => bytes[place(at, length)] = *byte,
        Mutation::Insert(at, byte) => bytes.insert(place(at, length), *byte),
        Mutation::Remove(at) => drop(bytes.remove(place(at, length))),
        Mutation::Repeat(from, to, stretch) => {
            let from = place(from, length);
            let copy = bytes[from..(from + stretch).min(length)].to_vec();
            let to = place(to, length);
            bytes.splice(to..to, copy);
        }
    }
}

/// The cursor does not panic either on a recording that opens. Discards of a whole huge disk are left out.
fn walk(recording: &Recording, base: &Path) {
    let huge = |event: &Event| matches!(event, Event::Zero { sectors, .. } if *sectors > 1 << 16);
    if recording.events().iter().any(huge) {
        return;
    }
    let base = Base::open(base).expect("a base image");
    for model in device::names() {
        let mut cursor = Cursor::new(recording, &base, device::named(model).expect(model));
        while cursor.next_interval().is_some() {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_mutated_recording_opens_or_is_an_error(mutations in prop::collection::vec(mutation(), 1..6)) {
        let folder = Folder::new();
        let path = folder.file("a.pcr");
        let mut bytes = sample(&path);
        bytes.truncate(bytes.len() - 32);
        for mutation in &mutations {
            mutate(&mut bytes, mutation);
        }
        match folder.open(&seal(bytes)) {
            Ok(recording) => {
                prop_assert!(recording.metadata().len() < 1 << 20);
                walk(&recording, &path);
            }
            Err(error) => prop_assert!(matches!(error, RecordingError::Malformed { .. }), "{error}"),
        }
    }

    #[test]
    fn any_events_open_or_are_an_error(bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0..9u8], 0..200)) {
        let folder = Folder::new();
        for count in 0..4 {
            if let Ok(recording) = folder.open(&sealed(&bytes, count)) {
                prop_assert_eq!(recording.events().len() as u64, count);
            }
        }
    }
}
