//! User-mode Linux: the kernel is a program, and its root is a folder of the host.

use std::ffi::{OsStr, OsString};
use std::io;
use std::iter;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command as Process;

use crate::guest::config::{GuestConfig, Uml, KERNEL_ARGUMENTS};
use crate::guest::sleep::{Sleep, Syscall, Thread};
use crate::guest::{process, stacks, tracer};

const PRELOAD: &str = "LD_PRELOAD";
const IDLE: [i64; 4] = [libc::SYS_clock_nanosleep, libc::SYS_rt_sigsuspend, libc::SYS_poll, libc::SYS_epoll_wait];

/// The guest's folder within its work folder. Its management console is there.
const NAME: &str = "guest";
const MCONSOLE_MAGIC: u32 = 0xcafe_babe;
const MCONSOLE_VERSION: u32 = 2;
const MCONSOLE_BYTES: usize = 512;

/// The number of loops in a tick, for delays of a few microseconds. Without it the kernel would need ten ticks to
/// measure it. The number is about what a kernel measures on a machine of 2.6 GHz.
const LOOPS: &str = "lpj=25000000";
/// Four old pseudo terminals instead of 256. Programs in guests find no others, and each is two devices, for each of
/// which the kernel runs a helper program (see `run_no_helper` in the agent). These took most of the time of a boot.
const FEW_OLD_TERMINALS: &str = "pty.legacy_count=4";
/// No serial lines, which are 64 devices more. Nothing is connected to them.
const SERIAL_LINES: &str = "ssl_init";
/// A guest has one test disk, so no btrfs in it can have RAID 6.
const RAID6: &str = "raid6_select_algo";

pub fn command(uml: &Uml, config: &GuestConfig) -> Process {
    // Remove the folder of an earlier guest that was killed.
    let _ = std::fs::remove_dir_all(config.work.join(NAME));
    let mut process = Process::new(&config.kernel);
    process
        .arg(format!("mem={}M", config.memory_mib))
        .args(["root=/dev/root", "rootfstype=hostfs", "ro", "init=/init"])
        .args(KERNEL_ARGUMENTS.split(' '))
        .arg(format!("rootflags={}", config.root.display()))
        .args(config.sockets().map(|path| format!("virtio_uml.device={}:2", path.display())))
        .args(["con=null", "con0=null,fd:1", "ssl=null", LOOPS, FEW_OLD_TERMINALS])
        .arg(format!("initcall_blacklist={}", left_out(uml).join(",")))
        .arg(format!("uml_dir={}/", config.work.display()))
        .arg(format!("umid={NAME}"))
        .env("TMPDIR", "/dev/shm");
    if let Some(library) = &uml.preload {
        process.env(PRELOAD, before_others(library.into()));
    }
    if let Some(plain) = &config.plain_disk {
        process.arg(format!("ubd0={}", plain.display()));
    }
    process
}

/// What the kernel does not initialize.
fn left_out(uml: &Uml) -> Vec<&'static str> {
    iter::once(SERIAL_LINES).chain(uml.measures_raid6.then_some(RAID6)).collect()
}

/// The files of the libraries that are preloaded. Those that are named without a folder are the host's.
pub fn preloaded(uml: &Uml) -> Vec<PathBuf> {
    let own = std::env::var_os(PRELOAD).unwrap_or_default();
    let named = own.as_bytes().split(|byte| b": ".contains(byte)).map(|name| PathBuf::from(OsStr::from_bytes(name)));
    uml.preload.iter().cloned().chain(named).filter(|path| path.is_absolute()).collect()
}

/// This library, followed by the libraries that our own environment asks for.
fn before_others(library: OsString) -> OsString {
    match std::env::var_os(PRELOAD) {
        Some(others) if !others.is_empty() => [library, others].join(":".as_ref()),
        _ => library,
    }
}

/// Where the kernel is if it runs, as addresses of its own (`/proc/kallsyms` has their names), and what it answers to
/// the SysRq keys: print everything to the console, and the stacks of blocked tasks. It is not asked for registers,
/// because it would give wrong ones: it does not keep those of the signal that stands for the interrupt.
pub fn stacks(pid: u32, console: &Path, work: &Path) -> String {
    let addresses = match tracer::addresses(pid) {
        Ok(found) if found.is_empty() => String::new(),
        Ok(found) => {
            let lines = found.iter().map(|address| format!(" [<{address:08x}>]\n")).collect::<String>();
            format!("the kernel is running, at these addresses:\n{lines}")
        }
        Err(error) => format!("where the kernel is running cannot be told: {error}\n"),
    };
    addresses + &stacks::stacks(console, "9w", |key| press(pid, work, key))
}

/// Press a magic SysRq key by a request to the management console (arch/um/drivers/mconsole.h). The request is magic,
/// version and length, then the command. The answer also appears on the guest's console, where nothing is dropped.
/// The console's socket is seen from the root that the process has.
fn press(pid: u32, work: &Path, key: char) -> io::Result<()> {
    let command = format!("sysrq {key}");
    let numbers = [MCONSOLE_MAGIC, MCONSOLE_VERSION, command.len() as u32];
    let mut request: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
    request.extend_from_slice(command.as_bytes());
    request.resize(numbers.len() * size_of::<u32>() + MCONSOLE_BYTES, 0);
    let place = format!("/proc/{pid}/root{}/{NAME}/mconsole", work.display());
    UnixDatagram::unbound()?.send_to(&request, place).map(|_| ())
}

/// Watch the kernel's threads. The idle loop waits in clock_nanosleep up to Linux 5.10, then in rt_sigsuspend, and in
/// newer kernels in poll. Newer kernels also have threads for interrupts, which wait in poll and epoll_wait.
pub fn sleep(pid: u32) -> io::Result<Sleep> {
    let is_idle = |call: Syscall| IDLE.contains(&call.number);
    let threads = process::threads(pid)?.into_iter().map(|tid| Thread::of(pid, tid, is_idle));
    Ok(Sleep::watching(threads.collect::<io::Result<_>>()?))
}
