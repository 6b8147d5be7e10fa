//! The test disk under dm-log-writes, by device mapper's ioctls (linux/dm-ioctl.h).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;

use crate::modules;
use crate::sys::check;
use crate::{LOG_DISK, TEST_DISK};

const CONTROL: &str = "/dev/mapper/control";
const MODULES: &str = "log-writes";
const NAME: &[u8] = b"logged";
const TARGET: &[u8] = b"log-writes";
const VERSION: [u32; 3] = [4, 0, 0];
/// Numbers of the ioctls.
const CREATE: u8 = 3;
const REMOVE: u8 = 4;
const RESUME: u8 = 6;
const LOAD: u8 = 9;
const MESSAGE: u8 = 14;
/// struct dm_ioctl: its length, and where its fields stand.
const HEADER_BYTES: usize = 312;
const DATA_SIZE: usize = 12;
const DATA_START: usize = 16;
const TARGET_COUNT: usize = 20;
const DEVICE_NUMBER: usize = 40;
const DEVICE_NAME: usize = 48;
const SECTOR_BYTES: u64 = 512;

/// The mapping. It logs from [`LogWrites::create`] on.
pub struct LogWrites {
    control: File,
    /// What is to be mounted.
    pub device: String,
}

impl LogWrites {
    /// Map the test disk.
    pub fn create() -> io::Result<LogWrites> {
        modules::load(MODULES)?;
        let control = OpenOptions::new().read(true).write(true).open(CONTROL);
        let control = control.map_err(|error| because("device mapper", error))?;
        let number = ask(&control, CREATE, 0, &[])?;
        let mapping = LogWrites { control, device: format!("/dev/dm-{}", libc::minor(number)) };
        let started = mapping.table().and_then(|table| {
            ask(&mapping.control, LOAD, 1, &table)?;
            ask(&mapping.control, RESUME, 0, &[])
        });
        match started {
            Ok(_) => Ok(mapping),
            Err(error) => {
                mapping.remove()?;
                Err(because("dm-log-writes", error))
            }
        }
    }

    /// struct dm_target_spec and its parameters: the whole test disk.
    fn table(&self) -> io::Result<Vec<u8>> {
        let sectors = std::io::Seek::seek(&mut File::open(TEST_DISK)?, io::SeekFrom::End(0))? / SECTOR_BYTES;
        let mut kind = TARGET.to_vec();
        kind.resize(16, 0);
        let parameters = format!("{TEST_DISK} {LOG_DISK}\0");
        let table = [&0u64.to_le_bytes()[..], &sectors.to_le_bytes(), &[0; 8], &kind, parameters.as_bytes()];
        Ok(table.concat())
    }

    /// Put a mark into the log: one word.
    pub fn mark(&self, word: &str) -> io::Result<()> {
        let message = [&0u64.to_le_bytes()[..], b"mark ", word.as_bytes(), b"\0"].concat();
        ask(&self.control, MESSAGE, 0, &message).map(|_| ()).map_err(|error| because("dm-log-writes: mark", error))
    }

    /// Undo the mapping, which brings all that it saw into the log.
    pub fn remove(self) -> io::Result<()> {
        ask(&self.control, REMOVE, 0, &[]).map(|_| ()).map_err(|error| because("dm-log-writes: remove", error))
    }
}

fn because(what: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// An ioctl about the mapping with `data` behind struct dm_ioctl. Returns the mapping's device number.
fn ask(control: &File, number: u8, targets: u32, data: &[u8]) -> io::Result<libc::dev_t> {
    let mut bytes = vec![0; HEADER_BYTES];
    bytes.extend_from_slice(data);
    let size = bytes.len() as u32;
    let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
    for (index, part) in VERSION.iter().enumerate() {
        put(4 * index, &part.to_le_bytes());
    }
    put(DATA_SIZE, &size.to_le_bytes());
    put(DATA_START, &(HEADER_BYTES as u32).to_le_bytes());
    put(TARGET_COUNT, &targets.to_le_bytes());
    put(DEVICE_NAME, NAME);
    // _IOWR(0xfd, number, struct dm_ioctl)
    let request = 3 << 30 | (HEADER_BYTES as u64) << 16 | 0xfd << 8 | u64::from(number);
    // SAFETY: the buffer is as long as its data_size says and lives through the call.
    check(unsafe { libc::ioctl(control.as_raw_fd(), request as _, bytes.as_mut_ptr()) })?;
    Ok(u64::from_le_bytes(bytes[DEVICE_NUMBER..DEVICE_NUMBER + 8].try_into().expect("eight bytes")))
}
