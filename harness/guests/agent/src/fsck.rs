//! The file system's own check or repair, run on the unmounted disk.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;

use serde::Serialize;

use crate::loaded::{self, OUTPUT_BYTES_MAX};
use crate::mount::KilledServer;
use crate::sys::{check, open};

#[derive(Serialize)]
pub struct FsckResult {
    /// Exit status; 128 + signal if a signal ended it, or ended the program that served the mount.
    status: i32,
    /// What the program printed. Empty if the status is 0.
    output: String,
}

impl FsckResult {
    /// What stands in place of a result: the disk is not as the file system would have left it.
    pub fn not_run(killed: &KilledServer) -> FsckResult {
        FsckResult { status: 128 + killed.signal, output: killed.to_string() }
    }
}

/// Requests for the number of sectors that the kernel reads ahead: linux/fs.h.
const BLKRASET: libc::Ioctl = 0x1262;
const BLKRAGET: libc::Ioctl = 0x1263;

/// Run `argv` (program, arguments and the device) and wait for its end. Read-ahead is off meanwhile: its blocks would
/// have to be decided too, because a page that the program then writes waits for the read.
pub fn fsck(argv: &[String]) -> io::Result<Option<FsckResult>> {
    let Some(device) = argv.last() else { return Ok(None) };
    let sectors = read_ahead(device, 0)?;
    let ended = run(argv);
    read_ahead(device, sectors)?;
    ended.map(Some)
}

/// Set the number of sectors of the device that are read ahead. Returns the number before.
fn read_ahead(device: &str, sectors: libc::c_ulong) -> io::Result<libc::c_ulong> {
    let disk = open(device, libc::O_RDONLY)?;
    let mut before: libc::c_long = 0;
    // SAFETY: the kernel writes one long; the other request takes a number.
    unsafe {
        check(libc::ioctl(disk.as_raw_fd(), BLKRAGET, &raw mut before))?;
        check(libc::ioctl(disk.as_raw_fd(), BLKRASET, sectors))?;
    }
    Ok(before as libc::c_ulong)
}

fn run(argv: &[String]) -> io::Result<FsckResult> {
    let (program, arguments) = argv.split_first().expect("a program");
    let ended = loaded::run(program, arguments).map_err(|e| io::Error::new(e.kind(), format!("{program}: {e}")))?;
    let status = ended.status.code().unwrap_or_else(|| 128 + ended.status.signal().unwrap_or(0));
    // A program that finds nothing wrong prints statistics (btrfs: bytes wasted in nodes) that depend on when a commit
    // happened. So this output is left out.
    let mut text = if status == 0 { Vec::new() } else { [ended.stdout, ended.stderr].concat() };
    text.truncate(OUTPUT_BYTES_MAX);
    Ok(FsckResult { status, output: String::from_utf8_lossy(&text).into_owned() })
}
