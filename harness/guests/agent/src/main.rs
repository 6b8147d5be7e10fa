//! The guest's init: takes commands from the mailbox, runs workloads, recovers crash states, reports trees.
//!
//! It is statically linked and has no shell. It makes few system calls: under user-mode Linux each costs about 15 µs.

mod bench;
mod blktrace;
mod btrfs;
mod calls;
mod checkpoint;
mod children;
mod commit;
mod device_mapper;
mod extents;
mod fsck;
mod guest_output;
mod held;
mod helper;
mod kernel_log;
mod left_out;
mod lines;
mod loaded;
mod log_limits;
mod log_writes;
mod mailbox;
mod modules;
mod mount;
mod mount_refused;
mod operations;
mod program;
mod recover;
mod remote;
mod run;
mod share;
mod steady;
mod sys;
mod unlisted;
mod untorn;
mod usage;
mod walk;

use std::io;
use std::path::Path;

use guest_output::GuestOutput;
use kernel_log::KernelLog;
use mailbox::Mailbox;
use postcrash_wire::{Command, Message};

/// Where the target is mounted.
const MOUNT_POINT: &str = "/mnt";
/// In the agent's own root: where programs of the host find their root, with the host's files and the target.
const HOST: &str = "/tmp/host";
/// The disk under test.
const TEST_DISK: &str = "/dev/vda";
const MAILBOX: &str = "/dev/vdb";
/// The disk where dm-log-writes logs. Only guests that record a single disk with dm-log-writes have it here.
const LOG_DISK: &str = "/dev/vdc";
/// The disk whose writes QEMU logs. Only guests that record with QEMU too have it.
const QEMU_DISK: &str = "/dev/vdd";
/// The modules that the disks need.
const BOOT_MODULES: &str = "boot";

/// The argument that makes of the agent a program that performs operations in the target, under a supervisor.
const PERFORM: &str = "--perform";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, word, fstype] = &arguments[..] {
        if word == PERFORM {
            return run::perform_from_input(fstype).unwrap_or_else(|error| eprintln!("postcrash-agent: {error}"));
        }
    }
    if let [_, quiet, end, name] = &arguments[..] {
        if [quiet, end] == modules::MODPROBE_ARGUMENTS {
            std::process::exit(i32::from(!modules::load_for_kernel(name)));
        }
    }
    if let Err(error) = serve() {
        eprintln!("postcrash-agent: {error}");
    }
    sys::power_off();
}

/// Keep the kernel from running a helper program when a device changes, as it does at every change of a mapping. There
/// is no such program, and under user-mode Linux the attempt costs a millisecond or two. A kernel without this setting
/// runs none.
fn run_no_helper() {
    let _ = std::fs::write("/proc/sys/kernel/hotplug", "\n");
}

/// Have the kernel join no requests to the test disks, so that a guest that waits for one need not wait for another that
/// is read ahead. A kernel without sysfs joins them. This costs recoveries, and makes no result wrong.
fn keep_requests_apart() {
    for disk in ('a'..='z').map(|letter| format!("vd{letter}")) {
        if disk != "vdb" && Path::new("/dev").join(&disk).exists() {
            let _ = mount::write_to_sys(&format!("block/{disk}/queue/nomerges"), "2");
        }
    }
}

fn serve() -> io::Result<()> {
    // Workloads give modes exactly. vfat takes its modes from the umask of the process that mounts it, so the umask is
    // the same in every guest.
    // SAFETY: a plain number.
    unsafe { libc::umask(0) };
    // fsck programs look in /proc to see whether the disk is mounted.
    mount::mount_proc()?;
    mount::mount_devices()?;
    run_no_helper();
    modules::serve_kernel();
    modules::load(BOOT_MODULES)?;
    keep_requests_apart();
    let mut mailbox = Mailbox::open(MAILBOX)?;
    let mut log = KernelLog::open()?;
    loop {
        let result = match mailbox.next_command()? {
            Command::Stop => return Ok(()),
            Command::Run(run) => run::run(&mut mailbox, &mut log, &run),
            Command::Recover(recover) => recover::recover(&mut mailbox, &mut log, &recover, TEST_DISK),
            Command::Spin(spin) => bench::spin(&mut mailbox, &mut log, &spin),
        };
        if let Err(error) = result {
            let output = GuestOutput::since_mount(&log.since_begin().unwrap_or_default());
            mailbox.send(&Message::Failed { reason: error.to_string(), log: output.log })?;
        }
    }
}
