//! What makes everything durable that the box has changed so far, or says that this failed.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use rustix::fs::{fsetxattr, fstatvfs, fsync, openat, syncfs, Mode, OFlags, StatVfsMountFlags, XattrFlags};
use rustix::io::Errno;

const ATTRIBUTE: &str = "trusted.xsync";

/// Commits of one file system.
pub struct Commit {
    root: OwnedFd,
    /// A file without a name. Its attribute counts the commits.
    scratch: OwnedFd,
    count: u64,
    /// Whether the box has mapped a file, so that it may have stored what is in no transaction yet.
    pub is_mapped: Arc<AtomicBool>,
}

impl Commit {
    /// Commits of the file system that has the folder `root`. What was changed before is durable then.
    pub fn of(root: OwnedFd) -> io::Result<Commit> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let scratch = openat(&root, ".", flags, Mode::RUSR | Mode::WUSR)?;
        let mut commit = Commit { root, scratch, count: 0, is_mapped: Arc::default() };
        commit.sync_and_commit()?;
        Ok(commit)
    }

    /// A folder of the file system.
    pub fn root(&self) -> &OwnedFd {
        &self.root
    }

    /// Make everything durable that was changed before this call.
    pub fn commit(&mut self) -> io::Result<()> {
        if self.is_mapped.load(Ordering::Acquire) {
            self.sync_and_commit()
        } else {
            self.commit_transactions()
        }
    }

    /// The same, also for what was stored to mapped files and is in no transaction yet.
    pub fn sync_and_commit(&mut self) -> io::Result<()> {
        syncfs(&self.root)?;
        self.commit_transactions()
    }

    /// In data=journal every change is in the running transaction or in one before it. A change of the scratch file that is
    /// made now comes into the same transaction or into a later one, and an fsync of it commits that. This takes about half
    /// the time of syncfs, which also writes to their places the blocks that earlier commits have made durable.
    ///
    /// It also sees what syncfs alone does not. If the kernel's own commit has failed, a syncfs has nothing to do and
    /// succeeds; but no change can be made any more. On a file system that became read-only even fsync succeeds.
    fn commit_transactions(&mut self) -> io::Result<()> {
        self.count += 1;
        fsetxattr(&self.scratch, ATTRIBUTE, &self.count.to_le_bytes(), XattrFlags::empty())?;
        fsync(&self.scratch)?;
        if fstatvfs(&self.root)?.f_flag.contains(StatVfsMountFlags::RDONLY) {
            return Err(Errno::ROFS.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::open;

    use super::*;

    fn folder(path: &std::path::Path) -> OwnedFd {
        open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap()
    }

    #[test]
    fn a_file_system_without_such_a_file_is_refused() {
        assert!(Commit::of(folder("/proc".as_ref())).is_err());
    }

    #[test]
    fn each_commit_changes_a_file_that_nobody_sees() {
        let place = tempfile::tempdir().unwrap();
        let Ok(mut commit) = Commit::of(folder(place.path())) else {
            // Only root may set the attribute.
            assert!(!rustix::process::geteuid().is_root());
            return;
        };
        for is_mapped in [false, true] {
            commit.is_mapped.store(is_mapped, Ordering::Release);
            let before = commit.count;
            commit.commit().unwrap();
            assert_eq!(commit.count, before + 1);
        }
        assert_eq!(place.path().read_dir().unwrap().count(), 0);
    }
}
