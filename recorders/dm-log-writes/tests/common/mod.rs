//! Logs and recordings in a short notation. A word of a log is an entry. `w3=AB` writes a sector of As and one of Bs
//! from sector 3 on, `d3-5` discards sectors 3 to 5, `f` is a flush, and `m:text` is a mark. `+flush`, `+fua` and
//! `+meta` are further flags. A word of a recording is an event. `0<w3=AB+fua` submits request 0 and `0>` completes it.
//! `0<z3-5` writes zeros, `0<f` flushes, and `+pre` marks a PREFLUSH write. `durable` ends the set-up.

#![allow(dead_code)] // each test program uses its own part

use std::path::{Path, PathBuf};

use postcrash_core::recording::{Event, Recording, RecordingWriter};
use postcrash_dm_log_writes::{entries, export, import, scan, ExportSummary, LogError, LogItem, Summary};
use tempfile::TempDir;

pub const DISK_SECTORS: u64 = 64;
pub const MAGIC: u64 = 0x6a_7366_7773_6872;

/// A temporary folder, in memory if possible, because each file is synchronised when it is finished.
pub fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a temporary folder")
}

pub fn superblock(entries: u64, sector_bytes: usize) -> Vec<u8> {
    let mut bytes = [MAGIC, 1, entries, sector_bytes as u64].map(u64::to_le_bytes).concat();
    bytes.resize(sector_bytes, 0);
    bytes
}

pub fn entry(sector: u64, sectors: u64, flags: u64, text: &[u8], data: &[u8], sector_bytes: usize) -> Vec<u8> {
    let mut bytes = [sector, sectors, flags, text.len() as u64].map(u64::to_le_bytes).concat();
    bytes.extend_from_slice(text);
    bytes.resize(sector_bytes, 0);
    bytes.extend_from_slice(data);
    bytes
}

/// The log of `words`.
pub fn log_of(words: &str, sector_bytes: usize) -> Vec<u8> {
    let entries: Vec<Vec<u8>> = words.split_whitespace().map(|word| entry_of(word, sector_bytes)).collect();
    [superblock(entries.len() as u64, sector_bytes), entries.concat()].concat()
}

fn entry_of(word: &str, sector_bytes: usize) -> Vec<u8> {
    let (body, rest) = word.split_once('+').unwrap_or((word, ""));
    let extra: u64 = rest.split('+').map(flag).sum();
    if let Some(text) = body.strip_prefix("m:") {
        return entry(0, 0, 8 | extra, text.as_bytes(), &[], sector_bytes);
    }
    match body.split_at(1) {
        ("f", "") => entry(0, 0, 1 | extra, &[], &[], sector_bytes),
        ("d", place) => {
            let (sector, sectors) = range(place);
            entry(sector, sectors, 4 | extra, &[], &[], sector_bytes)
        }
        ("w", write) => {
            let (sector, letters) = write.split_once('=').expect(word);
            let data = sectors_of(letters, sector_bytes);
            entry(sector.parse().expect(word), letters.len() as u64, extra, &[], &data, sector_bytes)
        }
        _ => panic!("no entry: {word}"),
    }
}

fn flag(name: &str) -> u64 {
    match name {
        "" => 0,
        "flush" => 1,
        "fua" => 2,
        "meta" => 16,
        _ => panic!("no flag: {name}"),
    }
}

/// First sector and number of sectors of `3-5`.
fn range(text: &str) -> (u64, u64) {
    let (first, last) = text.split_once('-').expect(text);
    let (first, last): (u64, u64) = (first.parse().expect(text), last.parse().expect(text));
    (first, last + 1 - first)
}

fn sectors_of(letters: &str, sector_bytes: usize) -> Vec<u8> {
    letters.bytes().flat_map(|letter| vec![letter; sector_bytes]).collect()
}

/// The words of a log with sectors of 512 bytes.
pub fn words_of(log: &[u8]) -> String {
    let word = |at: usize| u64::from_le_bytes(log[at..at + 8].try_into().expect("eight bytes"));
    assert_eq!((word(0), word(8), word(24)), (MAGIC, 1, 512));
    let mut words = Vec::new();
    let mut at = 512;
    for _ in 0..word(16) {
        let (sector, sectors, flags, text) = (word(at), word(at + 8), word(at + 16), word(at + 24) as usize);
        let data = if flags & 4 == 0 { sectors as usize * 512 } else { 0 };
        let letters: String = log[at + 512..at + 512 + data].chunks(512).map(|s| letter(s[0])).collect();
        let suffix = if flags & 2 == 0 { "" } else { "+fua" };
        words.push(match flags & 13 {
            0 => format!("w{sector}={letters}{suffix}"),
            1 => "f".to_owned(),
            4 => format!("d{sector}-{}", sector + sectors - 1),
            _ => format!("m:{}", String::from_utf8_lossy(&log[at + 32..at + 32 + text])),
        });
        at += 512 + data;
    }
    assert_eq!(at, log.len(), "nothing stands behind the entries");
    words.join(" ")
}

fn letter(byte: u8) -> char {
    if byte == 0 {
        '0'
    } else {
        byte.into()
    }
}

/// The words of a recording, without the completions that follow their request at once.
pub fn events_of(recording: &Recording) -> String {
    let letters = |data: &std::ops::Range<usize>| -> String {
        recording.bytes()[data.clone()].chunks(512).map(|sector| letter(sector[0])).collect()
    };
    let mut words: Vec<String> = Vec::new();
    for event in recording.events() {
        words.push(match event {
            Event::Write { id, sector, data, fua, .. } => {
                format!("{id}<w{sector}={}{}", letters(data), if *fua { "+fua" } else { "" })
            }
            Event::Zero { id, sector, sectors, discard, .. } => zero_word(*id, *sector, *sectors, *discard),
            Event::Flush { id, .. } => format!("{id}<f"),
            Event::Complete { id } => format!("{id}>"),
            Event::Durable => "durable".to_owned(),
            other => panic!("an import has no {other:?}"),
        });
    }
    words.join(" ")
}

fn zero_word(id: u32, sector: u64, sectors: u64, discard: bool) -> String {
    format!("{id}<{}{sector}-{}", if discard { "d" } else { "z" }, sector + sectors - 1)
}

/// Write the recording of `words` to `path`.
pub fn record(path: &Path, words: &str) -> Recording {
    let mut writer = RecordingWriter::create(path, &[DISK_SECTORS], "{}").expect("a writer");
    for word in words.split_whitespace() {
        if word == "durable" {
            writer.durable().expect(word);
        } else if let Some(id) = word.strip_suffix('>') {
            writer.complete(id.parse().expect(word)).expect(word);
        } else {
            let (id, request) = word.split_once('<').expect(word);
            submit(&mut writer, id.parse().expect(word), request);
        }
    }
    writer.finish().expect("a recording");
    Recording::open(path).expect("a recording just written")
}

fn submit(writer: &mut RecordingWriter, id: u32, request: &str) {
    let (body, flags) = request.split_once('+').unwrap_or((request, ""));
    let written = match body.split_at(1) {
        ("f", "") => writer.flush(id, 0),
        (kind @ ("d" | "z"), place) => {
            let (sector, sectors) = range(place);
            writer.zero(id, sector, sectors, kind == "d")
        }
        (_, write) => {
            let (sector, letters) = write.split_once('=').expect(request);
            let data = sectors_of(letters, 512);
            writer.write(id, sector.parse().expect(request), &data, flags.contains("fua"), flags.contains("pre"))
        }
    };
    written.expect(request);
}

/// A log in a file, and paths for what is made of it.
pub struct Files {
    folder: TempDir,
    pub log: PathBuf,
    pub recording: PathBuf,
}

impl Files {
    pub fn new(log: &[u8]) -> Files {
        let folder = folder();
        let (path, recording) = (folder.path().join("log"), folder.path().join("log.pcr"));
        std::fs::write(&path, log).expect("a log");
        Files { folder, log: path, recording }
    }

    pub fn scan(&self) -> Result<Summary, LogError> {
        scan(&self.log, DISK_SECTORS, &mut || true)
    }

    /// Everything in a sound log, each entry with its place.
    pub fn entries(&self) -> Vec<(LogItem, u64)> {
        let mut found = Vec::new();
        entries(&self.log, DISK_SECTORS, &mut || true, &mut |logged, events| found.push((logged, events)))
            .expect("a sound log");
        found
    }

    /// Import the log, and check that a failure leaves nothing behind.
    pub fn import(&self) -> Result<Recording, LogError> {
        let result = import(&self.log, DISK_SECTORS, &self.recording, "{}", &mut || true);
        let files = std::fs::read_dir(self.folder.path()).expect("a folder").count();
        assert_eq!(files, if result.is_ok() { 2 } else { 1 });
        result.map(|()| Recording::open(&self.recording).expect("a recording just written"))
    }
}

/// The log of a recording, with what the export says.
pub fn exported(recording: &Recording, marks: &[(u64, String)]) -> (Vec<u8>, ExportSummary) {
    let folder = folder();
    let out = folder.path().join("log");
    let result = export(recording, &out, marks, &mut || true).expect("an export");
    (std::fs::read(&out).expect("a log just written"), result)
}
