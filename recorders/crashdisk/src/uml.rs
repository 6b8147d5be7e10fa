//! User-mode Linux: the kernel is a program, its root a folder of the host.

use std::io;
use std::process::Command as Process;

use crate::engine::{KERNEL_ARGUMENTS, SOCKETS};
use crate::guest::GuestConfig;
use crate::sleep::{Sleep, Thread};

pub fn command(config: &GuestConfig) -> Process {
    let mut process = Process::new(&config.kernel);
    process
        .arg(format!("mem={}M", config.memory_mib))
        .args(["root=/dev/root", "rootfstype=hostfs", "ro", "init=/init"])
        .args(KERNEL_ARGUMENTS.split(' '))
        .arg(format!("rootflags={}", config.root.display()))
        .args(SOCKETS.map(|name| format!("virtio_uml.device={}:2", config.work.join(name).display())))
        .args(["con=null", "con0=null,fd:1", "ssl=null"])
        .arg(format!("uml_dir={}/", config.work.display()))
        .env("TMPDIR", "/dev/shm");
    if let Some(plain) = &config.plain_disk {
        process.arg(format!("ubd0={}", plain.display()));
    }
    process
}

/// The main process runs the kernel; its idle loop waits in rt_sigsuspend.
pub fn sleep(pid: u32) -> io::Result<Sleep> {
    Ok(Sleep::watching(vec![Thread::of(pid, pid, |call| call.number == libc::SYS_rt_sigsuspend)?]))
}
