//! The test disk under dm-log-writes; where QEMU logs too, with a mirror between them.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::device_mapper::Mapping;
use crate::{modules, LOG_DISK, QEMU_DISK, TEST_DISK};

const LOG_WRITES: &str = "log-writes";
const LINEAR: &str = "linear";
/// Every request fails.
const NOTHING: &str = "error";
const MIRROR: &str = "mirror";
/// A mirror in step from the start, that keeps no log of its own, of regions of so many sectors.
const MIRROR_LOG: &str = "core 2 1024 nosync";

/// The mapping that logs. It is kept between recordings: to make and remove it takes longer than many a workload.
pub struct LogWrites {
    logged: Mapping,
    mirror: Option<Mapping>,
    is_logging: bool,
}

impl LogWrites {
    /// A mapping of nothing.
    pub fn create() -> io::Result<LogWrites> {
        modules::load(LOG_WRITES)?;
        Ok(LogWrites { logged: Mapping::create(LOG_WRITES, NOTHING, "")?, mirror: None, is_logging: false })
    }

    /// Map the test disk. What is written to it also goes to the disk that QEMU logs, where there is one.
    ///
    /// All of it is logged with `from_start`, else what comes behind [`LogWrites::begin`].
    pub fn map(&mut self, from_start: bool) -> io::Result<()> {
        self.mirror = Path::new(QEMU_DISK).exists().then(mirror).transpose()?;
        if from_start {
            return self.begin();
        }
        self.logged.switch(LINEAR, &format!("{} 0", below(self.mirror.as_ref())))
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

    /// Let go of the test disk, which brings all that was seen into the log.
    ///
    /// The end of logging puts what no flush has covered before all that still waits for its turn (`log_writes_dtr`
    /// of drivers/md/dm-log-writes.c); so a flush comes first.
    pub fn unmap(&mut self) -> io::Result<()> {
        let flushed = self.flush();
        self.logged.switch(NOTHING, "")?;
        self.is_logging = false;
        flushed?;
        self.mirror.take().map_or(Ok(()), Mapping::remove)
    }
}

fn below(mirror: Option<&Mapping>) -> &str {
    mirror.map_or(TEST_DISK, |mirror| &mirror.device)
}

fn logged(mirror: Option<&Mapping>) -> String {
    format!("{} {LOG_DISK}", below(mirror))
}

/// Reads are answered by the first disk.
fn mirror() -> io::Result<Mapping> {
    modules::load(MIRROR)?;
    Mapping::create(MIRROR, MIRROR, &format!("{MIRROR_LOG} 2 {TEST_DISK} 0 {QEMU_DISK} 0"))
}
