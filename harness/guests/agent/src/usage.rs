//! Use after recovery: test that the files a crash left can be changed, deleted, and written anew.
//!
//! First every file is appended to, and in every folder a new file is made and removed again. Then everything is
//! deleted, each folder after its contents, until the root is empty. At last a folder with a file is made. It must be
//! there with its bytes after mounting again. A full disk is no failure until everything has been deleted.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use postcrash_wire::{pattern, Mount};
use serde::Serialize;

use crate::mount::{mount, unmount};
use crate::sys::errno;
use crate::walk::LOST_AND_FOUND;
use crate::MOUNT_POINT;

/// Names that workloads do not use.
const NEW: &str = ".postcrash-new";
const BYTES: usize = 8192;

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
    let failed = change().and_then(|()| delete()).and_then(|()| write_anew(device, how)).err();
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

/// Find all paths below `folder`, each folder before its contents, and whether each is a folder.
fn below(folder: &Path, found: &mut Vec<(PathBuf, bool)>) -> StepResult<()> {
    for entry in step("list", folder, fs::read_dir(folder))? {
        let entry = step("list", folder, entry)?;
        let path = entry.path();
        if folder == Path::new(MOUNT_POINT) && entry.file_name() == LOST_AND_FOUND {
            continue;
        }
        let is_folder = step("stat", &path, path.symlink_metadata())?.is_dir();
        found.push((path.clone(), is_folder));
        if is_folder {
            below(&path, found)?;
        }
    }
    Ok(())
}

fn everything() -> StepResult<Vec<(PathBuf, bool)>> {
    let mut found = Vec::new();
    below(Path::new(MOUNT_POINT), &mut found)?;
    Ok(found)
}

fn change() -> StepResult<()> {
    for (path, is_folder) in everything()? {
        if is_folder {
            let new = path.join(NEW);
            step("create", &new, unless_full(File::create_new(&new)))?;
            if new.exists() {
                step("unlink", &new, fs::remove_file(&new))?;
            }
        } else if path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
            let append = || OpenOptions::new().append(true).open(&path)?.write_all(b"x");
            step("append to", &path, unless_full(append()))?;
        }
    }
    Ok(())
}

fn delete() -> StepResult<()> {
    for (path, is_folder) in everything()?.into_iter().rev() {
        if is_folder {
            step("rmdir", &path, fs::remove_dir(&path))?;
        } else {
            step("unlink", &path, fs::remove_file(&path))?;
        }
    }
    match everything()?.first() {
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
