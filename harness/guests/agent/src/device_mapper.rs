//! Mappings of the whole test disk, by device mapper's ioctls (linux/dm-ioctl.h).

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsRawFd;

use postcrash_wire::units::SECTOR_BYTES;

use crate::sys::check;
use crate::TEST_DISK;

const CONTROL: &str = "/dev/mapper/control";
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
const FLAGS: usize = 28;
/// Suspend without a freeze of the file system that is mounted.
const SKIP_LOCKFS: u32 = 1 << 10;
const DEVICE_NUMBER: usize = 40;
const DEVICE_NAME: usize = 48;

pub struct MappedDevice {
    control: File,
    name: &'static str,
    pub device: String,
}

impl MappedDevice {
    /// Map the test disk by `target` with its `parameters`.
    pub fn create(name: &'static str, target: &str, parameters: &str) -> io::Result<MappedDevice> {
        let control = OpenOptions::new().read(true).write(true).open(CONTROL);
        let control = control.map_err(|error| because("device mapper", error))?;
        let number = ask(&control, name, CREATE, 0, 0, &[])?;
        let mapping = MappedDevice { control, name, device: format!("/dev/dm-{}", libc::minor(number)) };
        match mapping.switch(target, parameters) {
            Ok(()) => Ok(mapping),
            Err(error) => {
                mapping.remove()?;
                Err(error)
            }
        }
    }

    /// Map by another target from now on. A mounted file system stays mounted and is not asked to write anything.
    pub fn switch(&self, target: &str, parameters: &str) -> io::Result<()> {
        let switched = table(target, parameters).and_then(|table| {
            ask(&self.control, self.name, LOAD, 0, 1, &table)?;
            ask(&self.control, self.name, RESUME, SKIP_LOCKFS, 0, &[])
        });
        switched.map(|_| ()).map_err(|error| because(target, error))
    }

    /// Send the target a message.
    pub fn message(&self, text: &str) -> io::Result<()> {
        let message = [&0u64.to_le_bytes()[..], text.as_bytes(), b"\0"].concat();
        self.ask("message", MESSAGE, &message)
    }

    /// Undo the mapping once all its requests are done.
    pub fn remove(self) -> io::Result<()> {
        self.ask("remove", REMOVE, &[])
    }

    fn ask(&self, what: &str, number: u8, data: &[u8]) -> io::Result<()> {
        let answer = ask(&self.control, self.name, number, 0, 0, data);
        answer.map(|_| ()).map_err(|error| because(&format!("{}: {what}", self.name), error))
    }
}

/// struct dm_target_spec and its parameters. They map the whole test disk.
fn table(target: &str, parameters: &str) -> io::Result<Vec<u8>> {
    let sectors = File::open(TEST_DISK)?.seek(SeekFrom::End(0))? / SECTOR_BYTES as u64;
    let mut kind = target.as_bytes().to_vec();
    kind.resize(16, 0);
    let parameters = format!("{parameters}\0");
    Ok([&0u64.to_le_bytes()[..], &sectors.to_le_bytes(), &[0; 8], &kind, parameters.as_bytes()].concat())
}

fn because(what: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// Make an ioctl about the mapping `name` with `data` behind struct dm_ioctl. Returns the mapping's device number.
fn ask(control: &File, name: &str, number: u8, flags: u32, targets: u32, data: &[u8]) -> io::Result<libc::dev_t> {
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
    put(FLAGS, &flags.to_le_bytes());
    put(DEVICE_NAME, name.as_bytes());
    // _IOWR(0xfd, number, struct dm_ioctl)
    let request = 3 << 30 | (HEADER_BYTES as u64) << 16 | 0xfd << 8 | u64::from(number);
    // SAFETY: the buffer has the length in its data_size and lives through the call.
    check(unsafe { libc::ioctl(control.as_raw_fd(), request as _, bytes.as_mut_ptr()) })?;
    Ok(u64::from_le_bytes(bytes[DEVICE_NUMBER..DEVICE_NUMBER + 8].try_into().expect("eight bytes")))
}
