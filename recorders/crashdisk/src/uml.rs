//! User-mode Linux: the kernel is a program, its root a folder of the host.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Command as Process;

use serde::Deserialize;

use crate::engine::{self, KERNEL_ARGUMENTS};
use crate::guest::GuestConfig;
use crate::sleep::{Sleep, Syscall, Thread};

const PRELOAD: &str = "LD_PRELOAD";
const IDLE: [i64; 4] = [libc::SYS_clock_nanosleep, libc::SYS_rt_sigsuspend, libc::SYS_poll, libc::SYS_epoll_wait];

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uml {
    /// A library that makes it run on hosts whose CPU has more registers than it knows (harness/xstate).
    preload: Option<PathBuf>,
}

pub fn command(uml: &Uml, config: &GuestConfig) -> Process {
    let mut process = Process::new(&config.kernel);
    process
        .arg(format!("mem={}M", config.memory_mib))
        .args(["root=/dev/root", "rootfstype=hostfs", "ro", "init=/init"])
        .args(KERNEL_ARGUMENTS.split(' '))
        .arg(format!("rootflags={}", config.root.display()))
        .args(config.sockets().map(|path| format!("virtio_uml.device={}:2", path.display())))
        .args(["con=null", "con0=null,fd:1", "ssl=null"])
        .arg(format!("uml_dir={}/", config.work.display()))
        .env("TMPDIR", "/dev/shm");
    if let Some(library) = &uml.preload {
        process.env(PRELOAD, before_others(library.into()));
    }
    if let Some(plain) = &config.plain_disk {
        process.arg(format!("ubd0={}", plain.display()));
    }
    process
}

/// The library, and after it what our own environment asks for.
fn before_others(library: OsString) -> OsString {
    match std::env::var_os(PRELOAD) {
        Some(others) if !others.is_empty() => [library, others].join(":".as_ref()),
        _ => library,
    }
}

/// Watch the kernel's threads. The idle loop waits in clock_nanosleep up to Linux 5.10, then in rt_sigsuspend, in newer
/// kernels in poll, and these have threads for interrupts that wait in poll and epoll_wait.
pub fn sleep(pid: u32) -> io::Result<Sleep> {
    let is_idle = |call: Syscall| IDLE.contains(&call.number);
    let threads = engine::threads(pid)?.into_iter().map(|tid| Thread::of(pid, tid, is_idle));
    Ok(Sleep::watching(threads.collect::<io::Result<_>>()?))
}
