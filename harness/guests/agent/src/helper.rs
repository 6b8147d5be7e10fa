//! The program that mounts a FUSE file system and serves it, and what it says.

use std::fs::{read_to_string, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;

use postcrash_wire::Mount;

use crate::lines::last_lines;
use crate::loaded::memory_file;
use crate::modules;
use crate::sys::check;
use crate::MOUNT_POINT;

const FUSE_DEVICE: &str = "/dev/fuse";
const MOUNTS: &str = "/proc/self/mounts";
/// How often a helper that has not mounted anything is looked at, in milliseconds.
const TICK_MS: libc::c_int = 20;
const OUTPUT_BYTES_MAX: u64 = 64 << 10;

/// What the helper of the last mount has written to both of its streams.
static OUTPUT: Mutex<Option<File>> = Mutex::new(None);

/// Mount `device` with a helper. It serves the mount until the target is unmounted, or has a process do so that goes to
/// the background. Both are children of ours, because the parent of that process ends.
///
/// The mount is there when this returns. The error has what the helper said, and no number.
pub fn mount(device: &str, mount: &Mount) -> io::Result<()> {
    if !Path::new(FUSE_DEVICE).exists() {
        modules::load(&mount.fstype)?;
    }
    let (program, arguments) = mount.helper.split_first().expect("a helper");
    let options = format!("noatime,{}", mount.options);
    let output = memory_file()?;
    let mut command = Command::new(program);
    command.args(arguments).args([device, MOUNT_POINT, "-o", options.trim_end_matches(',')]);
    command.env_clear().stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?);
    *OUTPUT.lock().expect("nothing panics while it is locked") = Some(output);
    let mounts = File::open(MOUNTS)?;
    let started = command.spawn().map_err(|error| error.to_string());
    started.and_then(|_| wait_for_mount(&mounts)).map_err(|how| {
        let last = last_lines(last_output().lines());
        io::Error::other(
            [program.as_str(), &how, &last].into_iter().filter(|each| !each.is_empty()).collect::<Vec<_>>().join(": "),
        )
    })
}

/// The end of what the helper of the last mount has written.
pub fn last_output() -> String {
    let output = OUTPUT.lock().expect("nothing panics while it is locked");
    output.as_ref().and_then(|file| end_of(file, OUTPUT_BYTES_MAX).ok()).unwrap_or_default()
}

/// The last bytes of a file, as text.
pub fn end_of(file: &File, bytes_max: u64) -> io::Result<String> {
    let length = file.metadata()?.len();
    let start = length.saturating_sub(bytes_max);
    let mut bytes = vec![0; (length - start) as usize];
    file.read_exact_at(&mut bytes, start)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Wait until something is mounted. The error says in words how the helper ended without this.
fn wait_for_mount(mounts: &File) -> Result<(), String> {
    loop {
        let (mut status, words) = (0, |error: io::Error| error.to_string());
        // SAFETY: waits for any child of this thread; the kernel writes its status.
        let ended = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::__WNOTHREAD) };
        if is_mounted().map_err(words)? {
            return Ok(());
        }
        match ended {
            0 => wait_for_change(mounts).map_err(words)?,
            1.. if ExitStatus::from_raw(status).success() => (),
            1.. => return Err(end(ExitStatus::from_raw(status))),
            _ => return Err("it ends and has not mounted anything".into()),
        }
    }
}

fn end(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("signal {signal} ends it"),
        None => format!("it ends with status {}", status.code().unwrap_or_default()),
    }
}

fn is_mounted() -> io::Result<bool> {
    let mounts = read_to_string(MOUNTS)?;
    Ok(mounts.lines().any(|line| line.split(' ').nth(1) == Some(MOUNT_POINT)))
}

/// Wait for a mount, which is an exceptional condition of the open file `mounts` (proc(5)), for a moment.
fn wait_for_change(mounts: &File) -> io::Result<()> {
    let mut wanted = libc::pollfd { fd: mounts.as_raw_fd(), events: libc::POLLPRI, revents: 0 };
    // SAFETY: one structure, which lives through the call.
    check(unsafe { libc::poll(&raw mut wanted, 1, TICK_MS) }).map(|_| ())
}
