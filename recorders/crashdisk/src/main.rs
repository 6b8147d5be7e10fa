//! The crash disk: one process for one guest. See `control` for its requests and answers.

mod control;
mod disk;
mod error;
mod guest;
mod jobs;
mod virtio;

use std::io::BufRead;
use std::time::Instant;

use postcrash_core::recording::RecordingError;
use postcrash_wire::Command;

use control::{HarnessEvent, HarnessRequest};
use disk::EmptyDisk;
use error::GuestError;
use guest::machine::Machine;
use guest::{process, termination};
use jobs::source::Source;
use jobs::{explore, record, recovery};

fn main() {
    if let Err(error) = termination::prepare() {
        HarnessEvent::Error { kind: "infrastructure", message: format!("no watcher: {error}"), console: String::new() }
            .emit();
        return;
    }
    let mut machine = None;
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let outcome = match serde_json::from_str(&line) {
            Ok(request) => handle(&mut machine, request),
            Err(error) => Err(GuestError::Input(format!("request cannot be read: {error}"))),
        };
        if let Err(error) = outcome {
            error_event(&error).emit();
        }
    }
}

fn handle(machine: &mut Option<Machine>, request: HarnessRequest) -> Result<(), GuestError> {
    if let HarnessRequest::Boot(config) = request {
        process::pin(config.cpu);
        let started = Instant::now();
        let booted = machine.insert(Machine::boot(config)?);
        let unconfined = booted.unconfined();
        HarnessEvent::Booted { seconds: started.elapsed().as_secs_f64(), unconfined }.emit();
        return Ok(());
    }
    let machine = machine.as_mut().ok_or_else(|| GuestError::Input("the first request must be boot".into()))?;
    match request {
        HarnessRequest::Boot(_) => unreachable!("handled above"),
        HarnessRequest::Record { base, out, run, metadata, held, blktrace } => {
            record::record(machine, record::Job { base, out, run, metadata, held, blktrace })
        }
        HarnessRequest::RecordRecovery { base, out, recover, marks, metadata } => {
            recovery::record(machine, &base, &out, recover, marks, &metadata)
        }
        HarnessRequest::Explore(job) => explore::explore(machine, &job),
        HarnessRequest::Execute { recording, base, model, interval, choices, recover } => {
            let source = Source::open(&recording, &base, &model)?;
            explore::execute(machine, &source, interval, choices, &recover)
        }
        HarnessRequest::Spin(spin) => {
            let result = machine.guest()?.run(&Command::Spin(spin), &mut EmptyDisk::default())?;
            HarnessEvent::Spun { result: serde_json::from_slice(&result).unwrap_or_default() }.emit();
            Ok(())
        }
    }
}

fn error_event(error: &GuestError) -> HarnessEvent {
    let kind = match error {
        GuestError::Input(_) | GuestError::Recording(RecordingError::Malformed { .. }) => "input",
        GuestError::Lost(_) => "lost",
        _ => "infrastructure",
    };
    let console = match error {
        GuestError::Lost(casualty) | GuestError::Boot(casualty) => casualty.console.clone(),
        GuestError::Agent(_, log) => log.clone(),
        _ => String::new(),
    };
    HarnessEvent::Error { kind, message: error.to_string(), console }
}
