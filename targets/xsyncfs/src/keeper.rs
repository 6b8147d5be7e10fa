//! The process that keeps the outside away from the file system while a box uses it.
//!
//! It covers each place where the file system is mounted, in every mount namespace, so that nobody outside sees a file
//! before it is on disk. It outlives the supervisor: if that is killed, it waits for the box to end, commits, and uncovers.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail, ensure, Context, Result};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::fs::{open, openat, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{mount, unmount, MountFlags, UnmountFlags};
use rustix::process::{setsid, waitpid, Pid, WaitOptions};
use rustix::thread::{move_into_link_name_space, LinkNameSpaceType};

use crate::commit::Commit;
use crate::link::Link;
use crate::mounts::{self, Mount};
use crate::sys;
use crate::usage;

/// A keeper as the supervisor sees it.
pub struct Keeper {
    link: Link,
    pid: Pid,
    /// Whether a box has begun.
    is_watching: Cell<bool>,
}

impl Keeper {
    /// Have the file system of `target` covered everywhere. `commit` commits it.
    ///
    /// The process must have one thread.
    pub fn start(target: &Mount, commit: &mut Commit) -> Result<Keeper> {
        let (ours, its) = Link::pair()?;
        let Some(pid) = sys::fork(0).context("fork")? else {
            drop(ours);
            sys::leave(i32::from(keep(&its, target, commit).is_err()));
        };
        drop(its);
        ours.wait()?.context("the process that covers the file system has ended")?;
        Ok(Keeper { link: ours, pid, is_watching: Cell::new(false) })
    }

    /// Tell it which process it must outlive.
    pub fn watch(&self, init: &OwnedFd) -> Result<()> {
        self.is_watching.set(true);
        self.link.done(&[init.as_fd()])
    }

    /// There will be no more commits. A box that has begun ends with this process; then the keeper commits and uncovers.
    pub fn give_up(self) -> Result<()> {
        if self.is_watching.get() {
            return Ok(());
        }
        self.uncover()
    }

    /// The box has ended and everything is committed: have the file system uncovered.
    pub fn uncover(self) -> Result<()> {
        let _ = self.link.done(&[]);
        self.link.wait()?.context("the process that covers the file system has ended")?;
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
        Ok(())
    }

    /// What the box has changed is not on disk: the file system stays covered.
    pub fn leave_covered(self) {
        self.link.failed("stay");
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }
}

/// The life of the keeper.
fn keep(link: &Link, target: &Mount, commit: &mut Commit) -> Result<()> {
    let _ = setsid();
    sys::block_signals(true)?;
    let_go_of_streams()?;
    let mut covers = Covers::new()?;
    if let Err(error) = covers.cover(target) {
        covers.uncover()?;
        link.failed(&format!("{error:#}"));
        return Ok(());
    }
    if let Err(gone) = link.done(&[]) {
        covers.uncover()?;
        return Err(gone);
    }
    let is_committed = match link.wait() {
        Ok(Some(init)) if !init.is_empty() => match link.wait() {
            Ok(Some(_)) => true,
            Ok(None) => {
                wait_for_end(&init[0])?;
                commit.sync_and_commit().is_ok()
            }
            Err(_) => false,
        },
        _ => true,
    };
    if is_committed {
        match covers.uncover() {
            Ok(()) => link.done(&[])?,
            Err(error) => link.failed(&format!("{error:#}")),
        }
    }
    Ok(())
}

/// Whoever reads our output or writes our input must see that the box has closed it.
fn let_go_of_streams() -> Result<()> {
    let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).context("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(rustix::stdio::dup2_stderr(&null)?)
}

fn wait_for_end(process: &OwnedFd) -> Result<()> {
    loop {
        match poll(&mut [PollFd::new(process, PollFlags::IN)], None) {
            Err(Errno::INTR) => {}
            other => return other.map(drop).context("poll"),
        }
    }
}

/// What covers the file system, in the order in which it was done.
struct Covers {
    /// /proc, which other mount namespaces may not have.
    proc: OwnedFd,
    /// The mount namespace in which this process began.
    home: OwnedFd,
    /// What the covers are called.
    name: PathBuf,
    namespaces: Vec<(OwnedFd, Vec<PathBuf>)>,
}

impl Covers {
    fn new() -> Result<Covers> {
        let proc = open("/proc", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).context("/proc")?;
        let home = openat(&proc, "self/ns/mnt", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).context("ns/mnt")?;
        Ok(Covers { proc, home, name: format!("xsync-{}", parent()).into(), namespaces: Vec::new() })
    }

    /// Cover every place of the target. Fails if somebody uses it.
    fn cover(&mut self, target: &Mount) -> Result<()> {
        let ours = [std::process::id(), parent()];
        if let Some(user) = usage::first_user(target.device, &ours) {
            bail!("{} is in use: {user}", target.point.display());
        }
        let (mut seen, mut shown) = (BTreeSet::new(), BTreeSet::new());
        // A namespace can be copied before it is covered. The copy is listed the next time.
        loop {
            let namespaces = usage::mount_namespaces().into_iter();
            let new: Vec<_> = namespaces.filter(|(inode, _)| seen.insert(*inode)).collect();
            if new.is_empty() {
                break;
            }
            for (_, namespace) in new {
                enter(&namespace)?;
                let mounts = read_mounts(&self.proc)?;
                shown.extend(mounts.iter().map(|mount| mount.id));
                if mounts.iter().any(|mount| mount.device == target.device) {
                    ensure!(
                        usage::is_of_our_user(&namespace)?,
                        "{} is also mounted in a mount namespace that belongs to another user namespace: whoever is root \
                         there can take a cover away",
                        target.point.display()
                    );
                }
                self.namespaces.push((namespace, Vec::new()));
                let covered = &mut self.namespaces.last_mut().expect("one was pushed").1;
                cover_in_namespace(&self.proc, &self.name, &places(&mounts, target)?, covered)?;
            }
            // Others may have no /proc, or one of other processes.
            enter(&self.home)?;
        }
        if let Some(user) = usage::first_with_hidden_mount(&shown, &ours) {
            bail!("{} may be in use: {user}", target.point.display());
        }
        // Look again: a process that came while the covers were put up can have opened a file of the file system.
        if let Some(user) = usage::first_user(target.device, &ours) {
            bail!("{} is in use: {user}", target.point.display());
        }
        Ok(())
    }

    /// Take all covers away, the last one first. Fails if one is still there.
    fn uncover(&mut self) -> Result<()> {
        let mut result = Ok(());
        while let Some((namespace, places)) = self.namespaces.pop() {
            if places.is_empty() {
                continue;
            }
            enter(&namespace)?;
            for place in places.iter().rev() {
                let mounts = read_mounts(&self.proc)?;
                if is_covered(&mounts, place, &self.name) {
                    let removed = unmount(place, UnmountFlags::DETACH);
                    result = result.and(removed.with_context(|| format!("{} stays covered", place.display())));
                } else if mounts.iter().any(|mount| mount.point == *place && mount.source == self.name) {
                    result = Err(anyhow!("{} stays covered: something is mounted on the cover", place.display()));
                }
                // Otherwise somebody has taken the cover away, perhaps with what it was on.
            }
        }
        result
    }
}

fn enter(namespace: &OwnedFd) -> Result<()> {
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Mount)).context("setns")
}

fn parent() -> u32 {
    rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get() as u32)
}

fn cover_in_namespace(proc: &OwnedFd, name: &Path, places: &[PathBuf], covered: &mut Vec<PathBuf>) -> Result<()> {
    for place in places {
        // A cover that was made in another namespace may have come here by itself.
        if is_covered(&read_mounts(proc)?, place, name) {
            continue;
        }
        ensure_unused(place)?;
        let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount(name, place, "tmpfs", flags, c"size=4k,mode=0")
            .with_context(|| format!("cannot cover {}", place.display()))?;
        covered.push(place.clone());
    }
    Ok(())
}

fn is_covered(mounts: &[Mount], place: &Path, name: &Path) -> bool {
    topmost(mounts, place).is_some_and(|mount| mount.source == name)
}

/// Where the file system of `target` is mounted. Fails if something is mounted inside it.
fn places(mounts: &[Mount], target: &Mount) -> Result<Vec<PathBuf>> {
    let mut places = Vec::new();
    for mount in mounts.iter().filter(|mount| mount.device == target.device) {
        if let Some(inner) = mounts.iter().find(|other| other.parent == mount.id && other.point != mount.point) {
            bail!(
                "{} is mounted inside {}: a box has one file system only",
                inner.point.display(),
                mount.point.display()
            );
        }
        if !places.contains(&mount.point) {
            places.push(mount.point.clone());
        }
    }
    let folders: Vec<_> = std::iter::once(&target.point).chain(&places).map(PathBuf::as_path).collect();
    if let Some(user) = mounts.iter().find(|mount| can_have_layer_in(mount, &folders)) {
        let (user, point) = (user.point.display(), target.point.display());
        bail!("{user} shows files of {point}, or may do so: it is a mount of overlayfs");
    }
    Ok(places)
}

/// Whether a mount of overlayfs can have a layer in one of these folders. Such a layer counts as no use of their mounts.
///
/// A relative path can lead anywhere: nobody knows where the process was that made the mount.
fn can_have_layer_in(mount: &Mount, folders: &[&Path]) -> bool {
    let layers = mount.options.iter().filter_map(|option| {
        let (name, paths) = option.split_once('=')?;
        ["lowerdir", "upperdir", "workdir", "datadir"].contains(&name.trim_end_matches('+')).then_some(paths)
    });
    let is_in = |path: &Path| path.is_relative() || folders.iter().any(|folder| mounts::is_within(path, folder));
    mount.kind == "overlay"
        && layers.flat_map(|paths| paths.split(':')).any(|path| !path.is_empty() && is_in(path.as_ref()))
}

fn topmost<'a>(mounts: &'a [Mount], place: &Path) -> Option<&'a Mount> {
    let here = || mounts.iter().filter(|mount| mount.point == place);
    here().find(|mount| !here().any(|above| above.parent == mount.id))
}

/// The kernel knows of users that no process shows, such as a descriptor on its way through a socket.
fn ensure_unused(place: &Path) -> Result<()> {
    match unmount(place, UnmountFlags::EXPIRE) {
        // It is unused, and marked as such. A look at it removes the mark.
        Err(Errno::AGAIN) => {
            let _ = place.metadata();
            Ok(())
        }
        // In the namespace of another user it may not be taken away, so that the kernel does not say.
        Err(Errno::INVAL) => Ok(()),
        Err(Errno::BUSY) => bail!(
            "{} is in use by the kernel or by a process that cannot be seen: perhaps a UNIX socket that is bound in it, \
             a loop device, swap or an exported folder",
            place.display()
        ),
        other => other.with_context(|| place.display().to_string()),
    }
}

fn read_mounts(proc: &OwnedFd) -> Result<Vec<Mount>> {
    let file = openat(proc, "self/mountinfo", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).context("mountinfo")?;
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut std::fs::File::from(file), &mut text).context("mountinfo")?;
    ensure!(!text.is_empty(), "mountinfo is empty");
    Ok(mounts::parse(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounts(text: &str) -> Vec<Mount> {
        mounts::parse(text.as_bytes())
    }

    const BASE: &str = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:2 / /mnt rw - ext4 /dev/sdb rw\n";

    #[test]
    fn each_place_is_listed_once() {
        let all =
            mounts(&format!("{BASE}3 1 8:2 /a /srv rw - ext4 /dev/sdb rw\n4 3 8:2 / /srv rw - ext4 /dev/sdb rw\n"));
        assert_eq!(places(&all, &all[1]).unwrap(), [Path::new("/mnt"), Path::new("/srv")]);
    }

    #[test]
    fn a_layer_of_overlayfs_is_a_use() {
        let overlay = |options: &str| mounts(&format!("{BASE}3 1 0:5 / /merged rw - overlay overlay {options}\n"));
        for options in ["ro,lowerdir=/a:/mnt/low", "rw,lowerdir=/a,upperdir=/mnt/up,workdir=/mnt/work"] {
            let all = overlay(options);
            assert!(places(&all, &all[1]).unwrap_err().to_string().contains("/merged shows files of /mnt"));
        }
        for options in ["ro,lowerdir=low:/a", "ro,lowerdir+=/mnt/low", "ro,datadir+=/mnt/d", "ro,lowerdir=/a::/mnt"] {
            let all = overlay(options);
            assert!(places(&all, &all[1]).is_err(), "{options}");
        }
        let all = overlay("rw,lowerdir=/a::/b,upperdir=/mnt2/up,redirect_dir=on");
        assert!(places(&all, &all[1]).is_ok());
        let elsewhere =
            mounts("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n3 1 0:5 / /m rw - overlay overlay ro,lowerdir=/mnt/a:/b\n");
        assert!(places(&elsewhere, &all[1]).is_err());
    }

    #[test]
    fn a_mount_inside_is_refused_and_one_on_top_is_not() {
        let inside = mounts(&format!("{BASE}3 2 0:5 / /mnt/x rw - tmpfs none rw\n"));
        assert!(places(&inside, &inside[1]).unwrap_err().to_string().contains("/mnt/x is mounted inside /mnt"));
        let above = mounts(&format!("{BASE}3 2 0:5 / /mnt rw - tmpfs none rw\n"));
        assert_eq!(places(&above, &above[1]).unwrap(), [Path::new("/mnt")]);
        assert_eq!(topmost(&above, Path::new("/mnt")).unwrap().kind, "tmpfs");
    }
}
