//! The first process of the box: it makes the box, starts the command, and ends with its status.
//!
//! The kernel ends all other processes of the box with it, and ends it with the supervisor.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use rustix::fs::{open, Mode, OFlags};
use rustix::process::{
    ioctl_tiocsctty, kill_process_group, pidfd_open, set_dumpable_behavior, set_parent_process_death_signal, setsid,
    wait, DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions, WaitStatus,
};
use rustix::pty::{ioctl_tiocgptpeer, unlockpt, OpenptFlags};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::network::{self, Ends};
use super::privileges::{self, drop_privileges, User};
use super::root;
use crate::canary::{self, Canary};
use crate::filter;
use crate::keeper::Keeper;
use crate::link::Link;
use crate::sys;

/// The statuses of a command that cannot be run, as shells have them.
const NOT_FOUND: i32 = 127;
const NOT_RUN: i32 = 126;
/// The status of a box that cannot be made.
const NOT_MADE: i32 = 125;
const SIGNALLED: i32 = 128;

/// What a box consists of.
pub struct Plan<'a> {
    /// Where the file system is, outside and inside.
    pub place: &'a Path,
    /// The file system, as a mount that is nowhere.
    pub tree: &'a OwnedFd,
    /// Folders of the outside that the box sees although it has its own in their place.
    pub shown: &'a [PathBuf],
    pub command: &'a [OsString],
    pub user: Option<&'a User>,
    /// Standard input, output and error. None is a terminal of the box.
    pub streams: [Option<OwnedFd>; 3],
    pub network: Option<Ends>,
}

/// A box that runs, seen from outside.
pub struct Inside {
    pub init: OwnedFd,
    /// Where system calls of the box ask for an answer.
    pub listener: OwnedFd,
    /// The other side of the box's terminal.
    pub terminal: Option<OwnedFd>,
    /// The other side of the box's TUN, and the network namespace, which lasts as long as this descriptor.
    pub network: Option<(OwnedFd, OwnedFd)>,
}

/// Make a box and start its command. The process must have one thread.
pub fn start(plan: Plan<'_>, keeper: &Keeper) -> Result<Inside> {
    let (ours, its) = Link::pair()?;
    let ipc = if canary::is(Canary::SharedMemory) { 0 } else { libc::CLONE_NEWIPC };
    let own = libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWUTS | libc::CLONE_NEWNET | ipc;
    let Some(pid) = sys::fork(own).context("namespaces")? else {
        drop(ours);
        sys::leave(live(&its, plan));
    };
    drop(its);
    let init = pidfd_open(pid, PidfdFlags::empty()).context("pidfd_open")?;
    keeper.watch(&init)?;
    ours.done(&[])?;
    ours.wait()?.context("the first process of the box has ended")?;
    privileges::map_users(pid).context("users of the box")?;
    ours.done(&[])?;
    let mut given = ours.wait()?.context("the first process of the box has ended")?.into_iter();
    let listener = given.next().context("the box has no filter")?;
    let has_terminal = plan.streams.iter().any(Option::is_none);
    let terminal = has_terminal.then(|| given.next()).flatten();
    let network = match given.next() {
        Some(tun) => {
            let namespace = format!("/proc/{}/ns/net", pid.as_raw_nonzero());
            Some((tun, open(namespace, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).context("namespace")?))
        }
        None => None,
    };
    Ok(Inside { init, listener, terminal, network })
}

/// The life of the first process. Returns its status.
fn live(link: &Link, plan: Plan<'_>) -> i32 {
    match make(link, plan) {
        Ok(Some(command)) => attend(command),
        Ok(None) => NOT_MADE,
        Err(error) => {
            link.failed(&format!("{error:#}"));
            NOT_MADE
        }
    }
}

/// Make the box and start the command. None if the supervisor is gone.
fn make(link: &Link, plan: Plan<'_>) -> Result<Option<Pid>> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // Nobody in the box may look into this process, which could do more than they.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    if link.wait()?.is_none() {
        return Ok(None);
    }
    sys::block_signals(true)?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    network::raise_loopback()?;
    let tun = plan.network.map(|ends| network::make_tun(ends.inside, Some(ends.outside))).transpose()?;
    root::build(plan.place, plan.tree, plan.shown)?;
    let terminal = plan.streams.iter().any(Option::is_none).then(open_terminal).transpose()?;
    privileges::enter_user_namespace()?;
    link.done(&[])?;
    if link.wait()?.is_none() {
        return Ok(None);
    }
    drop_privileges()?;
    let listener = filter::install()?;
    let given = [Some(&listener), terminal.as_ref().map(|(outer, _)| outer), tun.as_ref()];
    link.done(&given.into_iter().flatten().map(AsFd::as_fd).collect::<Vec<_>>())?;
    let command = sys::fork(0).context("fork")?;
    let Some(command) = command else {
        sys::leave(run(&plan, terminal.map(|(_, inner)| inner)));
    };
    sys::close_from(0, false)?;
    Ok(Some(command))
}

/// Both sides of a new terminal of the box: that of the supervisor, and that of the command.
fn open_terminal() -> Result<(OwnedFd, OwnedFd)> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let outer = open("/dev/pts/ptmx", flags, Mode::empty()).context("/dev/pts/ptmx of the box")?;
    unlockpt(&outer).context("unlockpt")?;
    let inner = ioctl_tiocgptpeer(&outer, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    Ok((outer, inner))
}

/// Wait for the command, and let it have the signals that come. Returns its status.
fn attend(command: Pid) -> i32 {
    loop {
        match next_signal() {
            libc::SIGCHLD => {
                if let Some(status) = reap(command) {
                    return status;
                }
            }
            number => {
                if let Some(signal) = Signal::from_named_raw(number) {
                    let _ = kill_process_group(command, signal);
                }
            }
        }
    }
}

fn next_signal() -> i32 {
    // SAFETY: the set lives through both calls. The null pointer says that no details of the signal are wanted.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigwaitinfo(&all, std::ptr::null_mut())
    }
}

/// Reap every process that has ended. The status of the command, if it is among them.
fn reap(command: Pid) -> Option<i32> {
    let mut status = None;
    while let Ok(Some((pid, ended))) = wait(WaitOptions::NOHANG) {
        if pid == command {
            status = Some(as_status(ended));
        }
    }
    status
}

fn as_status(ended: WaitStatus) -> i32 {
    ended.exit_status().unwrap_or_else(|| SIGNALLED + ended.terminating_signal().unwrap_or(0))
}

/// Become the command. Returns a status if that fails, after saying why.
fn run(plan: &Plan<'_>, terminal: Option<OwnedFd>) -> i32 {
    let error = match become_command(plan, terminal.as_ref()) {
        Ok(never) => never,
        Err(error) => {
            eprintln!("xsync: {error:#}");
            return NOT_MADE;
        }
    };
    eprintln!("xsync: {}: {error}", plan.command[0].to_string_lossy());
    if error.kind() == std::io::ErrorKind::NotFound {
        NOT_FOUND
    } else {
        NOT_RUN
    }
}

fn become_command(plan: &Plan<'_>, terminal: Option<&OwnedFd>) -> Result<std::io::Error> {
    setsid().context("setsid")?;
    if let Some(terminal) = terminal {
        ioctl_tiocsctty(terminal).context("terminal")?;
    }
    let mut streams = plan.streams.iter().map(|stream| stream.as_ref().or(terminal).context("a stream is missing"));
    let mut next = || streams.next().expect("three streams");
    dup2_stdin(next()?)?;
    dup2_stdout(next()?)?;
    dup2_stderr(next()?)?;
    if !canary::is(Canary::InheritedPipe) {
        sys::close_from(3, true)?;
    }
    let (program, arguments) = plan.command.split_first().context("no command")?;
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(user) = plan.user {
        user.enter()?;
        command.envs(user.variables());
    }
    sys::reset_signals()?;
    Ok(command.exec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_that_of_a_shell() {
        for (command, status) in [("exit 3", 3), ("kill -9 $$", SIGNALLED + 9)] {
            let mut child = Command::new("sh").args(["-c", command]).spawn().unwrap();
            let pid = Pid::from_raw(child.id() as i32).unwrap();
            let (_, ended) = rustix::process::waitpid(Some(pid), WaitOptions::empty()).unwrap().unwrap();
            assert_eq!(as_status(ended), status);
            // It has been waited for already.
            let _ = child.wait();
        }
    }
}
