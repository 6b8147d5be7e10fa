//! Reads a log entry by entry. Only one log sector is in memory, besides what the caller reads.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};

use postcrash_wire::units::SECTOR_BYTES;

use crate::{flag, sectors_of, LogError, ENTRY_BYTES, LOG_SECTOR_BYTES_MAX, MAGIC, SUPER_BYTES, VERSION};

/// One entry of a log. It was checked: its data is in the log, and its sectors (512 B) are on the disk.
#[derive(Debug)]
pub struct LogEntry {
    pub flush: bool,
    pub metadata: bool,
    pub body: Body,
}

#[derive(Debug)]
pub enum Body {
    /// A flush without data. If device mapper has cut it off a write, it may have FUA.
    Nothing {
        fua: bool,
    },
    /// `data` is the byte of the log where its data starts. `padded`: the data ends before the last sector does.
    Write {
        sector: u64,
        sectors: u64,
        data: u64,
        fua: bool,
        padded: bool,
    },
    Discard {
        sector: u64,
        sectors: u64,
    },
    Mark {
        text: Vec<u8>,
    },
}

pub struct LogReader {
    file: File,
    path: PathBuf,
    log_bytes: u64,
    disk_sectors: u64,
    log_sector_bytes: u64,
    entries: u64,
    /// Number of the next entry, and the byte where it starts.
    next: u64,
    at: u64,
}

impl LogReader {
    /// Open the log of a disk with `disk_sectors` (512 B).
    pub fn open(path: &Path, disk_sectors: u64) -> Result<LogReader, LogError> {
        let io = LogError::io(path);
        let kind = std::fs::metadata(path).map_err(&io)?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            let reason = "it is neither a file nor a block device".into();
            return Err(LogError::Refused { path: path.to_owned(), reason });
        }
        let mut file = File::open(path).map_err(&io)?;
        let log_bytes = file.seek(SeekFrom::End(0)).map_err(&io)?;
        let path = path.to_owned();
        let mut reader =
            LogReader { file, path, log_bytes, disk_sectors, log_sector_bytes: 0, entries: 0, next: 0, at: 0 };
        reader.superblock()?;
        Ok(reader)
    }

    pub fn log_sector_bytes(&self) -> u64 {
        self.log_sector_bytes
    }

    /// How many entries the superblock counts.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// The next entry. None after the last entry that the superblock counts.
    pub fn next_entry(&mut self) -> Result<Option<LogEntry>, LogError> {
        if self.next == self.entries {
            return Ok(None);
        }
        let (entry, end) = self.entry_here()?;
        self.next += 1;
        self.at = end;
        Ok(Some(entry))
    }

    /// Whether something that looks like one more entry follows the last counted one. Call this when there is no next
    /// entry.
    pub fn goes_on(&self) -> bool {
        self.entry_here().is_ok()
    }

    /// Read bytes of the log from `at` on.
    pub fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> Result<(), LogError> {
        self.file.read_exact_at(buffer, at).map_err(LogError::io(&self.path))
    }

    fn malformed(&self, reason: impl Into<String>) -> LogError {
        LogError::Malformed { path: self.path.clone(), at: self.at, reason: reason.into() }
    }

    fn bad_entry(&self, reason: impl std::fmt::Display) -> LogError {
        self.malformed(format!("entry {} of {}: {reason}", self.next, self.entries))
    }

    fn superblock(&mut self) -> Result<(), LogError> {
        if self.log_bytes < SUPER_BYTES as u64 {
            return Err(self.malformed(format!("{} bytes cannot hold a superblock", self.log_bytes)));
        }
        let mut bytes = [0; SUPER_BYTES];
        self.read_exact_at(&mut bytes, 0)?;
        let word = |index: usize| u64::from_le_bytes(bytes[index * 8..index * 8 + 8].try_into().expect("eight bytes"));
        let log_sector_bytes = u32::from_le_bytes(bytes[24..].try_into().expect("four bytes"));
        if bytes == [0; SUPER_BYTES] {
            return Err(self.malformed(
                "its superblock was never written (the kernel writes it at a FUA write or a mark, QEMU at a flush)",
            ));
        }
        if word(0) != MAGIC {
            return Err(self.malformed(format!("it starts with {:#x} instead of {MAGIC:#x}", word(0))));
        }
        if word(1) != VERSION {
            return Err(self.malformed(format!("version {} is unknown, it must be {VERSION}", word(1))));
        }
        let whole = log_sector_bytes as usize >= SECTOR_BYTES && log_sector_bytes.is_power_of_two();
        if !whole || log_sector_bytes > LOG_SECTOR_BYTES_MAX {
            return Err(self.malformed(format!("log sectors of {log_sector_bytes} bytes")));
        }
        self.entries = word(2);
        self.log_sector_bytes = log_sector_bytes.into();
        self.at = self.log_sector_bytes;
        Ok(())
    }

    /// The entry that starts at `self.at`, and the byte behind its data.
    fn entry_here(&self) -> Result<(LogEntry, u64), LogError> {
        let data = self.within_log(self.at, self.log_sector_bytes)?;
        let mut bytes = [0; ENTRY_BYTES];
        self.read_exact_at(&mut bytes, self.at)?;
        let word = |index: usize| u64::from_le_bytes(bytes[index * 8..index * 8 + 8].try_into().expect("eight bytes"));
        let (sector, sectors, flags, text_bytes) = (word(0), word(1), word(2), word(3));
        self.check_flags(flags, sectors)?;
        let entry = |body| LogEntry { flush: flags & flag::FLUSH != 0, metadata: flags & flag::METADATA != 0, body };
        if flags & flag::MARK != 0 {
            return Ok((entry(Body::Mark { text: self.text(text_bytes)? }), data));
        }
        if sectors == 0 {
            return Ok((entry(Body::Nothing { fua: flags & flag::FUA != 0 }), data));
        }
        let (sector, count) = self.within_disk(sector, sectors)?;
        if flags & flag::DISCARD != 0 {
            return Ok((entry(Body::Discard { sector, sectors: count }), data));
        }
        let data_bytes = count * SECTOR_BYTES as u64;
        let end = self.within_log(data, data_bytes)?;
        let (fua, padded) = (flags & flag::FUA != 0, text_bytes != 0 && text_bytes != data_bytes);
        Ok((entry(Body::Write { sector, sectors: count, data, fua, padded }), end))
    }

    fn check_flags(&self, flags: u64, sectors: u64) -> Result<(), LogError> {
        let alone = |kind: u64| flags & kind != 0 && flags & !(kind | flag::METADATA) != 0;
        if flags & !flag::KNOWN != 0 {
            return Err(self.bad_entry(format!("unknown flags {flags:#x}")));
        }
        if alone(flag::MARK) || alone(flag::DISCARD) {
            return Err(self.bad_entry(format!("flags {flags:#x} contradict each other")));
        }
        if flags & flag::MARK != 0 && sectors != 0 {
            return Err(self.bad_entry(format!("a mark with {sectors} sectors of data")));
        }
        if flags & (flag::MARK | flag::FLUSH) == 0 && sectors == 0 {
            return Err(self.bad_entry("it is empty"));
        }
        Ok(())
    }

    fn text(&self, text_bytes: u64) -> Result<Vec<u8>, LogError> {
        let room = self.log_sector_bytes - ENTRY_BYTES as u64;
        if text_bytes > room {
            return Err(self.bad_entry(format!("a mark of {text_bytes} bytes, there is room for {room}")));
        }
        let mut text = vec![0; text_bytes as usize];
        self.read_exact_at(&mut text, self.at + ENTRY_BYTES as u64)?;
        Ok(text)
    }

    /// The byte behind the `bytes` bytes that begin at `start`.
    fn within_log(&self, start: u64, bytes: u64) -> Result<u64, LogError> {
        start.checked_add(bytes).filter(|&end| end <= self.log_bytes).ok_or_else(|| {
            let left = self.log_bytes.saturating_sub(start);
            self.bad_entry(format!(
                "the log ends too early: {bytes} bytes are needed from byte {start} on, {left} are there"
            ))
        })
    }

    /// `sectors` log sectors from `sector` on, converted to sectors of 512 B.
    fn within_disk(&self, sector: u64, sectors: u64) -> Result<(u64, u64), LogError> {
        let ratio = sectors_of(self.log_sector_bytes);
        let first = sector.checked_mul(ratio);
        let count = sectors.checked_mul(ratio);
        first
            .zip(count)
            .filter(|(first, count)| first.checked_add(*count).is_some_and(|end| end <= self.disk_sectors))
            .ok_or_else(|| {
                let size = self.log_sector_bytes;
                let disk = self.disk_sectors.saturating_mul(SECTOR_BYTES as u64);
                self.bad_entry(format!(
                    "{sectors} sectors of {size} bytes from sector {sector} do not fit on a disk of {disk} bytes"
                ))
            })
    }
}
