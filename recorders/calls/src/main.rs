//! `postcrash-calls FOLDER OUT COMMAND…` runs a program and writes to the file OUT, as lines of JSON, what each of its system
//! calls changes in FOLDER, makes durable there, or says on standard output.
//!
//! If OUT is `-`, what the program says is passed on to the standard output, each part when the step in which it was said
//! has been noted, and the packed trace follows at the end (pack.rs). Nothing else is written anywhere.
//!
//! The program is not asked what its calls mean. The folder is looked at after each call that can change it, so a store
//! through a mapping or an unusual call is seen as well. Its exit status is that of the program.

mod folder;
mod kernel_work;
mod kinds;
mod pack;
mod process;
mod sockets;
mod stack;
mod step;
mod trace;
mod watch;

use std::fs::File;
use std::io::{self, BufWriter};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitCode};

use folder::Folder;
use pack::Pack;
use postcrash_stopped::check;
use watch::Watch;

/// So many bytes may wait in the program's standard output.
const PIPE_BYTES: libc::c_int = 1 << 20;
/// Looks at the whole folder after every call: what tests compare with.
const ALWAYS: &str = "POSTCRASH_LOOK_ALWAYS";
/// In place of a file for the trace.
const STANDARD_OUTPUT: &str = "-";

fn main() -> ExitCode {
    match run() {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("postcrash-calls: {error}");
            ExitCode::from(70)
        }
    }
}

fn run() -> io::Result<u8> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [root, out, program, rest @ ..] = arguments.as_slice() else {
        return Err(io::Error::other("usage: postcrash-calls FOLDER OUT COMMAND…"));
    };
    let (folder, begin) = Folder::open(Path::new(root))?;
    let forward = if out == STANDARD_OUTPUT { Some(standard_output()?) } else { None };
    let mut output: Box<dyn io::Write> = match &forward {
        Some(forward) => Box::new(Pack::new(forward.try_clone()?)),
        None => Box::new(BufWriter::new(File::create(out)?)),
    };
    serde_json::to_writer(&mut output, &begin)?;
    output.write_all(b"\n")?;
    let (reader, writer) = pipe()?;
    let mut command = Command::new(program);
    command.args(rest).stdout(writer);
    // SAFETY: one call that allocates nothing, between fork and exec.
    unsafe { command.pre_exec(|| check(libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0)).map(drop)) };
    let started = command.spawn()?;
    drop(command);
    let mut watch = Watch::new(folder, output, reader, forward, std::env::var_os(ALWAYS).is_some())?;
    let status = trace::run(started.id() as libc::pid_t, &mut watch)?;
    watch.end()?;
    Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)) as u8)
}

fn standard_output() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

fn pipe() -> io::Result<(File, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the array lives through the call, and the descriptors are ours.
    unsafe {
        check(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC))?;
        libc::fcntl(ends[0], libc::F_SETPIPE_SZ, PIPE_BYTES);
        Ok((File::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}
