//! Writes a log with log sectors of 512 bytes. No file exists at its path until [`LogWriter::finish`] has returned.

use std::fs::Permissions;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use postcrash_wire::units::SECTOR_BYTES;
use tempfile::NamedTempFile;

use crate::{flag, sectors_of, LogError, ENTRY_BYTES, MAGIC, VERSION};

/// A mark's text is cut to this length. It then fits in its sector with a zero behind it. replay-log compares the zero
/// too.
const TEXT_BYTES_MAX: usize = SECTOR_BYTES - ENTRY_BYTES - 1;
/// replay-log skips a larger discard if it cannot discard but writes zeros (max_zero_size in its log-writes.c). It also
/// holds the data of a whole entry in memory.
const ENTRY_SECTORS_MAX: u64 = (128 << 20) / SECTOR_BYTES as u64;

pub struct LogWriter {
    out: BufWriter<NamedTempFile>,
    path: PathBuf,
    entries: u64,
}

impl LogWriter {
    /// Start a log beside `path`.
    pub fn create(path: &Path) -> Result<LogWriter, LogError> {
        if path.exists() && !path.is_file() {
            let reason = "it is there already and is not a file".into();
            return Err(LogError::Refused { path: path.to_owned(), reason });
        }
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(path.file_name().unwrap_or_default());
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).permissions(Permissions::from_mode(0o666));
        let file = builder.tempfile_in(folder).map_err(LogError::io(path))?;
        let mut writer = LogWriter { out: BufWriter::new(file), path: path.to_owned(), entries: 0 };
        writer.put(&[0; SECTOR_BYTES])?;
        Ok(writer)
    }

    pub fn entries(&self) -> u64 {
        self.entries
    }

    pub fn flush(&mut self) -> Result<(), LogError> {
        self.entry(0, 0, flag::FLUSH, &[])
    }

    pub fn mark(&mut self, text: &str) -> Result<(), LogError> {
        let mut end = text.len().min(TEXT_BYTES_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.entry(0, 0, flag::MARK, &text.as_bytes()[..end])
    }

    pub fn write(&mut self, sector: u64, data: &[u8], fua: bool) -> Result<(), LogError> {
        let flags = if fua { flag::FUA } else { 0 };
        self.entry(sector, sectors_of(data.len() as u64), flags, &[])?;
        self.put(data)
    }

    /// Write zeros, as holes of the file.
    pub fn zeros(&mut self, sector: u64, sectors: u64) -> Result<(), LogError> {
        for (at, count) in entries_of(sector, sectors) {
            self.entry(at, count, 0, &[])?;
            let bytes = count as i64 * SECTOR_BYTES as i64;
            self.out.seek(SeekFrom::Current(bytes)).map_err(LogError::io(&self.path))?;
        }
        Ok(())
    }

    pub fn discard(&mut self, sector: u64, sectors: u64) -> Result<(), LogError> {
        entries_of(sector, sectors).try_for_each(|(at, count)| self.entry(at, count, flag::DISCARD, &[]))
    }

    fn entry(&mut self, sector: u64, sectors: u64, flags: u64, text: &[u8]) -> Result<(), LogError> {
        self.entries += 1;
        let mut bytes = [0; SECTOR_BYTES];
        let words = [sector, sectors, flags, text.len() as u64];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes[ENTRY_BYTES..ENTRY_BYTES + text.len()].copy_from_slice(text);
        self.put(&bytes)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        self.out.write_all(bytes).map_err(LogError::io(&self.path))
    }

    /// Write the superblock and move the log to its path.
    pub fn finish(mut self) -> Result<(), LogError> {
        let io = LogError::io(&self.path);
        let end = self.out.stream_position().map_err(&io)?;
        self.out.seek(SeekFrom::Start(0)).map_err(&io)?;
        for word in [MAGIC, VERSION, self.entries, SECTOR_BYTES as u64] {
            self.out.write_all(&word.to_le_bytes()).map_err(&io)?;
        }
        let file = self.out.into_inner().map_err(|error| io(error.into_error()))?;
        file.as_file().set_len(end).map_err(&io)?;
        file.as_file().sync_all().map_err(&io)?;
        file.persist(&self.path).map_err(|error| io(error.error))?;
        Ok(())
    }
}

/// (sector, sectors) of each entry that a request needs.
fn entries_of(sector: u64, sectors: u64) -> impl Iterator<Item = (u64, u64)> {
    let starts = (0..sectors).step_by(ENTRY_SECTORS_MAX as usize);
    starts.map(move |done| (sector + done, (sectors - done).min(ENTRY_SECTORS_MAX)))
}
