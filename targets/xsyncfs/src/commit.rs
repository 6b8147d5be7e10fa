//! What makes everything durable that the box has changed so far.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use rustix::fs::{fsync, futimens, openat, syncfs, Mode, OFlags, Timespec, Timestamps};

/// Commits of one file system.
pub struct Commit {
    root: OwnedFd,
    /// A file without a name.
    scratch: Option<OwnedFd>,
    count: i64,
    /// Whether the box has mapped a file, so that it has stored what is in no transaction yet.
    is_mapped: Arc<AtomicBool>,
}

impl Commit {
    /// Commits of the file system that has the folder `root`. What was changed before is durable then.
    pub fn of(root: OwnedFd, is_mapped: Arc<AtomicBool>) -> io::Result<Commit> {
        syncfs(&root)?;
        // A full disk has no room for it. Then each commit is a syncfs.
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let scratch = openat(&root, ".", flags, Mode::RUSR | Mode::WUSR).ok();
        Ok(Commit { root, scratch, count: 0, is_mapped })
    }

    /// Make everything durable that was changed before this call.
    ///
    /// In data=journal every change is in the running transaction or in one before it. A file that is touched now comes into
    /// the same transaction or into a later one, and an fsync of it commits that. This takes about half the time of syncfs,
    /// which also writes to their places the blocks that earlier commits have made durable.
    pub fn commit(&mut self) -> io::Result<()> {
        match &self.scratch {
            Some(scratch) if !self.is_mapped.load(Ordering::Acquire) => {
                self.count += 1;
                let time = Timespec { tv_sec: self.count, tv_nsec: 0 };
                futimens(scratch, &Timestamps { last_access: time, last_modification: time })?;
                Ok(fsync(scratch)?)
            }
            _ => Ok(syncfs(&self.root)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_room_for_the_file_is_synced_as_a_whole() {
        let root = rustix::fs::open("/proc", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        let mut commit = Commit::of(root, Arc::default()).unwrap();
        assert!(commit.scratch.is_none());
        commit.commit().unwrap();
    }

    #[test]
    fn the_file_is_touched_by_each_commit_until_a_file_is_mapped() {
        let folder = tempfile::tempdir().unwrap();
        let root = rustix::fs::open(folder.path(), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        let mut commit = Commit::of(root, Arc::default()).unwrap();
        let touched = |commit: &Commit| rustix::fs::fstat(commit.scratch.as_ref().unwrap()).unwrap().st_mtime;
        commit.commit().unwrap();
        commit.commit().unwrap();
        assert_eq!(touched(&commit), 2);
        commit.is_mapped.store(true, Ordering::Release);
        commit.commit().unwrap();
        assert_eq!(touched(&commit), 2);
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }
}
