//! A guest that is replaced when it is lost.

use std::path::PathBuf;

use postcrash_core::explore::Explorer;
use postcrash_core::space::Space;
use postcrash_wire::{Command, Recover};

use crate::disk::memo::Recoveries;
use crate::disk::{holds_reads, EmptyDisk};
use crate::error::GuestError;
use crate::guest::config::{Engine, GuestConfig};
use crate::guest::Guest;

pub struct Machine {
    /// How a guest with a single test disk is started.
    single: GuestConfig,
    config: GuestConfig,
    guest: Guest,
    generation: u32,
    /// The kernel does not boot confined.
    is_unconfined: bool,
    /// What the machine's guests have recovered.
    pub recoveries: Recoveries,
}

impl Machine {
    /// Boot a guest. A kernel that does not boot confined is booted as a process with all rights of this one. No image
    /// from elsewhere has a part in this, because the first guest has an empty disk.
    pub fn boot(mut config: GuestConfig) -> Result<Machine, GuestError> {
        let guest = match Guest::boot(&config, &mut EmptyDisk::default()) {
            Err(GuestError::Boot(_)) if matches!(config.engine, Engine::Uml(_)) && !config.sees_host => {
                config.sees_host = true;
                Guest::boot(&config, &mut EmptyDisk::default())?
            }
            other => other?,
        };
        let is_unconfined = config.sees_host;
        let single = config.clone();
        Ok(Machine { single, config, guest, is_unconfined, generation: 0, recoveries: Recoveries::default() })
    }

    /// Why the guest has rights that it does not need, if it should be confined and is not.
    pub fn unconfined(&self) -> Option<String> {
        let reason = "its kernel does not boot confined".to_owned();
        self.guest.unconfined.clone().or(self.is_unconfined.then_some(reason))
    }

    /// A guest that is ready for a command.
    pub fn guest(&mut self) -> Result<&mut Guest, GuestError> {
        if self.guest.is_gone() {
            self.guest = Guest::boot(&self.config, &mut EmptyDisk::default())?;
            self.generation += 1;
        }
        Ok(&mut self.guest)
    }

    /// A guest that is ready for this command. Only a guest that runs programs of the host sees the host's files.
    pub fn guest_for(&mut self, command: &Command) -> Result<&mut Guest, GuestError> {
        let sees_host = command.runs_programs() || self.is_unconfined;
        if sees_host != self.config.sees_host {
            self.config.sees_host = sees_host;
            self.guest.end();
        }
        self.guest()
    }

    /// From now on guests have test disks of these sizes. The guest is ended if it has others.
    pub fn have_disks(&mut self, sizes: &[u64]) {
        let config = GuestConfig { sees_host: self.config.sees_host, ..self.single.with_disks(sizes) };
        let is_same =
            config.disk_sectors == self.config.disk_sectors && config.further_disks == self.config.further_disks;
        if !is_same {
            self.config = config;
            self.guest.end();
        }
    }

    /// End the guest. The next command gets a new one.
    pub fn dismiss(&mut self) {
        self.guest.end();
    }

    /// End the guest if a new one starts within a moment. `guest` starts it.
    pub fn dismiss_if_quick(&mut self) {
        if matches!(self.config.engine, Engine::Uml(_)) {
            self.guest.end();
        }
    }

    /// Do something with a guest. If the guest is lost, do it once more with a new one.
    pub fn twice<T>(
        &mut self,
        mut attempt: impl FnMut(&mut Machine) -> Result<T, GuestError>,
    ) -> Result<T, GuestError> {
        match attempt(self) {
            Err(GuestError::Lost(_)) => attempt(self),
            answer => answer,
        }
    }

    /// What a guest would report of the state of `space` that `explorer` is at, if that is known.
    pub fn recall(&mut self, recover: &Recover, space: Space<'_>, explorer: &mut dyn Explorer) -> Option<Vec<u8>> {
        let awaited = |sector| !holds_reads(space.interval) || self.guest.awaits(sector);
        self.recoveries.recall(recover, space, explorer, &awaited)
    }

    /// A file of this machine's own, for a recording that is deleted afterwards.
    pub fn scratch(&self) -> PathBuf {
        self.config.work.join("recovery.pcr")
    }

    /// How many guests have been replaced.
    pub fn generation(&self) -> u32 {
        self.generation
    }
}
