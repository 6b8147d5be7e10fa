//! What is explored: a recording, its base image and the device model.

use std::path::Path;

use postcrash_core::device::{self, DeviceModel};
use postcrash_core::ground::{Base, Ground};
use postcrash_core::mapped::release_pages;
use postcrash_core::recording::Recording;

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

    /// Give back the pages that guests have read if there are many.
    pub fn release_pages(&self) {
        release_pages(&[self.recording.mapped(), self.base.mapped()]);
    }
}
