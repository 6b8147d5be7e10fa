//! The operations of the workload language, as system calls.
//!
//! SAFETY of these calls: their arguments are C strings that live through the call, a slice with its length, or plain
//! numbers.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use libc::c_char;
use postcrash_wire::units::PAGE_BYTES;
use postcrash_wire::{pattern, Operation, Word};

use crate::checkpoint::checkpoint;
use crate::commit::commit;
use crate::held::{HeldFiles, HANDLE};
use crate::share::{dedupe, reflink};
use crate::sys::{check, cstr, open, range, unsupported, AlignedBuffer};
use crate::untorn::write_untorn;

/// How often the kernel is told to forget what is clean.
const DROP_CACHES_ROUNDS: usize = 4;

/// Do one operation. `commit` and `checkpoint` depend on the type of file system.
pub fn perform(op: &Operation, held: &mut HeldFiles, fstype: &str) -> io::Result<()> {
    match op.op {
        Word::Mkdir => with_name(op, held, |path| unsafe { libc::mkdir(path, 0o755) }),
        Word::Rmdir => with_name(op, held, |path| unsafe { libc::rmdir(path) }),
        Word::Unlink => with_name(op, held, |path| unsafe { libc::unlink(path) }),
        Word::Creat => open(&held.path(&op.path)?, libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY).map(drop),
        Word::Mknod => mknod(op, held),
        Word::Open => held.open(&op.path),
        Word::Tmpfile => held.open_unnamed(&op.path),
        Word::Close => held.close(&op.path),
        Word::Link => link(op, held),
        Word::Symlink => {
            let text = cstr(&op.to)?;
            with_name(op, held, |path| unsafe { libc::symlink(text.as_ptr(), path) })
        }
        Word::Rename => with_names(op, held, |path, to| unsafe { libc::rename(path, to) }),
        Word::Exchange => with_names(op, held, exchange),
        Word::Write => write_at(op, held, 0),
        Word::Append => append(op, held),
        Word::Dwrite => write_at(op, held, libc::O_DIRECT),
        Word::Awrite => write_whole(op, held, 0),
        Word::WriteOsync => write_at(op, held, libc::O_SYNC),
        Word::WriteOdsync => write_at(op, held, libc::O_DSYNC),
        Word::DwriteOsync => write_at(op, held, libc::O_DIRECT | libc::O_SYNC),
        Word::AwriteOdsync => write_whole(op, held, libc::O_DSYNC),
        Word::Mmapwrite => mmapwrite(op, held),
        Word::Truncate => {
            let (_, length) = range(op)?;
            with_file(op, held, libc::O_WRONLY, |fd| unsafe { libc::ftruncate(fd, length as i64) })
        }
        Word::Fallocate => fallocate(op, held),
        Word::Reflink => reflink(op, held),
        Word::Dedupe => dedupe(op, held),
        Word::Setxattr => {
            let (name, value) = (cstr(&op.name)?, op.value.as_bytes());
            let (name, bytes, length) = (name.as_ptr(), value.as_ptr().cast(), value.len());
            with_name(op, held, |path| unsafe { libc::setxattr(path, name, bytes, length, 0) })
        }
        Word::Removexattr => {
            let name = cstr(&op.name)?;
            with_name(op, held, |path| unsafe { libc::removexattr(path, name.as_ptr()) })
        }
        Word::Fsync => with_file(op, held, libc::O_RDONLY, |fd| unsafe { libc::fsync(fd) }),
        Word::Fdatasync => with_file(op, held, libc::O_RDONLY, |fd| unsafe { libc::fdatasync(fd) }),
        Word::Msync => msync(op, &held.descriptor(&op.path, libc::O_RDWR)?),
        Word::Sync => {
            unsafe { libc::sync() };
            Ok(())
        }
        Word::Syncfs => {
            let root = held.descriptor(".", libc::O_RDONLY)?;
            check(unsafe { libc::syncfs(root.as_raw_fd()) }).map(drop)
        }
        Word::Writeback => writeback(op, held),
        Word::Commit => commit(fstype),
        Word::Checkpoint => checkpoint(fstype),
        Word::DropCaches => drop_caches(),
        Word::Sleep => {
            std::thread::sleep(Duration::from_secs(op.seconds.ok_or_else(unsupported)?));
            Ok(())
        }
        // It has marks of its own (`run.rs`).
        Word::Run | Word::RunUnflushed | Word::Watch => Err(unsupported()),
    }
}

/// Have the kernel forget what is clean.
///
/// One round is not enough: it only takes the mark of recent use from a name. The next one frees the name, and only then
/// can the inode be freed.
fn drop_caches() -> io::Result<()> {
    for _ in 0..DROP_CACHES_ROUNDS {
        std::fs::write("/proc/sys/vm/drop_caches", "3")?;
    }
    Ok(())
}

/// A system call that takes the operation's path.
fn with_name(op: &Operation, held: &HeldFiles, call: impl FnOnce(*const c_char) -> i32) -> io::Result<()> {
    let path = cstr(&held.path(&op.path)?)?;
    check(call(path.as_ptr())).map(drop)
}

/// A system call that takes both paths.
fn with_names(
    op: &Operation,
    held: &HeldFiles,
    call: impl FnOnce(*const c_char, *const c_char) -> i32,
) -> io::Result<()> {
    let (path, to) = (cstr(&held.path(&op.path)?)?, cstr(&held.path(&op.to)?)?);
    check(call(path.as_ptr(), to.as_ptr())).map(drop)
}

/// A system call that takes the open file.
fn with_file(op: &Operation, held: &HeldFiles, flags: i32, call: impl FnOnce(RawFd) -> i32) -> io::Result<()> {
    let file = held.descriptor(&op.path, flags)?;
    check(call(file.as_raw_fd())).map(drop)
}

/// Make a link. A handle's path is followed to the open file. A symbolic link is not followed: the link itself is
/// linked.
fn link(op: &Operation, held: &HeldFiles) -> io::Result<()> {
    let flags = if op.path.starts_with(HANDLE) { libc::AT_SYMLINK_FOLLOW } else { 0 };
    let here = libc::AT_FDCWD;
    with_names(op, held, |path, to| unsafe { libc::linkat(here, path, here, to, flags) })
}

fn exchange(path: *const c_char, to: *const c_char) -> i32 {
    let here = libc::AT_FDCWD;
    unsafe { libc::syscall(libc::SYS_renameat2, here, path, here, to, libc::RENAME_EXCHANGE) as i32 }
}

/// Make a special file. Devices have the same numbers as in the simulation (model/simulate.py).
fn mknod(op: &Operation, held: &HeldFiles) -> io::Result<()> {
    let (kind, device) = match op.mode.as_str() {
        "fifo" => (libc::S_IFIFO, 0),
        "socket" => (libc::S_IFSOCK, 0),
        "char" => (libc::S_IFCHR, libc::makedev(1, 3)),
        "block" => (libc::S_IFBLK, libc::makedev(7, 0)),
        _ => return Err(unsupported()),
    };
    with_name(op, held, |path| unsafe { libc::mknod(path, kind | 0o644, device) })
}

fn size(file: &OwnedFd) -> io::Result<u64> {
    // SAFETY: seeking moves nothing but this descriptor's offset.
    check(unsafe { libc::lseek(file.as_raw_fd(), 0, libc::SEEK_END) }).map(|size| size as u64)
}

fn write_at(op: &Operation, held: &HeldFiles, flags: i32) -> io::Result<()> {
    let (offset, length) = range(op)?;
    write(op, &held.descriptor(&op.path, libc::O_WRONLY | flags)?, offset, length)
}

/// Write with O_DIRECT and RWF_ATOMIC.
fn write_whole(op: &Operation, held: &HeldFiles, flags: i32) -> io::Result<()> {
    let (offset, length) = range(op)?;
    let file = held.descriptor(&op.path, libc::O_WRONLY | libc::O_DIRECT | flags)?;
    write_untorn(&file, written(op, offset, length)?.bytes(), offset)
}

fn append(op: &Operation, held: &HeldFiles) -> io::Result<()> {
    let file = held.descriptor(&op.path, libc::O_WRONLY)?;
    let (_, length) = range(op)?;
    write(op, &file, size(&file)?, length)
}

/// The bytes that a write puts at an offset.
fn written(op: &Operation, offset: u64, length: usize) -> io::Result<AlignedBuffer> {
    let mut buffer = AlignedBuffer::new(length);
    pattern::fill(op.tag.ok_or_else(unsupported)?, offset, buffer.bytes_mut());
    Ok(buffer)
}

fn write(op: &Operation, file: &OwnedFd, offset: u64, length: usize) -> io::Result<()> {
    let buffer = written(op, offset, length)?;
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

fn mmapwrite(op: &Operation, held: &HeldFiles) -> io::Result<()> {
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

fn writeback(op: &Operation, held: &HeldFiles) -> io::Result<()> {
    let all = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    let (offset, length) = (op.offset.unwrap_or(0) as i64, op.length.unwrap_or(0) as i64);
    with_file(op, held, libc::O_RDONLY, |fd| unsafe { libc::sync_file_range(fd, offset, length, all) })
}

/// Call msync for the whole file, or for the pages of a range as far as the file reaches.
fn msync(op: &Operation, file: &OwnedFd) -> io::Result<()> {
    let size = size(file)? as usize;
    // msync(2) wants an address where a page starts.
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

fn fallocate(op: &Operation, held: &HeldFiles) -> io::Result<()> {
    let (offset, length) = range(op)?;
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
    with_file(op, held, libc::O_WRONLY, |fd| unsafe { libc::fallocate(fd, mode, offset as i64, length as i64) })
}
