//! Checks whether a guest's reports can be trusted.
//!
//! A guest whose driver or agent is broken reports every crash state alike, which looks like perfect pruning. So the
//! base image as mkfs made it must first mount in the guest, and pass fsck if this is asked for. Every guest must
//! report the base image alike, at the start and at the end.

use postcrash_wire::{Command, Recover};
use serde_json::Value;

use crate::control::{HarnessEvent, Work};
use crate::disk::PlainDisk;
use crate::error::GuestError;
use crate::guest::machine::Machine;
use crate::jobs::kernel_log::agree;
use crate::jobs::source::Source;

pub struct Trust<'a> {
    pub source: &'a Source,
    pub recover: &'a Recover,
    expected: Option<Vec<u8>>,
    /// Generation of the guest that is trusted.
    trusted: Option<u32>,
}

impl<'a> Trust<'a> {
    pub fn new(source: &'a Source, recover: &'a Recover) -> Self {
        Trust { source, recover, expected: None, trusted: None }
    }

    /// Try out the machine's guest unless it is trusted already. A guest that is lost over this is replaced once.
    pub fn establish(&mut self, machine: &mut Machine) -> Result<(), GuestError> {
        machine.twice(|machine| self.try_out(machine))
    }

    fn try_out(&mut self, machine: &mut Machine) -> Result<(), GuestError> {
        machine.guest()?;
        if self.trusted == Some(machine.generation()) {
            return Ok(());
        }
        // The first look is not compared, because some messages are logged only once in a kernel's life.
        self.look(machine)?;
        self.compare(machine)?;
        self.trusted = Some(machine.generation());
        Ok(())
    }

    /// Check that the base image looks as it did before. If the guest is lost over this, a new one must show it.
    pub fn confirm(&mut self, machine: &mut Machine) -> Result<(), GuestError> {
        match self.compare(machine) {
            Err(GuestError::Lost(_)) => self.try_out(machine),
            answer => answer,
        }
    }

    fn compare(&mut self, machine: &mut Machine) -> Result<(), GuestError> {
        let seen = self.look(machine)?;
        let expected = self.expected.get_or_insert_with(|| seen.clone());
        if expected != &seen && !agree(&parsed(expected), &parsed(&seen)) {
            let (now, then) = (String::from_utf8_lossy(&seen), String::from_utf8_lossy(expected));
            let changed = format!("a known good disk is observed as {now}, before it was {then}");
            return Err(GuestError::Agent(changed, String::new()));
        }
        Ok(())
    }

    fn look(&self, machine: &mut Machine) -> Result<Vec<u8>, GuestError> {
        let mut disk = PlainDisk { base: &self.source.base, overlay: self.source.overlay(self.recover)? };
        let answer = machine.guest()?.run(&Command::Recover(self.recover.clone()), &mut disk);
        if let Err(GuestError::Lost(casualty)) = &answer {
            HarnessEvent::LostAtWork { during: Work::Trust, started: 0, returned: 0, casualty: casualty.clone() }
                .emit();
        }
        let bytes = answer?;
        let observation = parsed(&bytes);
        match objection(&observation) {
            None => Ok(bytes),
            Some(objection) => Err(GuestError::Input(objection)),
        }
    }
}

fn parsed(report: &[u8]) -> Value {
    serde_json::from_slice(report).unwrap_or_default()
}

/// Why the base image as it was made is not in order. None if it is.
fn objection(observation: &Value) -> Option<String> {
    let mount_errno = observation.get("mount_errno").and_then(Value::as_u64);
    if mount_errno != Some(0) {
        let log = observation.get("klog").map(Value::to_string).unwrap_or_default();
        let errno = mount_errno.map_or("?".into(), |e| e.to_string());
        let helper =
            observation.get("helper").and_then(Value::as_str).map(|message| format!("; {message}")).unwrap_or_default();
        return Some(format!("the base image does not mount (errno {errno}){helper}; kernel log: {log}"));
    }
    let status = observation.pointer("/fsck/status").and_then(Value::as_i64);
    let output = observation.pointer("/fsck/output").and_then(Value::as_str).unwrap_or_default();
    let refused = status.filter(|&status| status != 0);
    refused.map(|status| format!("fsck of the base image exits with status {status}: {}", output.replace('\n', " | ")))
}
