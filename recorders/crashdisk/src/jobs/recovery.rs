//! Crashes within recovery: the writes of a recovery are a recording too, made on the crash state that was recovered.
//!
//! The recovery has read some components of that state, and what it wrote depends on no others. The other components
//! stay open while the crashes within the recovery are explored. So one recovery's recording stands for every crash
//! state that agrees on what the recovery read.

use std::path::Path;

use postcrash_core::disks::Disks;
use postcrash_core::ground::{Base, Ground};
use postcrash_core::interval::Instant;
use postcrash_core::recording::{Recording, RecordingError, RecordingWriter};
use postcrash_core::space::Space;
use postcrash_wire::{Command, Recover};

use serde_json::Value;

use crate::control::{HarnessEvent, Work};
use crate::disk::{Marks, OpenRecording, RecordingDisk};
use crate::error::GuestError;
use crate::guest::machine::Machine;
use crate::jobs::record;
use crate::jobs::source::unwritten;

/// Begin recording the recovery of a state in `space`, of `disks` of so many sectors, in the file `scratch`.
pub fn begin(scratch: &Path, disks: &[u64], space: Space<'_>) -> Result<OpenRecording, GuestError> {
    let Instant { started, returned, .. } = space.interval.latest();
    let marks = Marks { started, returned };
    let sectors = space.content.ground.sectors();
    Ok(OpenRecording::new(marked(scratch, disks, "{}", marks)?, sectors))
}

/// The recording that `log` wrote to `scratch`. The file is deleted.
pub fn recording(log: OpenRecording, scratch: &Path) -> Result<Recording, RecordingError> {
    log.finish()?;
    let recording = Recording::open(scratch)?;
    std::fs::remove_file(scratch).map_err(|source| RecordingError::Io { path: scratch.to_owned(), source })?;
    Ok(recording)
}

/// Recover the disk image `base` and write what the recovery wrote to the recording `out`.
pub fn record(
    machine: &mut Machine,
    base: &Path,
    out: &Path,
    recover: Recover,
    marks: Marks,
    metadata: &str,
) -> Result<(), GuestError> {
    let disks = record::disks_of(base, &recover.mount)?;
    machine.have_disks(&disks);
    let base = Base::open(base)?;
    let layout = Disks::new(&disks).map_err(GuestError::Input)?;
    let command = Command::Recover(recover.clone());
    let (_, summary) = machine.twice(|machine| {
        let mut log = OpenRecording::new(marked(out, &disks, metadata, marks)?, base.sectors());
        log.marks = marks;
        let mut disk = RecordingDisk::of(&base, log, None);
        disk.plain.overlay = unwritten(&layout, &recover)?;
        record::run(machine.guest()?, &command, disk, Work::Recovery)
    })?;
    HarnessEvent::Recorded { requests: summary.requests, failed: None, transcripts: Value::Null, output: Value::Null }
        .emit();
    Ok(())
}

/// A recording that starts with the operations where they were when the crash came.
fn marked(out: &Path, disks: &[u64], metadata: &str, marks: Marks) -> Result<RecordingWriter, RecordingError> {
    let mut writer = RecordingWriter::create(out, disks, metadata)?;
    for op in 0..marks.started {
        writer.started(op)?;
        if op < marks.returned {
            writer.returned(op, 0)?;
        }
    }
    writer.durable()?;
    Ok(writer)
}
