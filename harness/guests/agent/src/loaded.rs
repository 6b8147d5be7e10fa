//! Programs that run at every crash state are loaded once, and each run is a fork of the loaded program.
//!
//! Under user-mode Linux a page fault takes 50 µs. e2fsck has nearly five hundred of them, mostly for its own files and
//! libraries; a fork has a hundred. The loaded program stands where its loader and the constructors of its libraries have
//! run, and its own code has not. It has not looked at the disk.
//!
//! This is for checkers such as those of the catalogue, whose forks say what new processes say. Scripts are started anew
//! each time. A program must not leave processes behind, nor ask for the number of its first thread.

use std::collections::HashMap;
use std::io::{self, Read, Seek};
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Mutex, OnceLock};

use postcrash_stopped::{mappings, registers, Mapping};

use crate::steady::out_of_turn;
use crate::sys::check;

const ELF: [u8; 4] = *b"\x7fELF";
/// Modes of mappings of programs and libraries that a process cannot write to.
const CODE: &str = "r-xp";
const CONSTANTS: &str = "r--p";
const BREAKPOINT: u8 = 0xcc;
const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// The type of the entry of /proc/PID/auxv that has the address of the program's first instruction: linux/auxvec.h.
const AT_ENTRY: u64 = 9;
/// The most that is told of each stream of a run.
pub const OUTPUT_BYTES_MAX: usize = 64 << 10;

/// A run of a program with its arguments, and where its end is told.
type Order = (String, Vec<String>, Sender<io::Result<Output>>);

/// Run a program to its end: a fork of the loaded program, or a new process if it cannot be loaded. Its streams are told
/// up to `OUTPUT_BYTES_MAX` at least. The environment is empty but for `LC_ALL`.
///
/// Loaded programs are children of a thread of their own, so that the main thread can wait for all of its children.
pub fn run(program: &str, arguments: &[String]) -> io::Result<Output> {
    static THREAD: OnceLock<Mutex<Sender<Order>>> = OnceLock::new();
    let orders = THREAD.get_or_init(|| {
        let (orders, received) = channel();
        std::thread::spawn(move || serve(&received));
        Mutex::new(orders)
    });
    let (ended, end) = channel();
    let order = (program.to_owned(), arguments.to_vec(), ended);
    orders.lock().expect("nothing panics while it is locked").send(order).expect("the thread does not end");
    end.recv().map_err(|_| io::Error::other("the thread that runs programs has ended"))?
}

fn serve(orders: &Receiver<Order>) {
    let mut programs = HashMap::new();
    for (program, arguments, ended) in orders {
        let _ = ended.send(run_one(&mut programs, (program, arguments)));
    }
}

/// Programs with their arguments. None stands for one that cannot be loaded.
type Programs = HashMap<(String, Vec<String>), Option<LoadedProgram>>;

fn run_one(programs: &mut Programs, key: (String, Vec<String>)) -> io::Result<Output> {
    if let Some(loaded) = programs.entry(key.clone()).or_insert_with(|| LoadedProgram::new(&key.0, &key.1).ok()) {
        if let Ok(child) = loaded.fork() {
            return loaded.finish(child);
        }
        // A workload may have sent a signal to all processes. The next run loads the program again.
        programs.remove(&key);
    }
    command(&key.0, &key.1).output()
}

/// The program with its arguments, as a new process would get it.
fn command(program: &str, arguments: &[String]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().env("LC_ALL", "C").stdin(Stdio::null());
    command
}

/// A process that ends with this value.
struct Process(Child);

impl Process {
    fn pid(&self) -> libc::pid_t {
        self.0.id() as libc::pid_t
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program at its first instruction, traced by the thread that has loaded it. Only this thread can run it.
struct LoadedProgram {
    process: Process,
    /// The registers at the first instruction.
    start: libc::user_regs_struct,
    /// Where the program has an instruction that makes a system call.
    syscall: u64,
    stdout: std::fs::File,
    stderr: std::fs::File,
}

impl LoadedProgram {
    /// Load a program with its arguments. A script is refused.
    fn new(program: &str, arguments: &[String]) -> io::Result<LoadedProgram> {
        let mut magic = [0; ELF.len()];
        std::fs::File::open(program)?.read_exact(&mut magic)?;
        if magic != ELF {
            return Err(io::Error::other("it is a script"));
        }
        let (stdout, stderr) = (memory_file()?, memory_file()?);
        let mut command = command(program, arguments);
        command.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
        // SAFETY: ptrace is a plain system call.
        unsafe { command.pre_exec(|| check(libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0)).map(|_| ())) };
        let process = Process(command.spawn()?);
        let pid = process.pid();
        stopped(pid, libc::SIGTRAP)?;
        trace(libc::PTRACE_SETOPTIONS, pid, libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACEFORK)?;
        let start = run_to(pid, entry(pid)?)?;
        let syscall = find_syscall(pid)?;
        bring_in_pages(pid)?;
        Ok(LoadedProgram { process, start, syscall, stdout, stderr })
    }

    /// Let a fork run, and wait for its end.
    fn finish(&mut self, child: libc::pid_t) -> io::Result<Output> {
        append_to(&self.stdout)?;
        append_to(&self.stderr)?;
        stopped(child, libc::SIGSTOP)?;
        set_registers(child, &self.start)?;
        // While a workload ran, the loaded program took turns, and its forks would go on with that.
        out_of_turn(child)?;
        trace(libc::PTRACE_DETACH, child, 0)?;
        let status = ExitStatus::from_raw(wait(child)?);
        Ok(Output { status, stdout: taken(&mut self.stdout)?, stderr: taken(&mut self.stderr)? })
    }

    /// Have the program fork. The fork is a child of this process, because the program's parent is.
    fn fork(&self) -> io::Result<libc::pid_t> {
        let pid = self.process.pid();
        let mut call = self.start;
        call.rip = self.syscall;
        call.rax = libc::SYS_clone as u64;
        (call.rdi, call.rsi, call.rdx) = ((libc::CLONE_PARENT | libc::SIGCHLD) as u64, 0, 0);
        (call.r10, call.r8) = (0, 0);
        set_registers(pid, &call)?;
        for stop in [libc::SIGTRAP | 0x80, libc::SIGTRAP | libc::PTRACE_EVENT_FORK << 8, libc::SIGTRAP | 0x80] {
            trace(libc::PTRACE_SYSCALL, pid, 0)?;
            stopped(pid, stop)?;
        }
        let child = registers(pid)?.rax as libc::pid_t;
        set_registers(pid, &self.start)?;
        Ok(child)
    }
}

/// Let the loader do its work, up to the program's first instruction. Returns the registers there.
fn run_to(pid: libc::pid_t, entry: u64) -> io::Result<libc::user_regs_struct> {
    let code = peek(pid, entry)?;
    poke(pid, entry, code & !0xff | u64::from(BREAKPOINT))?;
    trace(libc::PTRACE_CONT, pid, 0)?;
    stopped(pid, libc::SIGTRAP)?;
    poke(pid, entry, code)?;
    let start = registers(pid)?;
    if start.rip == entry + 1 {
        Ok(libc::user_regs_struct { rip: entry, ..start })
    } else {
        Err(io::Error::other("the program stopped before its first instruction"))
    }
}

/// A file in memory to which several processes append.
pub fn memory_file() -> io::Result<std::fs::File> {
    // SAFETY: a C string; a fresh descriptor is ours.
    let file = unsafe {
        let fd = check(libc::memfd_create(c"output".as_ptr(), libc::MFD_CLOEXEC))?;
        std::fs::File::from_raw_fd(fd as libc::c_int)
    };
    append_to(&file)?;
    Ok(file)
}

/// Have what is written to the file stand at its end. A program may have changed that.
fn append_to(file: &std::fs::File) -> io::Result<()> {
    // SAFETY: plain numbers.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_APPEND) }).map(|_| ())
}

/// The first bytes of the file, which is empty then.
fn taken(file: &mut std::fs::File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(OUTPUT_BYTES_MAX as u64).read_to_end(&mut bytes)?;
    if !bytes.is_empty() {
        file.set_len(0)?;
    }
    Ok(bytes)
}

/// The address of the program's first instruction.
fn entry(pid: libc::pid_t) -> io::Result<u64> {
    let vector = std::fs::read(format!("/proc/{pid}/auxv"))?;
    let numbers: Vec<u64> =
        vector.chunks_exact(8).map(|bytes| u64::from_ne_bytes(bytes.try_into().expect("8 bytes"))).collect();
    let found = numbers.chunks_exact(2).find(|pair| pair[0] == AT_ENTRY);
    found.map(|pair| pair[1]).ok_or_else(|| io::Error::other("the kernel does not tell where the program starts"))
}

/// Where the process has an instruction that makes a system call.
fn find_syscall(pid: libc::pid_t) -> io::Result<u64> {
    for code in mappings(pid)?.iter().filter(|part| part.mode == CODE) {
        let bytes = read_mapping(pid, code)?;
        if let Some(at) = bytes.windows(SYSCALL.len()).position(|window| window == SYSCALL) {
            return Ok(code.addresses.start + at as u64);
        }
    }
    Err(io::Error::other("the program makes no system call"))
}

/// Have forks start with the pages of the program's files in place. A fork that is without them has a page fault for each
/// page that it touches. The kernel copies the places of pages only in mappings in which a page was written to.
fn bring_in_pages(pid: libc::pid_t) -> io::Result<()> {
    for part in mappings(pid)?.iter().filter(|part| [CODE, CONSTANTS].contains(&part.mode.as_str())) {
        if !read_mapping(pid, part)?.is_empty() {
            poke(pid, part.addresses.start, peek(pid, part.addresses.start)?)?;
        }
    }
    Ok(())
}

fn read_mapping(pid: libc::pid_t, part: &Mapping) -> io::Result<Vec<u8>> {
    let Range { start, end } = part.addresses;
    postcrash_stopped::read(pid, start, (end - start) as usize)
}

/// Wait until the process stops in this way.
fn stopped(pid: libc::pid_t, stop: libc::c_int) -> io::Result<()> {
    let status = wait(pid)?;
    if libc::WIFSTOPPED(status) && status >> 8 == stop {
        Ok(())
    } else {
        Err(io::Error::other(format!("a loaded program has the status {status:#x}")))
    }
}

fn wait(pid: libc::pid_t) -> io::Result<libc::c_int> {
    let mut status = 0;
    // SAFETY: the status lives through the call.
    check(unsafe { libc::waitpid(pid, &mut status, libc::__WALL) })?;
    Ok(status)
}

fn trace(request: libc::c_uint, pid: libc::pid_t, data: libc::c_int) -> io::Result<()> {
    // SAFETY: requests whose data is a plain number.
    check(unsafe { libc::ptrace(request, pid, 0, data as libc::c_long) }).map(|_| ())
}

fn set_registers(pid: libc::pid_t, registers: &libc::user_regs_struct) -> io::Result<()> {
    // SAFETY: the structure lives through the call, which only reads it.
    check(unsafe { libc::ptrace(libc::PTRACE_SETREGS, pid, 0, registers) }).map(|_| ())
}

fn peek(pid: libc::pid_t, address: u64) -> io::Result<u64> {
    let bytes = postcrash_stopped::read(pid, address, 8)?;
    Ok(u64::from_ne_bytes(bytes.try_into().map_err(|_| io::Error::other("the program ends at its first instruction"))?))
}

fn poke(pid: libc::pid_t, address: u64, word: u64) -> io::Result<()> {
    // SAFETY: the kernel checks the address, which is in the other process.
    check(unsafe { libc::ptrace(libc::PTRACE_POKETEXT, pid, address, word) }).map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    impl LoadedProgram {
        fn run(&mut self) -> io::Result<Output> {
            let child = self.fork()?;
            self.finish(child)
        }
    }

    fn shell(script: &str) -> LoadedProgram {
        LoadedProgram::new("/bin/sh", &["-c".into(), script.into()]).expect("it is loaded")
    }

    #[test]
    fn each_run_starts_anew() {
        let file = std::env::temp_dir().join(format!("postcrash-loaded-{}", std::process::id()));
        let mut loaded = shell(&format!("cat {0}; echo $LC_ALL >&2; exit $(cat {0})", file.display()));
        for status in [3, 7, 0] {
            std::fs::write(&file, status.to_string()).expect("written");
            let ended = loaded.run().expect("it runs");
            assert_eq!(ended.status.code(), Some(status));
            assert_eq!((ended.stdout, ended.stderr), (status.to_string().into_bytes(), b"C\n".to_vec()));
        }
        std::fs::remove_file(&file).expect("it is there");
    }

    #[test]
    fn a_run_is_scheduled_like_a_new_process() {
        let mut loaded = shell("cut -d' ' -f41 /proc/$$/stat");
        // SAFETY: the structure lives through the call.
        let changed = unsafe {
            libc::sched_setscheduler(loaded.process.pid(), libc::SCHED_BATCH, &libc::sched_param { sched_priority: 0 })
        };
        assert_eq!(changed, 0);
        assert_eq!(loaded.run().expect("it runs").stdout, b"0\n");
    }

    #[test]
    fn what_a_run_does_to_its_streams_ends_with_it() {
        let script = "import fcntl, os; os.write(1, b'said'); fcntl.fcntl(1, fcntl.F_SETFL, os.O_NONBLOCK)";
        let mut loaded = LoadedProgram::new("/usr/bin/python3", &["-c".into(), script.into()]).expect("it is loaded");
        for _ in 0..2 {
            assert_eq!(loaded.run().expect("it runs").stdout, b"said");
        }
    }

    #[test]
    fn a_signal_and_much_output_are_told() {
        let ended = shell("yes | head -c 100000; kill -9 $$").run().expect("it runs");
        assert_eq!((ended.status.signal(), ended.stdout.len()), (Some(libc::SIGKILL), 65_536));
    }

    #[test]
    fn a_checker_says_what_a_new_process_of_it_says() {
        let image = std::env::temp_dir().join(format!("postcrash-loaded-{}.img", std::process::id()));
        let made = |blocks: &str| {
            let name = image.to_str().expect("UTF-8");
            let status = Command::new("/sbin/mkfs.ext4").args(["-q", "-F", "-b", "1024", name, blocks]).status();
            assert!(status.expect("it runs").success());
            std::fs::read(&image).expect("made")
        };
        let (small, large) = (made("2048"), made("8192"));
        let mut damaged = large.clone();
        damaged[4096..6144].fill(0xff);
        let arguments = ["-f".into(), "-n".into(), image.to_str().expect("UTF-8").into()];
        let mut loaded = LoadedProgram::new("/sbin/e2fsck", &arguments).expect("it is loaded");
        let mut codes = Vec::new();
        for bytes in [&large, &damaged, &small, &large, &vec![0; 4096]] {
            std::fs::write(&image, bytes).expect("written");
            let (ended, alone) = (loaded.run().expect("it runs"), command("/sbin/e2fsck", &arguments).output());
            assert_eq!(ended, alone.expect("it runs"));
            codes.push(ended.status.code());
        }
        assert_eq!((codes[0], codes[2], codes[3]), (Some(0), Some(0), Some(0)));
        assert!(codes[1] != Some(0) && codes[4] != Some(0));
        std::fs::remove_file(&image).expect("it is there");
    }

    #[test]
    fn a_signal_to_all_processes_spoils_no_run() {
        let arguments = ["-c".into(), "echo whoever-hears-this".into()];
        for signal in [0, libc::SIGTERM, libc::SIGKILL, 0] {
            for entry in std::fs::read_dir("/proc").expect("/proc").filter_map(Result::ok) {
                let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
                if line == b"/bin/sh\0-c\0echo whoever-hears-this\0" {
                    // SAFETY: plain numbers.
                    unsafe { libc::kill(process, signal) };
                }
            }
            let output = run("/bin/sh", &arguments).expect("it runs");
            assert_eq!((output.status.code(), output.stdout), (Some(0), b"whoever-hears-this\n".to_vec()));
        }
    }

    #[test]
    fn a_loaded_program_that_is_gone_is_started_anew_and_loaded_again() {
        let key = ("/bin/sh".to_owned(), vec!["-c".to_owned(), "echo here".to_owned()]);
        let mut programs = Programs::new();
        for _ in 0..2 {
            assert_eq!(run_one(&mut programs, key.clone()).expect("it runs").stdout, b"here\n");
            let loaded = programs.get_mut(&key).and_then(Option::as_mut).expect("it is loaded");
            loaded.process.0.kill().expect("it is ours");
            assert_eq!(run_one(&mut programs, key.clone()).expect("it runs").stdout, b"here\n");
            assert!(!programs.contains_key(&key), "it would never be loaded again");
        }
    }

    #[test]
    fn a_script_is_not_loaded() {
        let script = std::env::temp_dir().join(format!("postcrash-loaded-{}.sh", std::process::id()));
        std::fs::write(&script, "#!/bin/sh\necho here\n").expect("written");
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("it is ours");
        assert!(LoadedProgram::new(script.to_str().expect("UTF-8"), &[]).is_err());
        std::fs::remove_file(&script).expect("it is there");
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        assert!(LoadedProgram::new("/nowhere", &[]).is_err());
    }
}
