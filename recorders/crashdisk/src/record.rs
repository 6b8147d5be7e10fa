//! Recording: one run of a workload on a base image.

use std::path::Path;

use postcrash_core::recording::{Event as Logged, Recording, RecordingWriter};
use postcrash_core::view::{Base, Ground};
use postcrash_wire::{Command, Run};

use crate::control::Event;
use crate::disk::RecordingDisk;
use crate::guest::{Guest, GuestError};

/// Run `run` on `base` and write the recording to `out`; `held` is the seed of completions that are held back, and
/// `blktrace` where the kernel's own trace of the requests goes.
pub fn record(
    guest: &mut Guest,
    base: &Path,
    out: &Path,
    mut run: Run,
    metadata: &str,
    held: Option<u64>,
    blktrace: Option<&Path>,
) -> Result<(), GuestError> {
    let base = Base::open(base)?;
    let writer = RecordingWriter::create(out, base.sectors(), metadata)?;
    let mut disk = RecordingDisk::new(&base, writer, held);
    run.blktrace = blktrace.is_some();
    run.held = held.is_some();
    let trace = guest.run(&Command::Run(run), &mut disk)?;
    disk.log.finish()?;
    if let Some(file) = blktrace {
        std::fs::write(file, trace)?;
    }
    let recording = Recording::open(out)?;
    let failed = recording.events().iter().find_map(|event| match *event {
        Logged::Returned { op, errno } if errno != 0 => Some((op, errno)),
        _ => None,
    });
    Event::Recorded { requests: recording.requests() as u32, failed }.emit();
    Ok(())
}
