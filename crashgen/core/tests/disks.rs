//! Recordings of two disks: what a crash leaves on both, by hand. tests/unit/crashgen/test_disks.py compares random
//! recordings of several disks with each disk alone.

use std::collections::BTreeSet;
use std::path::Path;

use num_bigint::BigUint;
use postcrash_core::choice::Choice;
use postcrash_core::cursor::Cursor;
use postcrash_core::device;
use postcrash_core::ground::Base;
use postcrash_core::recording::{Recording, RecordingWriter};
use postcrash_core::space::Space;
use postcrash_wire::units::SECTOR_BYTES;

const DISK_SECTORS: u64 = 8;

/// Steps of a log: `A0` writes the letter A over disk 0, `A0+pre` and `A0+fua` with these flags, `flush0` flushes it. All
/// are submitted and completed at once, but for those that end with `<`, which are never completed.
fn record(path: &Path, log: &str) {
    let mut writer = RecordingWriter::create(path, &[DISK_SECTORS; 2], "{}").expect("a writer");
    writer.durable().expect("written");
    for (id, step) in (0..).zip(log.split(' ')) {
        let (text, is_completed) = step.strip_suffix('<').map_or((step, true), |text| (text, false));
        let disk_of = |text: &str| text.parse::<u32>().expect("the number of a disk");
        if let Some(disk) = text.strip_prefix("flush") {
            writer.flush(id, disk_of(disk)).expect("written");
        } else {
            let (letter, disk) = (text.as_bytes()[0], disk_of(&text[1..2]));
            let data = vec![letter; DISK_SECTORS as usize * SECTOR_BYTES];
            let (fua, preflush) = (text.ends_with("+fua"), text.ends_with("+pre"));
            writer.write(id, u64::from(disk) * DISK_SECTORS, &data, fua, preflush).expect("written");
        }
        if is_completed {
            writer.complete(id).expect("written");
        }
    }
    writer.finish().expect("finished");
}

/// The letters that both disks show after a crash at the end, and the number of crash states there.
fn after(log: &str, model: &str) -> (BTreeSet<String>, BigUint) {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, image) = (folder.path().join("log.pcr"), folder.path().join("base"));
    record(&path, log);
    std::fs::write(&image, [b'.'; 2 * DISK_SECTORS as usize * SECTOR_BYTES]).expect("an image");
    let (recording, base) = (Recording::open(&path).expect("a recording"), Base::open(&image).expect("an image"));
    let mut cursor = Cursor::new(&recording, &base, device::named(model).expect(model));
    let (mut shown, mut states) = (BTreeSet::new(), BigUint::ZERO);
    while let Some(interval) = cursor.next_interval() {
        if interval.latest().event < recording.events().len() {
            continue;
        }
        states += interval.states();
        let mut all = vec![Vec::new()];
        for (component, known) in (0..).zip(&interval.components) {
            let with = |choices: &Vec<Choice>, version| [&choices[..], &[Choice { component, version }]].concat();
            let versions = 0..known.versions.len() as u32;
            all = all.iter().flat_map(|choices| versions.clone().map(move |version| with(choices, version))).collect();
        }
        let space = Space { content: cursor.content(), interval: &interval };
        for choices in all {
            let letter = |disk: u64| {
                let mut out = [0; SECTOR_BYTES];
                let chosen = |component| choices.iter().find(|choice| choice.component == component);
                space.read(disk * DISK_SECTORS, &mut out, &mut |component| chosen(component).map_or(0, |c| c.version));
                out[0] as char
            };
            shown.insert([letter(0), letter(1)].iter().collect());
        }
    }
    (shown, states)
}

#[test]
fn what_a_crash_leaves_on_two_disks() {
    for (model, log, shown, states) in [
        ("cache", "A0 B1", vec!["..", ".B", "A.", "AB"], 4u32),
        ("cache", "A0 B1 flush0", vec!["A.", "AB"], 2),
        ("cache", "A0 B1 flush1", vec![".B", "AB"], 2),
        ("cache", "A0 B1 flush0 flush1", vec!["AB"], 1),
        ("cache", "A0 B1+fua", vec![".B", "AB"], 2),
        ("cache", "A0 B1 C1+pre", vec![".B", ".C", "AB", "AC"], 4),
        ("lying", "A0 B1 flush0 flush1", vec!["..", ".B", "A.", "AB"], 4),
        ("ordered", "A0 B1", vec!["..", ".B", "A.", "AB"], 4),
        ("ordered", "A0 C0 B1", vec!["..", ".B", "A.", "AB", "C.", "CB"], 6),
        ("ordered", "A0 B1+fua", vec![".B", "AB"], 2),
        ("prefix", "A0 B1 C0< flush1", vec![".B", "AB"], 2),
    ] {
        assert_eq!(
            after(log, model),
            (shown.into_iter().map(str::to_owned).collect(), states.into()),
            "{model}: {log}"
        );
    }
}

#[test]
fn the_stages_of_preflush_writes_on_two_disks_are_independent() {
    let (found, _) = after("A0 B1 C0+pre< D1+pre<", "cache");
    let expected = ["..", ".B", ".D", "A.", "AB", "AD", "C.", "CB", "CD"].map(str::to_owned);
    assert_eq!(found, BTreeSet::from(expected));
}
