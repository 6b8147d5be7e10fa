//! The test disk under dm-log-writes; where QEMU logs too, with a mirror between them.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::device_mapper::MappedDevice;
use crate::{btrfs, modules, LOG_DISK, QEMU_DISK, TEST_DISK};

const LOG_WRITES: &str = "log-writes";
const LINEAR: &str = "linear";
const MIRROR: &str = "mirror";
/// A mirror in step from the start, that keeps no log of its own, of regions of so many sectors.
const MIRROR_LOG: &str = "core 2 1024 nosync";

/// The mappings.
pub struct LogWrites {
    logged: MappedDevice,
    mirror: Option<MappedDevice>,
    is_logging: bool,
}

impl LogWrites {
    /// Map the test disk. What is written to it also goes to the disk that QEMU logs, where there is one.
    ///
    /// All of it is logged with `from_start`, else what comes behind [`LogWrites::begin`].
    pub fn create(from_start: bool) -> io::Result<LogWrites> {
        modules::load(LOG_WRITES)?;
        btrfs::forget_devices()?;
        let mirror = Path::new(QEMU_DISK).exists().then(mirror).transpose()?;
        let (target, parameters) = if from_start {
            (LOG_WRITES, logged(mirror.as_ref()))
        } else {
            (LINEAR, format!("{} 0", below(mirror.as_ref())))
        };
        match MappedDevice::create(LOG_WRITES, target, &parameters) {
            Ok(logged) => Ok(LogWrites { logged, mirror, is_logging: from_start }),
            Err(error) => {
                mirror.map_or(Ok(()), MappedDevice::remove)?;
                Err(error)
            }
        }
    }

    /// Log from now on. All that was written must be durable.
    pub fn begin(&mut self) -> io::Result<()> {
        if !self.is_logging {
            self.logged.switch(LOG_WRITES, &logged(self.mirror.as_ref()))?;
            self.is_logging = true;
        }
        Ok(())
    }

    /// What is to be mounted.
    pub fn device(&self) -> &str {
        &self.logged.device
    }

    /// Put a mark into the log, if there is one yet: one word.
    pub fn mark(&self, word: &str) -> io::Result<()> {
        if self.is_logging {
            self.logged.message(&format!("mark {word}"))
        } else {
            Ok(())
        }
    }

    /// Bring all that was written so far into the log: it has a write once a flush covers it.
    pub fn flush(&self) -> io::Result<()> {
        File::open(&self.logged.device)?.sync_all()
    }

    /// Undo the mappings, which brings all that was seen into the log.
    ///
    /// Removal puts what no flush has covered before all that still waits for its turn (`log_writes_dtr` of
    /// drivers/md/dm-log-writes.c); so a flush comes first.
    pub fn remove(self) -> io::Result<()> {
        let flushed = self.flush();
        btrfs::forget_devices()?;
        self.logged.remove()?;
        flushed?;
        self.mirror.map_or(Ok(()), MappedDevice::remove)
    }
}

fn below(mirror: Option<&MappedDevice>) -> &str {
    mirror.map_or(TEST_DISK, |mirror| &mirror.device)
}

fn logged(mirror: Option<&MappedDevice>) -> String {
    format!("{} {LOG_DISK}", below(mirror))
}

/// Reads are answered by the first disk.
fn mirror() -> io::Result<MappedDevice> {
    modules::load(MIRROR)?;
    MappedDevice::create(MIRROR, MIRROR, &format!("{MIRROR_LOG} 2 {TEST_DISK} 0 {QEMU_DISK} 0"))
}
