//! The kernel's own record of block requests: blktrace's ioctls and files. The kernel needs CONFIG_BLK_DEV_IO_TRACE.

use std::fs::{read_to_string, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;

use crate::mount::mount_debug;
use crate::sys::{check, errno};

/// Kernel memory for the trace. The kernel drops events that do not fit, and then the trace fails.
const BUFFER_BYTES: u32 = 256 << 10;
const BUFFERS: u32 = 32;
/// The tracing folder; guests have no /sys, except while they boot.
const DEBUG: &str = "/dev/debug";

/// `struct blk_user_trace_setup` of include/uapi/linux/blktrace_api.h.
#[repr(C)]
struct Setup {
    name: [u8; 32],
    act_mask: u16,
    buf_size: u32,
    buf_nr: u32,
    start_lba: u64,
    end_lba: u64,
    pid: u32,
}

/// `struct blk_user_trace_setup2`, since Linux 6.19: for a trace in the newer format. From 6.19 on, the kernel leaves
/// requests with FUA out of a trace in the older format (recorders/blktrace.py).
#[repr(C)]
struct Setup2 {
    name: [u8; 64],
    act_mask: u64,
    buf_size: u32,
    buf_nr: u32,
    start_lba: u64,
    end_lba: u64,
    pid: u32,
    flags: u32,
    reserved: [u64; 11],
}

/// `_IOWR(0x12, 115, struct blk_user_trace_setup)`, and `_IO(0x12, 116)` and so on; include/uapi/linux/fs.h.
const BLKTRACESETUP: libc::c_ulong = 0xc000_1273 | (size_of::<Setup>() as libc::c_ulong) << 16;
const BLKTRACESETUP2: libc::c_ulong = 0xc000_128e | (size_of::<Setup2>() as libc::c_ulong) << 16;
const BLKTRACESTART: libc::c_ulong = 0x1274;
const BLKTRACESTOP: libc::c_ulong = 0x1275;
const BLKTRACETEARDOWN: libc::c_ulong = 0x1276;

/// Tracing of one disk. It is on until this is dropped.
pub struct Blktrace {
    disk: File,
    /// The folder with the trace's files.
    files: String,
    messages: File,
}

impl Blktrace {
    pub fn start(device: &str) -> io::Result<Blktrace> {
        mount_debug(DEBUG).map_err(|e| match errno(&e) {
            libc::ENODEV => io::Error::other("this kernel has no debugfs, which blktrace needs (CONFIG_DEBUG_FS)"),
            _ => failed("debugfs", &e),
        })?;
        let disk = File::open(device)?;
        let name = set_up(&disk).map_err(|e| match errno(&e) {
            libc::ENOTTY => io::Error::other("this kernel has no blktrace (CONFIG_BLK_DEV_IO_TRACE)"),
            _ => failed("setting up", &e),
        })?;
        let files = format!("{DEBUG}/block/{name}");
        let messages = OpenOptions::new().write(true).open(format!("{files}/msg")).map_err(|e| failed("msg", &e))?;
        let trace = Blktrace { disk, files, messages };
        trace.control(BLKTRACESTART)?;
        Ok(trace)
    }

    /// Put a message into the trace.
    pub fn message(&mut self, text: &str) -> io::Result<()> {
        self.messages.write_all(text.as_bytes())
    }

    /// End the trace. Returns what the CPUs have written, one CPU after another.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        self.control(BLKTRACESTOP)?;
        let dropped = read_to_string(format!("{}/dropped", self.files)).map_err(|e| failed("dropped", &e))?;
        if dropped.trim() != "0" {
            return Err(io::Error::other(format!(
                "blktrace dropped {} events: too many for its memory",
                dropped.trim()
            )));
        }
        let mut found = Vec::new();
        for cpu in 0.. {
            match File::open(format!("{}/trace{cpu}", self.files)) {
                Ok(mut file) => file.read_to_end(&mut found)?,
                Err(error) if cpu > 0 && errno(&error) == libc::ENOENT => break,
                Err(error) => return Err(failed("trace", &error)),
            };
        }
        Ok(found)
    }

    fn control(&self, request: libc::c_ulong) -> io::Result<()> {
        // SAFETY: plain numbers.
        check(unsafe { libc::ioctl(self.disk.as_raw_fd(), request) }).map(|_| ())
    }
}

impl Drop for Blktrace {
    fn drop(&mut self) {
        let _ = self.control(BLKTRACESTOP);
        let _ = self.control(BLKTRACETEARDOWN);
    }
}

/// Set up tracing, in the newer format if the kernel has it. Returns the name of the trace's folder.
fn set_up(disk: &File) -> io::Result<String> {
    let (buf_size, buf_nr) = (BUFFER_BYTES, BUFFERS);
    let (act_mask, start_lba, end_lba, pid, flags, reserved) = (0, 0, 0, 0, 0, [0; 11]);
    let mut newer = Setup2 { name: [0; 64], act_mask, buf_size, buf_nr, start_lba, end_lba, pid, flags, reserved };
    // SAFETY: the call takes this structure, which lives through the call.
    let result = unsafe { libc::ioctl(disk.as_raw_fd(), BLKTRACESETUP2, &raw mut newer) };
    match check(result) {
        Ok(_) => return Ok(text(&newer.name)),
        Err(error) if errno(&error) != libc::ENOTTY => return Err(error),
        Err(_) => (),
    }
    let mut older = Setup { name: [0; 32], act_mask: 0, buf_size, buf_nr, start_lba, end_lba, pid };
    // SAFETY: as above.
    check(unsafe { libc::ioctl(disk.as_raw_fd(), BLKTRACESETUP, &raw mut older) })?;
    Ok(text(&older.name))
}

/// The text before the first zero.
fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned()
}

fn failed(what: &str, error: &io::Error) -> io::Error {
    io::Error::other(format!("blktrace: {what}: {error}"))
}
