//! What runs a guest's kernel: user-mode Linux, or QEMU.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};

use crate::guest::config::{Engine, GuestConfig, CONSOLE};
use crate::guest::confinement::Confinement;
use crate::guest::sleep::Sleep;
use crate::guest::{process, qemu, stacks, termination, uml};

impl Engine {
    /// Start the guest's process in a process group of its own. The watcher knows this group and kills it when this
    /// process ends. Also says why a process that should be confined is not.
    pub fn launch(&self, config: &GuestConfig) -> io::Result<(Child, Option<String>)> {
        let confined = match self {
            Engine::Uml(uml) => Confinement::of(config, uml).and_then(|found| match found {
                Some(confinement) => self.start(config, Some(confinement)).map(Some),
                None => Ok(None),
            }),
            Engine::Qemu(_) => Ok(None),
        };
        match confined {
            Ok(Some(child)) => Ok((child, None)),
            Ok(None) => Ok((self.start(config, None)?, None)),
            // In most containers it cannot be confined.
            Err(error) => Ok((self.start(config, None)?, Some(error.to_string()))),
        }
    }

    fn start(&self, config: &GuestConfig, confinement: Option<Confinement>) -> io::Result<Child> {
        let console = File::create(config.work.join(CONSOLE))?;
        let mut process = match self {
            Engine::Uml(uml) => uml::command(uml, config),
            Engine::Qemu(qemu) => qemu.command(config),
        };
        let keyboard = if matches!(self, Engine::Qemu(_)) { Stdio::piped() } else { Stdio::null() };
        process.stdin(keyboard).stdout(console.try_clone()?).stderr(console).process_group(0);
        let cpu = config.cpu;
        let file_bytes = if config.sees_host { None } else { Some(config.file_bytes()?) };
        // SAFETY: only async-signal-safe calls are made between fork and exec.
        unsafe {
            process.pre_exec(move || {
                termination::announce()?;
                process::pin(cpu);
                file_bytes.map_or(Ok(()), process::limit_files)?;
                confinement.as_ref().map_or(Ok(()), Confinement::enter)?;
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL); // another user's process forgets it
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

    /// What the kernel of a hanging guest is doing, or why this cannot be found out. The guest cannot be used
    /// afterwards.
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
