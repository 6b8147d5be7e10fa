//! A guest that is replaced when it is lost.

use std::path::PathBuf;

use postcrash_core::explore::Explorer;
use postcrash_core::space::Space;
use postcrash_wire::Recover;

use crate::disk::memo::Recoveries;
use crate::disk::{holds_reads, EmptyDisk};
use crate::error::GuestError;
use crate::guest::config::{Engine, GuestConfig};
use crate::guest::Guest;

pub struct Machine {
    config: GuestConfig,
    guest: Guest,
    generation: u32,
    /// What the machine's guests have recovered.
    pub recoveries: Recoveries,
}

impl Machine {
    pub fn boot(config: GuestConfig) -> Result<Machine, GuestError> {
        let guest = Guest::boot(&config, &mut EmptyDisk::default())?;
        Ok(Machine { config, guest, generation: 0, recoveries: Recoveries::default() })
    }

    /// A guest that is ready for a command.
    pub fn guest(&mut self) -> Result<&mut Guest, GuestError> {
        if self.guest.is_gone() {
            self.guest = Guest::boot(&self.config, &mut EmptyDisk::default())?;
            self.generation += 1;
        }
        Ok(&mut self.guest)
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
