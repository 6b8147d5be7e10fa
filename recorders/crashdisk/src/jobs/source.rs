//! What is explored: a recording, its base image and the device model.

use std::path::Path;

use postcrash_core::device::{self, DeviceModel};
use postcrash_core::disks::Disks;
use postcrash_core::ground::{Base, Ground};
use postcrash_core::mapped::release_pages;
use postcrash_core::recording::Recording;
use postcrash_wire::Recover;

use crate::disk::overlay::Overlay;
use crate::error::GuestError;

pub struct Source {
    pub recording: Recording,
    pub base: Base,
    pub model: &'static dyn DeviceModel,
}

impl Source {
    pub fn open(recording: &Path, base: &Path, model: &str) -> Result<Source, GuestError> {
        let model = device::named(model).ok_or_else(|| {
            let known: Vec<_> = device::names().collect();
            GuestError::Input(format!("unknown device model '{model}'; known: {}", known.join(", ")))
        })?;
        let (recording, base) = (Recording::open(recording)?, Base::open(base)?);
        if base.sectors() != recording.disk_sectors() {
            let (have, want) = (base.sectors(), recording.disk_sectors());
            return Err(GuestError::Input(format!("the base image has {have} sectors, the recording is of {want}")));
        }
        Ok(Source { recording, base, model })
    }

    /// What a guest has written that is about to recover a crash state: see [`unwritten`].
    pub fn overlay(&self, recover: &Recover) -> Result<Overlay, GuestError> {
        unwritten(self.recording.disks(), recover)
    }

    /// Give back the pages that guests have read if there are many.
    pub fn release_pages(&self) {
        release_pages(&[self.recording.mapped(), self.base.mapped()]);
    }
}

/// Nothing is written yet. If a disk was lost, a blank one is in its place.
pub fn unwritten(disks: &Disks, recover: &Recover) -> Result<Overlay, GuestError> {
    match recover.lost_disk.map(|lost| lost as usize) {
        None => Ok(Overlay::default()),
        Some(lost) if lost < disks.len() => Ok(Overlay::over_blank(disks.range(lost))),
        Some(lost) => Err(GuestError::Input(format!("disk {lost} cannot be lost: there are {}", disks.len()))),
    }
}
