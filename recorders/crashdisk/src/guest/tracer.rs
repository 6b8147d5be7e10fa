//! Finds where a process is that runs and does not stop: its program counter, and the callers along the frame pointers.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

const STOP_MAX: Duration = Duration::from_millis(200);
const CALLERS_MAX: usize = 24;
/// A process that loops is in a system call now and then, for example when a signal has interrupted it.
const LOOKS: usize = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// The addresses, innermost first. There are none if the process waits for something whenever it is looked at.
pub fn addresses(pid: u32) -> io::Result<Vec<u64>> {
    if !is_seen_running(pid)? {
        return Ok(Vec::new());
    }
    let tracee = StoppedProcess::new(pid as i32)?;
    let registers = tracee.registers()?;
    let memory = File::open(format!("/proc/{pid}/mem"))?;
    let mut found = vec![registers.rip];
    let mut frame = registers.rbp;
    // A frame begins with the address of the caller's frame and the return address. Callers' frames have higher
    // addresses.
    let mut words = [0; 16];
    while found.len() < CALLERS_MAX && memory.read_exact_at(&mut words, frame).is_ok() {
        let word = |at: usize| u64::from_ne_bytes(words[at..at + 8].try_into().expect("eight bytes"));
        let (caller, address) = (word(0), word(8));
        if address == 0 {
            break;
        }
        found.push(address);
        if caller <= frame {
            break;
        }
        frame = caller;
    }
    Ok(found)
}

/// Whether the process runs when it is looked at, at most `LOOKS` times.
fn is_seen_running(pid: u32) -> io::Result<bool> {
    for _ in 0..LOOKS {
        if std::fs::read_to_string(format!("/proc/{pid}/syscall"))?.starts_with("running") {
            return Ok(true);
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
    Ok(false)
}

/// A process that is being traced. It goes on when this value is dropped.
struct StoppedProcess(i32);

impl StoppedProcess {
    fn new(pid: i32) -> io::Result<StoppedProcess> {
        ask(libc::PTRACE_SEIZE, pid, std::ptr::null_mut())?;
        let tracee = StoppedProcess(pid);
        ask(libc::PTRACE_INTERRUPT, pid, std::ptr::null_mut())?;
        let start = Instant::now();
        // SAFETY: this waits for a child of ours and asks for no status.
        while unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG | libc::__WALL) } != pid {
            if start.elapsed() > STOP_MAX {
                return Err(io::ErrorKind::TimedOut.into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(tracee)
    }

    fn registers(&self) -> io::Result<libc::user_regs_struct> {
        // SAFETY: the fields are plain numbers, for which zero is a valid value.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        ask(libc::PTRACE_GETREGS, self.0, (&mut registers as *mut libc::user_regs_struct).cast())?;
        Ok(registers)
    }
}

impl Drop for StoppedProcess {
    fn drop(&mut self) {
        let _ = ask(libc::PTRACE_DETACH, self.0, std::ptr::null_mut());
    }
}

fn ask(request: libc::c_uint, pid: i32, data: *mut libc::c_void) -> io::Result<()> {
    // SAFETY: `data` is null or points to memory that the request fills in.
    match unsafe { libc::ptrace(request, pid, std::ptr::null_mut::<libc::c_void>(), data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn addresses_in(program: &str) -> Vec<u64> {
        let mut child = Command::new("sh").args(["-c", program]).spawn().expect("a shell");
        std::thread::sleep(Duration::from_millis(300));
        let found = addresses(child.id());
        child.kill().expect("killed");
        child.wait().expect("gone");
        found.expect("told")
    }

    #[test]
    fn a_process_that_loops_is_somewhere() {
        assert!(addresses_in("while :; do :; done").first().is_some_and(|&address| address != 0));
    }

    #[test]
    fn a_process_that_waits_is_nowhere() {
        assert!(addresses_in("exec sleep 30").is_empty());
    }
}
