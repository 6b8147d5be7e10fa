//! What runs a guest's kernel: user-mode Linux, or QEMU.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};

use serde::Deserialize;

use crate::guest::GuestConfig;
use crate::sleep::Sleep;
use crate::{qemu, stacks, termination, uml};

/// Names of the guest's disks, as sockets in its work folder. The last is there only for a guest with a log disk.
pub const SOCKETS: [&str; 3] = ["disk", "mailbox", "log-disk"];
/// A kernel that dies ends its process, be it by panic or by oops. Only the last words go to the console, and what it
/// is asked for by SysRq keys, of which Debian's kernels allow only some by default.
pub const KERNEL_ARGUMENTS: &str = "quiet loglevel=1 log_buf_len=128K panic=-1 oops=panic sysrq_always_enabled";

/// File in a guest's work folder that takes what its kernel prints.
pub const CONSOLE: &str = "console";

#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "name", rename_all = "lowercase", deny_unknown_fields)]
pub enum Engine {
    Uml(uml::Uml),
    Qemu(qemu::Qemu),
}

impl Engine {
    /// Start the guest's process, in a process group of its own that the watcher knows and kills when this process ends.
    pub fn launch(&self, config: &GuestConfig) -> io::Result<Child> {
        let console = File::create(config.work.join(CONSOLE))?;
        let mut process = match self {
            Engine::Uml(uml) => uml::command(uml, config),
            Engine::Qemu(qemu) => qemu.command(config),
        };
        let keyboard = if matches!(self, Engine::Qemu(_)) { Stdio::piped() } else { Stdio::null() };
        process.stdin(keyboard).stdout(console.try_clone()?).stderr(console).process_group(0);
        let cpu = config.cpu;
        // SAFETY: only async-signal-safe calls between fork and exec.
        unsafe {
            process.pre_exec(move || {
                termination::announce()?;
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                if let Some(cpu) = cpu {
                    pin(cpu);
                }
                Ok(())
            });
        }
        let child = process.spawn().map_err(|error| {
            let program = Path::new(process.get_program()).display();
            io::Error::new(error.kind(), format!("{program}: {error}"))
        })?;
        termination::watch_over(child.id() as i32);
        Ok(child)
    }

    /// What the kernel of a guest that hangs is doing, or why that cannot be told. The guest is of no use afterwards.
    pub fn stacks(&self, process: &mut Child, work: &Path) -> String {
        let console = work.join(CONSOLE);
        match self {
            Engine::Uml(_) => uml::stacks(process.id(), &console, work),
            Engine::Qemu(_) => stacks::stacks(&console, qemu::KEYS, |key| qemu::press(process, key)),
        }
    }

    /// Watch whether the guest with this process stands still.
    pub fn sleep(&self, pid: u32) -> io::Result<Sleep> {
        match self {
            Engine::Uml(_) => uml::sleep(pid),
            Engine::Qemu(qemu) => qemu.sleep(pid),
        }
    }
}

/// Numbers of a process's threads.
pub fn threads(pid: u32) -> io::Result<Vec<u32>> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task"))?.collect::<io::Result<Vec<_>>>()?;
    Ok(entries.iter().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// Pin the calling process to one CPU; a CPU that does not exist leaves it as it is.
pub fn pin(cpu: usize) {
    // SAFETY: the set is plain data and lives through the call.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set);
    }
}

/// Kill a guest's processes and wait for the end.
pub fn kill(process: &mut Child) {
    termination::kill_group(process.id() as i32);
    let _ = process.wait();
    termination::forget(process.id() as i32);
}
