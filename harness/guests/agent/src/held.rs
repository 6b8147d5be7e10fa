//! Files held open from one operation to the next, by their handles.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::sys::open;
use crate::MOUNT_POINT;

/// Begins a handle: `@F` is the file that `open F` opened.
pub const HANDLE: char = '@';

fn inside(path: &str) -> String {
    match path {
        "." => MOUNT_POINT.into(),
        path => format!("{MOUNT_POINT}/{path}"),
    }
}

/// The open files of a workload.
#[derive(Default)]
pub struct HeldFiles(HashMap<String, OwnedFd>);

impl HeldFiles {
    /// Hold the file `path` open.
    pub fn open(&mut self, path: &str) -> io::Result<()> {
        let file = open(&inside(path), libc::O_RDWR)?;
        self.0.insert(format!("{HANDLE}{path}"), file);
        Ok(())
    }

    /// Hold open a new file without a name, in the folder that `path` would be in.
    pub fn open_unnamed(&mut self, path: &str) -> io::Result<()> {
        let inside = inside(path);
        let folder = inside.rsplit_once('/').map_or(MOUNT_POINT, |(folder, _)| folder);
        let file = open(folder, libc::O_TMPFILE | libc::O_RDWR)?;
        self.0.insert(format!("{HANDLE}{path}"), file);
        Ok(())
    }

    pub fn close(&mut self, handle: &str) -> io::Result<()> {
        self.0.remove(handle).map(drop).ok_or_else(bad)
    }

    /// A new descriptor: of the open file for a handle, otherwise of the file or directory opened with `flags`.
    pub fn descriptor(&self, place: &str, flags: i32) -> io::Result<OwnedFd> {
        match place.starts_with(HANDLE) {
            true => self.0.get(place).ok_or_else(bad)?.try_clone(),
            false => open(&inside(place), flags),
        }
    }

    /// An absolute path. For a handle, the path leads to the open file even if the file has no name.
    pub fn path(&self, place: &str) -> io::Result<String> {
        match place.starts_with(HANDLE) {
            true => Ok(format!("/proc/self/fd/{}", self.0.get(place).ok_or_else(bad)?.as_raw_fd())),
            false => Ok(inside(place)),
        }
    }
}

fn bad() -> io::Error {
    io::Error::from_raw_os_error(libc::EBADF)
}
