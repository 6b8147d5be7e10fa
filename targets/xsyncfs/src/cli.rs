//! The command line.

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, ensure, Context, Result};
use clap::{Parser, Subcommand, ValueEnum};
use rustix::fs::{openat, Mode, OFlags, CWD};
use rustix::mount::{open_tree, OpenTreeFlags};

use crate::canary::{self, Canary};
use crate::commit::Commit;
use crate::committer::Failure;
use crate::eager::Modifications;
use crate::inside::{self, Ends, Plan, User};
use crate::journal;
use crate::keeper::Keeper;
use crate::mounts::Mount;
use crate::release;
use crate::supervisor::{self, Target};
use crate::sys;
use crate::usage::device_of;
use crate::ways::Streams;

/// xsync could not start the command.
const NOT_STARTED: u8 = 125;
/// A commit failed: what the command said after the last good one was dropped.
const NOT_COMMITTED: u8 = 123;
/// The user namespace in which the kernel starts (PROC_USER_INIT_INO).
const FIRST_USER_NAMESPACE: &str = "user:[4026531837]";
/// From this version on, syncfs says when a commit fails.
const KERNEL_MIN: (u32, u32) = (5, 17);
const MOUNT_ATTR_NOSUID: u64 = 2;
const MOUNT_ATTR_NODEV: u64 = 4;

const EXAMPLES: &str = "\
Example:
  mount -o data=journal /dev/sdb1 /data
  xsync run --fs /data -- sh -c 'echo hello >greeting; sync; echo done'

Inside, fsync and its relatives return at once. Outside, \"done\" is seen when the greeting is on disk.

Exit status:
  that of the command, or 128 + N if signal N ended it
    1  it succeeded, but some output was lost, or the file system stays covered
  123  a commit failed, and what waited for it was dropped
  125  the command was not started
  126  it is no program
  127  there is none of this name";

#[derive(Parser)]
#[command(name = "xsync", version, about = "Runs programs whose file I/O is externally synchronous", after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Run a command. What it says waits until everything that it had written before is on disk.
    ///
    /// The command and all that it starts run in a box. They can change one file system, and see all others read-only.
    /// While they run, nobody else sees that file system. They start in its root.
    #[command(after_help = EXAMPLES)]
    Run(RunOptions),
}

#[derive(clap::Args)]
struct RunOptions {
    /// Where the file system is mounted: ext4 or ext3 with data=journal and barriers
    #[arg(long, value_name = "MOUNTPOINT")]
    fs: PathBuf,
    /// Commit after every modification, instead of when an output waits for it (slower, for comparison)
    #[arg(long)]
    eager: bool,
    /// Run the command as this user
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Let the box see this folder, read-only, although it is in /tmp, of which the box has its own
    #[arg(long, value_name = "FOLDER", value_parser = existing_folder)]
    show: Vec<PathBuf>,
    /// tun: the command can be reached at --address, and reaches others through it
    #[arg(long, value_enum, default_value_t = Network::None)]
    network: Network,
    /// The address of the box, for --network tun. The outside has the other address of its /30 network.
    #[arg(long, value_name = "ADDRESS", default_value = "10.111.0.2")]
    address: Ipv4Addr,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Network {
    None,
    Tun,
}

/// The program.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { NOT_STARTED } else { 0 });
        }
    };
    let Action::Run(options) = cli.action;
    let status = run(&options).unwrap_or_else(|error| {
        eprintln!("xsync: {error:#}");
        NOT_STARTED
    });
    ExitCode::from(status)
}

fn run(options: &RunOptions) -> Result<u8> {
    release::open_missing()?;
    if !canary::is(Canary::InheritedPipe) {
        sys::close_from(3, false)?;
    }
    ensure!(rustix::process::geteuid().is_root(), "it makes namespaces and mounts, which needs root: use sudo");
    ensure_root_of_the_machine(&std::fs::read_link("/proc/self/ns/user").unwrap_or_default())?;
    check_kernel(&rustix::system::uname().release().to_string_lossy())?;
    ensure_no_core_socket(&std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default())?;
    let user = options.user.as_deref().map(User::named).transpose()?;
    let network = ends(options)?;
    let mount = journal::journalled_mount(&options.fs)?;
    ensure_not_redirected(&mount)?;
    rustix::process::chdir("/").context("/")?;
    let (tree, root) = take(&mount.point)?;
    let mut commit = Commit::of(root).with_context(|| format!("a first commit of {}", mount.point.display()))?;
    let keeper = Keeper::start(&mount, &mut commit)?;
    let result = run_in_box(options, &mount, &tree, commit, user.as_ref(), network, &keeper);
    match result {
        Ok(Ok(status)) => match keeper.uncover() {
            Ok(()) => Ok(status),
            // The command has run, and all that it said is true.
            Err(error) => {
                eprintln!(
                    "xsync: {error:#}. If the file system is still covered, umount {} shows it.",
                    mount.point.display()
                );
                Ok(if status == 0 { release::NOT_ALL_SUCCEEDED } else { status })
            }
        },
        Ok(Err(Failure { error, dropped })) => {
            keeper.leave_covered();
            eprintln!(
                "xsync: {}: a commit failed: {error}. {dropped} bytes of output that are not true on disk were dropped, and \
                 the command was ended. The file system stays covered: umount {0} shows it again.",
                mount.point.display()
            );
            Ok(NOT_COMMITTED)
        }
        Err(error) => {
            keeper.give_up()?;
            Err(error)
        }
    }
}

fn run_in_box(
    options: &RunOptions,
    mount: &Mount,
    tree: &OwnedFd,
    commit: Commit,
    user: Option<&User>,
    network: Option<Ends>,
    keeper: &Keeper,
) -> Result<Result<u8, Failure>> {
    let mut streams = Streams::like_ours()?;
    let plan = Plan {
        place: &mount.point,
        tree,
        shown: &options.show,
        command: &options.command,
        user,
        streams: std::mem::take(&mut streams.inside),
        network,
    };
    let eager = options.eager.then(|| Modifications::of(commit.root())).transpose()?;
    let inside = inside::start(plan, keeper)?;
    supervisor::attend(inside, streams, Target { device: mount.device, commit, eager }, network)
}

fn existing_folder(text: &str) -> Result<PathBuf> {
    let folder = Path::new(text).canonicalize()?;
    ensure!(folder.is_dir(), "not a folder");
    Ok(folder)
}

fn check_kernel(release: &str) -> Result<()> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let (major, minor) = KERNEL_MIN;
    ensure!(found >= KERNEL_MIN, "Linux {major}.{minor} or later is needed, and this is {release}");
    Ok(())
}

/// Root of a user namespace may not mount what a box needs. `namespace` is what `/proc/self/ns/user` links to.
fn ensure_root_of_the_machine(namespace: &Path) -> Result<()> {
    ensure!(
        namespace == Path::new(FIRST_USER_NAMESPACE),
        "it needs root of the machine, and this is a user namespace, as in a container or in a box of xsync"
    );
    Ok(())
}

/// A limit keeps core files from being written and from being piped to a program, but not from a socket.
fn ensure_no_core_socket(pattern: &str) -> Result<()> {
    ensure!(
        !pattern.starts_with('@'),
        "kernel.core_pattern is {}: a program that crashes in the box would be sent to that socket at once",
        pattern.trim_end()
    );
    Ok(())
}

fn ends(options: &RunOptions) -> Result<Option<Ends>> {
    if options.network == Network::None {
        return Ok(None);
    }
    match Ends::with(options.address) {
        Some(ends) => Ok(Some(ends)),
        None => bail!("--address {}: it is no host of its /30 network, as 10.111.0.2 is", options.address),
    }
}

/// Our own streams must not lead into the file system, since we write to them outside of the box.
fn ensure_not_redirected(mount: &Mount) -> Result<()> {
    for (descriptor, name) in ["standard input", "standard output", "standard error"].into_iter().enumerate() {
        let path = PathBuf::from(format!("/proc/self/fd/{descriptor}"));
        ensure!(
            device_of(&path).ok() != Some(mount.device),
            "{name} is a file in {}, which only the box may use: redirect it in the command, as in sh -c 'COMMAND >FILE'",
            mount.point.display()
        );
    }
    Ok(())
}

/// The file system as a mount that is nowhere, and its root folder.
fn take(place: &Path) -> Result<(OwnedFd, OwnedFd)> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = open_tree(CWD, place, flags).context("open_tree")?;
    sys::set_mount_flags(&tree, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV).context("mount_setattr")?;
    let root =
        openat(&tree, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).context("open")?;
    Ok((tree, root))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_user_namespace_is_refused() {
        assert!(ensure_root_of_the_machine(Path::new("user:[4026531837]")).is_ok());
        assert!(ensure_root_of_the_machine(Path::new("user:[4026532601]")).is_err());
        assert!(ensure_root_of_the_machine(Path::new("")).is_err());
    }

    #[test]
    fn an_old_kernel_is_refused() {
        assert!(check_kernel("6.1.0-13-amd64").is_ok() && check_kernel("5.17").is_ok());
        assert!(check_kernel("5.16.20").is_err() && check_kernel("4.19").is_err() && check_kernel("x").is_err());
    }
}
