//! A guest that is replaced when it is lost.

use std::path::PathBuf;

use crate::disk::EmptyDisk;
use crate::guest::{Guest, GuestConfig, GuestError};

pub struct Machine {
    config: GuestConfig,
    guest: Guest,
    generation: u32,
}

impl Machine {
    pub fn boot(config: GuestConfig) -> Result<Machine, GuestError> {
        let guest = Guest::boot(&config, &mut EmptyDisk::default())?;
        Ok(Machine { config, guest, generation: 0 })
    }

    /// A guest that waits for a command.
    pub fn guest(&mut self) -> Result<&mut Guest, GuestError> {
        if self.guest.is_gone() {
            self.guest = Guest::boot(&self.config, &mut EmptyDisk::default())?;
            self.generation += 1;
        }
        Ok(&mut self.guest)
    }

    /// A file of this machine's own, for a recording that is not kept.
    pub fn scratch(&self) -> PathBuf {
        self.config.work.join("recovery.pcr")
    }

    /// How many guests have been replaced.
    pub fn generation(&self) -> u32 {
        self.generation
    }
}
