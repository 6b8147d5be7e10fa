//! Recording: one run of a workload on a base image.

use std::path::{Path, PathBuf};

use postcrash_core::ground::{Base, Ground};
use postcrash_core::recording::RecordingWriter;
use postcrash_wire::{Command, Mount, Run};
use serde_json::Value;

use crate::control::{HarnessEvent, Work};
use crate::disk::{Marks, RecordingDisk, RecordingSummary};
use crate::error::GuestError;
use crate::guest::machine::Machine;
use crate::guest::Guest;

/// What the agent says if processes of an earlier run still have the disk, so that nothing was run. A new guest has none.
const BUSY: &str = "mount: Device or resource busy";

/// What is recorded, and where it goes.
pub struct Job {
    pub base: PathBuf,
    pub out: PathBuf,
    pub run: Run,
    pub metadata: String,
    /// Seed of completions that are held back.
    pub held: Option<u64>,
    /// Where the kernel's own trace of the requests goes.
    pub blktrace: Option<PathBuf>,
}

/// Run a workload and write the recording. If the guest is lost, the recording holds what came before that.
pub fn record(machine: &mut Machine, mut job: Job) -> Result<(), GuestError> {
    job.run.blktrace = job.blktrace.is_some();
    job.run.held = job.held.is_some();
    let disks = disks_of(&job.base, &job.run.mount)?;
    machine.have_disks(&disks);
    let command = Command::Run(job.run);
    let attempt = |machine: &mut Machine| {
        let base = Base::open(&job.base)?;
        let writer = RecordingWriter::create(&job.out, &disks, &job.metadata)?;
        run(machine.guest_for(&command)?, &command, RecordingDisk::new(&base, writer, job.held), Work::Run)
    };
    let (answer, RecordingSummary { requests, failed }) = match machine.twice(attempt) {
        Err(GuestError::Agent(text, _)) if text.starts_with(BUSY) => {
            machine.dismiss();
            attempt(machine)?
        }
        result => result?,
    };
    let mut reply = Value::Null;
    if let Some(file) = job.blktrace {
        std::fs::write(file, answer)?;
    } else if !answer.is_empty() {
        let unreadable = |error| GuestError::Agent(format!("what the run said cannot be read: {error}"), String::new());
        reply = serde_json::from_slice(&answer).map_err(unreadable)?;
    }
    HarnessEvent::Recorded {
        requests,
        failed,
        transcripts: reply["transcripts"].take(),
        output: reply["output"].take(),
    }
    .emit();
    Ok(())
}

/// Sectors of each disk of the image `base`, which is mounted like this.
pub fn disks_of(base: &Path, mount: &Mount) -> Result<Vec<u64>, GuestError> {
    let sectors = Base::open(base)?.sectors();
    if mount.disks.is_empty() {
        return Ok(vec![sectors]);
    }
    match mount.disks.iter().fold(0, |sum: u64, disk| sum.saturating_add(*disk)) {
        all if all == sectors => Ok(mount.disks.clone()),
        all => Err(GuestError::Input(format!("the image has {sectors} sectors, and its disks have {all}"))),
    }
}

/// Have the guest run `command` on `disk` and finish the recording, even if the guest is lost.
pub fn run(
    guest: &mut Guest,
    command: &Command,
    mut disk: RecordingDisk<'_>,
    during: Work,
) -> Result<(Vec<u8>, RecordingSummary), GuestError> {
    let answer = guest.run(command, &mut disk);
    let Marks { started, returned } = disk.log.marks;
    let summary = disk.log.finish()?;
    if let Err(GuestError::Lost(casualty)) = &answer {
        HarnessEvent::LostAtWork { during, started, returned, casualty: casualty.clone() }.emit();
    }
    answer.map(|answer| (answer, summary))
}
