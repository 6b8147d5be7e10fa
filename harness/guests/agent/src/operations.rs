//! The operations of the workload language, as system calls.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use postcrash_wire::{pattern, Operation};

use crate::checkpoint::checkpoint;
use crate::commit::commit;
use crate::held::{Held, HANDLE};
use crate::share::share;
use crate::sys::{check, cstr, open, range, unsupported, AlignedBuffer};

/// msync(2) wants a page's start.
const PAGE_BYTES: u64 = 4096;

/// Do one operation. `commit` and `checkpoint` depend on the type of file system.
pub fn perform(op: &Operation, held: &mut Held, fstype: &str) -> io::Result<()> {
    match op.op.as_str() {
        "open" => held.open(&op.path),
        "tmpfile" => held.open_unnamed(&op.path),
        "close" => held.close(&op.path),
        "write" | "append" | "dwrite" | "write-osync" | "write-odsync" | "dwrite-osync" => write(op, held),
        "mmapwrite" => mmapwrite(op, held),
        "fsync" | "fdatasync" | "msync" | "writeback" | "sync" | "syncfs" => persist(op, held),
        "reflink" | "dedupe" => share(op, held),
        "drop-caches" => std::fs::write("/proc/sys/vm/drop_caches", "3"),
        "commit" => commit(fstype),
        "checkpoint" => checkpoint(fstype),
        "sleep" => {
            std::thread::sleep(Duration::from_secs(op.seconds.ok_or_else(unsupported)?));
            Ok(())
        }
        "truncate" | "fallocate" => resize(op, held),
        "setxattr" | "removexattr" => xattr(op, held),
        _ => name(op, held),
    }
}

fn name(op: &Operation, held: &Held) -> io::Result<()> {
    let file = held.path(&op.path)?;
    let to = if op.op == "symlink" { cstr(&op.to)? } else { cstr(&held.path(&op.to)?)? };
    let path = cstr(&file)?;
    let (path, to) = (path.as_ptr(), to.as_ptr());
    let here = libc::AT_FDCWD;
    // SAFETY: all pointers are C strings that live through the call.
    let result = unsafe {
        match op.op.as_str() {
            "mkdir" => libc::mkdir(path, 0o755),
            "rmdir" => libc::rmdir(path),
            "creat" => return open(&file, libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY).map(|_| ()),
            "mknod" => mknod(path, &op.mode)?,
            // What follows a handle's path is the open file; a symbolic link is linked itself.
            "link" if op.path.starts_with(HANDLE) => libc::linkat(here, path, here, to, libc::AT_SYMLINK_FOLLOW),
            "link" => libc::link(path, to),
            "symlink" => libc::symlink(to, path),
            "unlink" => libc::unlink(path),
            "rename" => libc::rename(path, to),
            "exchange" => libc::syscall(libc::SYS_renameat2, here, path, here, to, libc::RENAME_EXCHANGE) as i32,
            _ => return Err(unsupported()),
        }
    };
    check(result).map(|_| ())
}

/// Devices have the numbers of the simulation (model/simulate.py).
unsafe fn mknod(path: *const libc::c_char, kind: &str) -> io::Result<i32> {
    let (kind, device) = match kind {
        "fifo" => (libc::S_IFIFO, 0),
        "socket" => (libc::S_IFSOCK, 0),
        "char" => (libc::S_IFCHR, libc::makedev(1, 3)),
        "block" => (libc::S_IFBLK, libc::makedev(7, 0)),
        _ => return Err(unsupported()),
    };
    Ok(libc::mknod(path, kind | 0o644, device))
}

fn size(file: &OwnedFd) -> io::Result<u64> {
    // SAFETY: seeking moves nothing but this descriptor's offset.
    check(unsafe { libc::lseek(file.as_raw_fd(), 0, libc::SEEK_END) }).map(|size| size as u64)
}

fn write(op: &Operation, held: &Held) -> io::Result<()> {
    let flags = match op.op.as_str() {
        "dwrite" => libc::O_WRONLY | libc::O_DIRECT,
        "write-osync" => libc::O_WRONLY | libc::O_SYNC,
        "write-odsync" => libc::O_WRONLY | libc::O_DSYNC,
        "dwrite-osync" => libc::O_WRONLY | libc::O_DIRECT | libc::O_SYNC,
        _ => libc::O_WRONLY,
    };
    let file = held.descriptor(&op.path, flags)?;
    let (offset, length) = range(op)?;
    let offset = if op.op == "append" { size(&file)? } else { offset };
    let mut buffer = AlignedBuffer::new(length);
    pattern::fill(op.tag.ok_or_else(unsupported)?, offset, buffer.bytes_mut());
    let mut done = 0;
    while done < length {
        let rest = &buffer.bytes()[done..];
        // SAFETY: the slice's length is given.
        let n = check(unsafe {
            libc::pwrite(file.as_raw_fd(), rest.as_ptr().cast(), rest.len(), (offset + done as u64) as i64) as i64
        })?;
        done += n as usize;
    }
    Ok(())
}

/// Map the file's first `length` bytes and do something with them.
fn with_mapping(file: &OwnedFd, length: usize, act: impl FnOnce(*mut u8) -> io::Result<()>) -> io::Result<()> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a fresh shared mapping, unmapped below.
    let map = unsafe { libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    if map == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let result = act(map.cast());
    // SAFETY: the mapping made above.
    unsafe { libc::munmap(map, length) };
    result
}

fn mmapwrite(op: &Operation, held: &Held) -> io::Result<()> {
    let file = held.descriptor(&op.path, libc::O_RDWR)?;
    let (offset, length) = range(op)?;
    let end = offset + length as u64;
    if size(&file)? < end {
        // SAFETY: plain numbers.
        check(unsafe { libc::ftruncate(file.as_raw_fd(), end as i64) })?;
    }
    let tag = op.tag.ok_or_else(unsupported)?;
    with_mapping(&file, end as usize, |map| {
        // SAFETY: the mapping covers `end` bytes, which the file has.
        let bytes = unsafe { std::slice::from_raw_parts_mut(map.add(offset as usize), length) };
        pattern::fill(tag, offset, bytes);
        Ok(())
    })
}

fn persist(op: &Operation, held: &Held) -> io::Result<()> {
    if op.op == "sync" {
        // SAFETY: takes nothing.
        unsafe { libc::sync() };
        return Ok(());
    }
    let path = if op.op == "syncfs" { "." } else { &op.path };
    let writable = matches!(op.op.as_str(), "msync");
    let file = held.descriptor(path, if writable { libc::O_RDWR } else { libc::O_RDONLY })?;
    let fd = file.as_raw_fd();
    // SAFETY: plain numbers, and a mapping of the file's whole length.
    let result = unsafe {
        match op.op.as_str() {
            "fsync" => libc::fsync(fd),
            "fdatasync" => libc::fdatasync(fd),
            "syncfs" => libc::syncfs(fd),
            "writeback" => {
                let all =
                    libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
                let (offset, length) = (op.offset.unwrap_or(0), op.length.unwrap_or(0));
                libc::sync_file_range(fd, offset as i64, length as i64, all)
            }
            _ => return msync(op, &file),
        }
    };
    check(result).map(|_| ())
}

/// Of the whole file, or of the pages of a range, as far as the file reaches.
fn msync(op: &Operation, file: &OwnedFd) -> io::Result<()> {
    let size = size(file)? as usize;
    let start = (op.offset.unwrap_or(0) & !(PAGE_BYTES - 1)) as usize;
    let end = op.length.map_or(size, |length| size.min((op.offset.unwrap_or(0) + length) as usize));
    if start >= end {
        return Ok(());
    }
    with_mapping(file, end, |map| {
        // SAFETY: the range lies in the mapping.
        check(unsafe { libc::msync(map.add(start).cast(), end - start, libc::MS_SYNC) }).map(|_| ())
    })
}

fn resize(op: &Operation, held: &Held) -> io::Result<()> {
    let file = held.descriptor(&op.path, libc::O_WRONLY)?;
    let (offset, length) = range(op)?;
    if op.op == "truncate" {
        // SAFETY: plain numbers.
        return check(unsafe { libc::ftruncate(file.as_raw_fd(), length as i64) }).map(|_| ());
    }
    let mode = match op.mode.as_str() {
        "none" => 0,
        "keep-size" => libc::FALLOC_FL_KEEP_SIZE,
        "zero-range" => libc::FALLOC_FL_ZERO_RANGE,
        "zero-range-keep-size" => libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE,
        "punch-hole" => libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE,
        "collapse-range" => libc::FALLOC_FL_COLLAPSE_RANGE,
        "insert-range" => libc::FALLOC_FL_INSERT_RANGE,
        _ => return Err(unsupported()),
    };
    // SAFETY: plain numbers.
    check(unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as i64, length as i64) }).map(|_| ())
}

fn xattr(op: &Operation, held: &Held) -> io::Result<()> {
    let (path, name, value) = (cstr(&held.path(&op.path)?)?, cstr(&op.name)?, op.value.as_bytes());
    // SAFETY: C strings, and a value with its length.
    let result = unsafe {
        match op.op.as_str() {
            "setxattr" => libc::setxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0),
            _ => libc::removexattr(path.as_ptr(), name.as_ptr()),
        }
    };
    check(result).map(|_| ())
}
