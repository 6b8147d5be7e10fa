//! Use after recovery: test that the files a crash left can be changed, deleted, and written anew.
//!
//! First every file is appended to, and in every folder a new file is made and removed again. Then everything is
//! deleted, each folder after its contents, until the root is empty. At last a folder with a file is made. It must be
//! there with its bytes after mounting again. A full disk is no failure until everything has been deleted.
//!
//! libfuse hides a file that is removed before its last close was served, and a close is served some time after it has
//! returned. Some hidden files stay for good, because libfuse notes that a file is hidden only after it was renamed, and
//! a close that is served in between does not remove it. So names that libfuse makes on the way are given time to go,
//! and are removed.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use postcrash_wire::{pattern, Mount};
use serde::Serialize;

use crate::mount::{mount, unmount};
use crate::sys::errno;
use crate::unlisted::LOST_AND_FOUND;
use crate::MOUNT_POINT;

/// Names that workloads do not use.
const NEW: &str = ".postcrash-new";
const BYTES: usize = 8192;
/// How the names of files begin that libfuse hides.
const HIDDEN: &[u8] = b".fuse_hidden";
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
const CLOSE_INTERVAL: Duration = Duration::from_millis(2);

/// The first step that failed; `failed` is empty and `errno` 0 if none did.
#[derive(Serialize)]
pub struct Usage {
    failed: String,
    errno: i32,
    /// Whether the file system is still mounted. It is mounted again on the way, which can fail.
    #[serde(skip)]
    pub is_mounted: bool,
}

/// Use the mounted file system.
pub fn use_after_recovery(device: &str, how: &Mount) -> Usage {
    let failed = change_and_delete().and_then(|()| write_anew(device, how)).err();
    failed.unwrap_or(Usage { failed: String::new(), errno: 0, is_mounted: true })
}

type StepResult<T> = Result<T, Usage>;

fn step<T>(what: &str, path: &Path, result: io::Result<T>) -> StepResult<T> {
    let path = path.strip_prefix(MOUNT_POINT).unwrap_or(path);
    result.map_err(|error| Usage {
        failed: format!("{what} {}", path.display()).trim_end().into(),
        errno: errno(&error),
        is_mounted: true,
    })
}

fn unless_full<T>(result: io::Result<T>) -> io::Result<()> {
    match result {
        Err(error) if errno(&error) != libc::ENOSPC => Err(error),
        _ => Ok(()),
    }
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_bytes().starts_with(HIDDEN))
}

/// A path, and whether it is a folder.
type Found = (PathBuf, bool);

/// Find all paths below `folder`, each folder before its contents.
fn below(folder: &Path, found: &mut Vec<Found>) -> StepResult<()> {
    for entry in step("list", folder, fs::read_dir(folder))? {
        let entry = step("list", folder, entry)?;
        let path = entry.path();
        if folder == Path::new(MOUNT_POINT) && entry.file_name() == LOST_AND_FOUND {
            continue;
        }
        let is_folder = match path.symlink_metadata() {
            Err(error) if errno(&error) == libc::ENOENT && is_hidden(&path) => continue,
            metadata => step("stat", &path, metadata)?.is_dir(),
        };
        found.push((path.clone(), is_folder));
        if is_folder {
            below(&path, found)?;
        }
    }
    Ok(())
}

fn everything(root: &Path) -> StepResult<Vec<Found>> {
    let mut found = Vec::new();
    below(root, &mut found)?;
    Ok(found)
}

/// What is there when the hidden files that were not in `before` have gone. They are removed again and again, because a
/// file that is still open is only hidden anew. Those that cannot be removed are part of it after `patience`.
fn everything_closed(root: &Path, before: &BTreeSet<PathBuf>, patience: Duration) -> StepResult<Vec<Found>> {
    let start = Instant::now();
    loop {
        let found = everything(root)?;
        let paths = found.iter().map(|(path, _)| path);
        let hidden: Vec<_> = paths.filter(|path| is_hidden(path) && !before.contains(*path)).collect();
        if hidden.is_empty() || start.elapsed() > patience {
            return Ok(found);
        }
        sleep(CLOSE_INTERVAL);
        for path in hidden {
            // It may have gone by itself. What is still there is listed next.
            let _ = fs::remove_file(path);
        }
    }
}

fn change_and_delete() -> StepResult<()> {
    let found = everything(Path::new(MOUNT_POINT))?;
    change(&found)?;
    delete(&found.into_iter().map(|(path, _)| path).collect())
}

fn change(found: &[Found]) -> StepResult<()> {
    for (path, is_folder) in found {
        if *is_folder {
            let new = path.join(NEW);
            step("create", &new, unless_full(File::create_new(&new)))?;
            if new.exists() {
                step("unlink", &new, fs::remove_file(&new))?;
            }
        } else if path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
            let append = || OpenOptions::new().append(true).open(path)?.write_all(b"x");
            step("append to", path, unless_full(append()))?;
        }
    }
    Ok(())
}

/// Delete everything. `before` is what was there at first.
fn delete(before: &BTreeSet<PathBuf>) -> StepResult<()> {
    let there = || everything_closed(Path::new(MOUNT_POINT), before, CLOSE_TIMEOUT);
    for (path, _) in there()?.iter().filter(|(_, is_folder)| !is_folder) {
        step("unlink", path, fs::remove_file(path))?;
    }
    for (path, _) in there()?.iter().rev().filter(|(_, is_folder)| *is_folder) {
        step("rmdir", path, fs::remove_dir(path))?;
    }
    match there()?.first() {
        Some((path, _)) => step("after unlink there is still", path, Err(io::Error::from_raw_os_error(libc::EEXIST))),
        None => Ok(()),
    }
}

fn write_anew(device: &str, how: &Mount) -> StepResult<()> {
    let root = Path::new(MOUNT_POINT);
    let (folder, file) = (root.join(NEW), root.join(NEW).join("file"));
    let mut bytes = vec![0; BYTES];
    pattern::fill(0, 0, &mut bytes);
    step("mkdir", &folder, fs::create_dir(&folder))?;
    let write = || {
        let mut opened = File::create_new(&file)?;
        opened.write_all(&bytes)?;
        opened.sync_all()
    };
    step("write", &file, write())?;
    step("unmount", root, unmount())?;
    step("mount again", root, mount(device, how)).map_err(|failed| Usage { is_mounted: false, ..failed })?;
    let mut found = Vec::new();
    let read = File::open(&file).and_then(|opened| opened.take(2 * BYTES as u64).read_to_end(&mut found));
    step("read", &file, read)?;
    let same = if found == bytes { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EIO)) };
    step("find the bytes written to", &file, same)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("postcrash-usage-{name}-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        folder
    }

    fn names(found: StepResult<Vec<Found>>, root: &Path) -> Vec<String> {
        let Ok(found) = found else { panic!("listing fails") };
        found.iter().map(|(path, _)| path.strip_prefix(root).unwrap().display().to_string()).collect()
    }

    #[test]
    fn a_hidden_name_that_cannot_be_removed_is_waited_for() {
        let root = folder("late");
        let hidden = root.join(".fuse_hidden0001");
        fs::create_dir(&hidden).unwrap();
        let removal = std::thread::spawn(move || {
            sleep(SHORT);
            fs::remove_dir(&hidden).unwrap();
        });
        let found = everything_closed(&root, &BTreeSet::new(), CLOSE_TIMEOUT);
        removal.join().unwrap();
        assert!(names(found, &root).is_empty());
        fs::remove_dir(root).unwrap();
    }

    #[test]
    fn a_hidden_file_that_would_stay_is_removed() {
        let root = folder("removed");
        File::create_new(root.join(".fuse_hidden0001")).unwrap();
        assert!(names(everything_closed(&root, &BTreeSet::new(), CLOSE_TIMEOUT), &root).is_empty());
        fs::remove_dir(root).unwrap();
    }

    #[test]
    fn a_hidden_name_that_cannot_be_removed_is_part_of_the_tree() {
        let root = folder("stays");
        fs::create_dir(root.join(".fuse_hidden0002")).unwrap();
        assert_eq!(names(everything_closed(&root, &BTreeSet::new(), SHORT), &root), [".fuse_hidden0002"]);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn nothing_is_waited_for_but_hidden_files_that_are_new() {
        let root = folder("before");
        let before = BTreeSet::from([root.join(".fuse_hidden0003")]);
        for name in [".fuse_hidden0003", "foo"] {
            File::create_new(root.join(name)).unwrap();
        }
        let start = Instant::now();
        let mut found = names(everything_closed(&root, &before, CLOSE_TIMEOUT), &root);
        assert!(start.elapsed() < CLOSE_TIMEOUT);
        found.sort();
        assert_eq!(found, [".fuse_hidden0003", "foo"]);
        fs::remove_dir_all(root).unwrap();
    }
}
