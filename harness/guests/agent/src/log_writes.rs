//! The test disk under dm-log-writes. If QEMU logs too, a mirror stands between them.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::device_mapper::MappedDevice;
use crate::{btrfs, modules, LOG_DISK, QEMU_DISK, TEST_DISK};

const LOG_WRITES: &str = "log-writes";
const LINEAR: &str = "linear";
const MIRROR: &str = "mirror";
/// A mirror with regions of 1024 sectors. It is in step from the start and keeps no log of its own.
const MIRROR_LOG: &str = "core 2 1024 nosync";

/// The mappings.
pub struct LogWrites {
    logged: MappedDevice,
    mirror: Option<MappedDevice>,
    is_logging: bool,
}

impl LogWrites {
    /// Map the test disk. If there is a disk that QEMU logs, each write goes to that disk too.
    ///
    /// With `from_start` everything is logged, otherwise only what comes after [`LogWrites::begin`].
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

    /// Log from now on. All earlier writes must be durable.
    pub fn begin(&mut self) -> io::Result<()> {
        if !self.is_logging {
            self.logged.switch(LOG_WRITES, &logged(self.mirror.as_ref()))?;
            self.is_logging = true;
        }
        Ok(())
    }

    /// The device that is to be mounted.
    pub fn device(&self) -> &str {
        &self.logged.device
    }

    /// Put a mark, which is one word, into the log if there is one yet.
    pub fn mark(&self, word: &str) -> io::Result<()> {
        if self.is_logging {
            self.logged.message(&format!("mark {word}"))
        } else {
            Ok(())
        }
    }

    /// Bring all writes so far into the log. The log has a write once a flush covers the write.
    pub fn flush(&self) -> io::Result<()> {
        File::open(&self.logged.device)?.sync_all()
    }

    /// Undo the mappings, which brings everything that was seen into the log.
    ///
    /// A flush comes first. Without it, removal would put writes that no flush has covered before entries that still
    /// wait for their turn (`log_writes_dtr` of drivers/md/dm-log-writes.c).
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

/// The mirror. The first disk answers reads.
fn mirror() -> io::Result<MappedDevice> {
    modules::load(MIRROR)?;
    MappedDevice::create(MIRROR, MIRROR, &format!("{MIRROR_LOG} 2 {TEST_DISK} 0 {QEMU_DISK} 0"))
}
