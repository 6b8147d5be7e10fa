//! Logs in a short notation, and what the core makes of them.
//!
//! The disk has two blocks of eight sectors. A log is requests separated by semicolons. `w0=A` writes the letter A over
//! block 0, and `w.3=A` over sector 3. `w.6-9=AB` writes the letters A and B in turn over sectors 6 to 9. The flags
//! `+pre` and `+fua` stand behind a write. The other requests are `discard` or `zero` with a target, and `flush`. A
//! request is completed at once; `a<w0=A` only submits it, and `a>` completes it later. `start` and `return` mark the
//! operations. `durable` ends the set-up; a log without it starts with it. A sector that was never written shows `.`,
//! and one that was zeroed shows `0`.

#![allow(dead_code)] // each test program uses its own part

pub mod reference;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use num_bigint::BigUint;
use postcrash_core::choice::Choice;
use postcrash_core::cursor::Cursor;
use postcrash_core::device;
use postcrash_core::ground::{Base, Content};
use postcrash_core::interval::Interval;
use postcrash_core::recording::{Recording, RecordingWriter};
use postcrash_core::space::Space;
use postcrash_wire::units::SECTOR_BYTES;

pub const SECTORS: usize = 16;
pub const BLOCK: usize = 8;

/// One letter for each sector of the disk.
pub type Disk = [u8; SECTORS];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// One letter for each sector.
    Write {
        sector: usize,
        letters: Vec<u8>,
        fua: bool,
        preflush: bool,
    },
    Zero {
        sector: usize,
        sectors: usize,
        discard: bool,
    },
    Flush,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Submit(u32, Request),
    Complete(u32),
    Durable,
    Started(u32),
    Returned(u32),
}

/// Read the notation.
pub fn parse(log: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut names: HashMap<&str, u32> = HashMap::new();
    let mut next = 0;
    if !log.contains("durable") {
        steps.push(Step::Durable);
    }
    let mut operations = 0;
    for word in log.split(';').map(str::trim).filter(|word| !word.is_empty()) {
        if word == "durable" {
            steps.push(Step::Durable);
        } else if word == "start" {
            steps.push(Step::Started(operations));
        } else if word == "return" {
            steps.push(Step::Returned(operations));
            operations += 1;
        } else if let Some(name) = word.strip_suffix('>') {
            steps.push(Step::Complete(names[name]));
        } else if let Some((name, text)) = word.split_once('<') {
            names.insert(name, next);
            steps.push(Step::Submit(next, request(text)));
            next += 1;
        } else {
            steps.extend([Step::Submit(next, request(word)), Step::Complete(next)]);
            next += 1;
        }
    }
    steps
}

fn request(text: &str) -> Request {
    if text == "flush" {
        return Request::Flush;
    }
    if let Some((kind, place)) = text.split_once(' ') {
        let (sector, sectors) = target(place);
        assert!(["discard", "zero"].contains(&kind), "no request: {text}");
        return Request::Zero { sector, sectors, discard: kind == "discard" };
    }
    let (place, rest) = text.strip_prefix('w').and_then(|t| t.split_once('=')).expect(text);
    let (sector, sectors) = target(place);
    let mut parts = rest.split('+');
    let pattern = parts.next().expect("split gives one part").as_bytes();
    let letters = (0..sectors).map(|i| pattern[i % pattern.len()]).collect();
    let flags: Vec<&str> = parts.collect();
    Request::Write { sector, letters, fua: flags.contains(&"fua"), preflush: flags.contains(&"pre") }
}

/// First sector and number of sectors of `0` (a block), `.3` (a sector) or `.6-9`.
fn target(text: &str) -> (usize, usize) {
    let number = |text: &str| text.parse::<usize>().expect(text);
    match text.strip_prefix('.') {
        None => (number(text) * BLOCK, BLOCK),
        Some(range) => {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            (number(first), number(last) + 1 - number(first))
        }
    }
}

/// The notation of `steps`, which can be copied from a failure into a row of litmus.rs.
pub fn notation(steps: &[Step]) -> String {
    let word = |step: &Step| match step {
        Step::Durable => "durable".to_owned(),
        Step::Started(_) => "start".to_owned(),
        Step::Returned(_) => "return".to_owned(),
        Step::Complete(id) => format!("r{id}>"),
        Step::Submit(id, Request::Flush) => format!("r{id}<flush"),
        Step::Submit(id, Request::Zero { sector, sectors, discard }) => {
            let kind = if *discard { "discard" } else { "zero" };
            format!("r{id}<{kind} .{sector}-{}", sector + sectors - 1)
        }
        Step::Submit(id, Request::Write { sector, letters, fua, preflush }) => {
            let flags = [(*preflush, "+pre"), (*fua, "+fua")];
            let flags: String = flags.iter().filter(|flag| flag.0).map(|flag| flag.1).collect();
            let last = sector + letters.len() - 1;
            format!("r{id}<w.{sector}-{last}={}{flags}", String::from_utf8_lossy(letters))
        }
    };
    steps.iter().map(word).collect::<Vec<_>>().join("; ")
}

/// `A` for a block of As; if its eight letters differ, all of them in brackets.
pub fn shown(disk: &Disk) -> String {
    let block = |letters: &[u8]| match letters.iter().all(|l| l == &letters[0]) {
        true => (letters[0] as char).to_string(),
        false => format!("[{}]", String::from_utf8_lossy(letters)),
    };
    disk.chunks(BLOCK).map(block).collect()
}

/// Bytes of a sector that shows `letter`.
fn sector_bytes(letter: u8) -> [u8; SECTOR_BYTES] {
    [if letter == b'0' { 0 } else { letter }; SECTOR_BYTES]
}

fn letter_of(sector: &[u8]) -> u8 {
    assert!(sector.iter().all(|byte| byte == &sector[0]), "a sector with two contents");
    if sector[0] == 0 {
        b'0'
    } else {
        sector[0]
    }
}

/// A recording of a log with its base image.
pub struct RecordedLog {
    pub recording: Recording,
    pub base: Base,
}

impl RecordedLog {
    pub fn new(steps: &[Step]) -> RecordedLog {
        let folder = tempfile::tempdir_in(fast_folder()).expect("a folder for temporary files");
        let (log, base) = (folder.path().join("log.pcr"), folder.path().join("base"));
        std::fs::write(&base, [b'.'; SECTORS * SECTOR_BYTES]).expect("a base image");
        record(&log, steps);
        let open = |path: &Path| Recording::open(path).expect("a recording just written");
        RecordedLog { recording: open(&log), base: Base::open(&base).expect("a base image just written") }
    }

    /// Call `each` with every crash interval on the device model `model`.
    pub fn each_interval(&self, model: &str, mut each: impl FnMut(&Interval, Content<'_>)) {
        let mut cursor = Cursor::new(&self.recording, &self.base, device::named(model).expect(model));
        while let Some(interval) = cursor.next_interval() {
            each(&interval, cursor.content());
        }
    }
}

/// A folder in memory if there is one, because each recording is synchronised when it is finished.
pub fn fast_folder() -> std::path::PathBuf {
    let memory = Path::new("/dev/shm");
    let usable = tempfile::tempfile_in(memory).is_ok();
    if usable {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    }
}

fn record(path: &Path, steps: &[Step]) {
    let mut writer = RecordingWriter::create(path, &[SECTORS as u64], "{}").expect("a writer");
    for step in steps {
        match step {
            Step::Durable => writer.durable(),
            Step::Started(op) => writer.started(*op),
            Step::Returned(op) => writer.returned(*op, 0),
            Step::Complete(id) => writer.complete(*id),
            Step::Submit(id, Request::Flush) => writer.flush(*id, 0),
            Step::Submit(id, Request::Zero { sector, sectors, discard }) => {
                writer.zero(*id, *sector as u64, *sectors as u64, *discard)
            }
            Step::Submit(id, Request::Write { sector, letters, fua, preflush }) => {
                let data: Vec<u8> = letters.iter().flat_map(|&letter| sector_bytes(letter)).collect();
                writer.write(*id, *sector as u64, &data, *fua, *preflush)
            }
        }
        .expect("written");
    }
    writer.finish().expect("finished");
}

/// One version of each component, and the disk that they make.
pub type State = (Vec<Choice>, Disk);

/// Every combination of the components' versions.
pub fn states(interval: &Interval, content: Content<'_>) -> Vec<State> {
    let mut all: Vec<Vec<Choice>> = vec![Vec::new()];
    for (index, component) in (0..).zip(&interval.components) {
        let versions = 0..component.versions.len() as u32;
        all = versions
            .flat_map(|v| all.iter().map(move |c| [&c[..], &[Choice { component: index, version: v }]].concat()))
            .collect();
    }
    let disk = |choices: &[Choice]| read_disk(interval, content, &mut |c| choices[c as usize].version);
    all.into_iter().map(|choices| (choices.clone(), disk(&choices))).collect()
}

fn read_disk(interval: &Interval, content: Content<'_>, choose: &mut dyn FnMut(u32) -> u32) -> Disk {
    let mut bytes = vec![0; SECTORS * SECTOR_BYTES];
    Space { content, interval }.read(0, &mut bytes, choose);
    std::array::from_fn(|sector| letter_of(&bytes[sector * SECTOR_BYTES..][..SECTOR_BYTES]))
}

/// The letter that a lazy reader sees in `sector`.
pub fn read_letter(interval: &Interval, content: Content<'_>, sector: usize, choose: &mut dyn FnMut(u32) -> u32) -> u8 {
    let mut bytes = [0; SECTOR_BYTES];
    Space { content, interval }.read(sector as u64, &mut bytes, choose);
    letter_of(&bytes)
}

/// Each disk content with the number of crash states that show it. No content may appear twice. Contents whose states
/// are all counted in another interval are left out.
pub fn contents(interval: &Interval, content: Content<'_>) -> BTreeMap<Disk, BigUint> {
    let counted = states(interval, content).into_iter().map(|(choices, disk)| (disk, interval.covered(&choices)));
    let counted: Vec<_> = counted.filter(|(_, states)| *states != BigUint::ZERO).collect();
    let count = counted.len();
    let found: BTreeMap<Disk, BigUint> = counted.into_iter().collect();
    assert_eq!(found.len(), count, "a content comes twice");
    assert_eq!(BigUint::from(count), interval.contents());
    found
}
