//! The file system's own check, run on the unmounted disk.

use std::io;
use std::process::{Command, Stdio};

use serde::Serialize;

const OUTPUT_BYTES_MAX: usize = 64 << 10;

#[derive(Serialize)]
pub struct Fsck {
    /// Exit status; 128 + signal if it was killed.
    status: i32,
    /// What it printed, empty where the status is 0.
    output: String,
}

/// Run `argv` (program and arguments) and wait for it.
pub fn fsck(argv: &[String]) -> io::Result<Option<Fsck>> {
    use std::os::unix::process::ExitStatusExt;
    let Some((program, arguments)) = argv.split_first() else { return Ok(None) };
    let output = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|e| io::Error::new(e.kind(), format!("{program}: {e}")))?;
    let status = output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or(0));
    // A program that is content prints statistics (btrfs: bytes wasted in nodes) that differ with the time of a commit.
    let mut text = if status == 0 { Vec::new() } else { [output.stdout, output.stderr].concat() };
    text.truncate(OUTPUT_BYTES_MAX);
    Ok(Some(Fsck { status, output: String::from_utf8_lossy(&text).into_owned() }))
}
