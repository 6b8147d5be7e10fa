//! What a program sends over the network: what it says to other machines.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use postcrash_stopped::check;
use postcrash_wire::output::{Lines, Way, PORT, REMOTE};

use crate::process::{path_of, read, BYTES_MAX};

/// A call that sends something: the socket by its inode, and how it sends.
#[derive(Clone, Copy)]
pub struct SendCall {
    inode: u64,
    way: Way,
}

/// The sockets from which something was sent, by their inodes.
#[derive(Default)]
pub struct Sockets(HashMap<u64, Lines>);

impl Sockets {
    /// The lines that a call has sent. `result` is how many bytes the kernel took.
    pub fn sent(
        &mut self,
        thread: libc::pid_t,
        call: (i64, [u64; 6]),
        sending: SendCall,
        result: u64,
    ) -> io::Result<Vec<String>> {
        let bytes = message(thread, call, (result as usize).min(BYTES_MAX))?;
        Ok(self.0.entry(sending.inode).or_insert_with(|| Lines::new(sending.way)).take(&bytes))
    }

    /// Fails if a stream does not end with the end of a line: what is behind the last one is an output of no line.
    pub fn ensure_whole(&self) -> io::Result<()> {
        if self.0.values().all(Lines::is_whole) {
            return Ok(());
        }
        Err(io::Error::other(
            "what the program sends over TCP does not end with the end of a line: only lines are followed",
        ))
    }
}

/// What a call is about to send to the remote machine. None if it sends nothing, or to somebody else.
pub fn sending(thread: libc::pid_t, number: i64, arguments: &[u64; 6]) -> Option<SendCall> {
    if !matches!(number, libc::SYS_write | libc::SYS_writev | libc::SYS_sendto | libc::SYS_sendmsg) {
        return None;
    }
    let metadata = fs::metadata(path_of(thread, arguments[0])).ok().filter(|found| found.file_type().is_socket())?;
    let socket = duplicated(thread, arguments[0]).ok()?;
    let way = match option(&socket, libc::SO_TYPE)? {
        libc::SOCK_DGRAM => Way::Udp,
        libc::SOCK_STREAM => Way::Tcp,
        _ => return None,
    };
    let address = match number {
        libc::SYS_sendto if arguments[4] != 0 => read(thread, arguments[4], arguments[5]).ok()?,
        libc::SYS_sendmsg => {
            let name = words(thread, arguments[1], 2).ok()?;
            if name[0] == 0 {
                peer(&socket)?
            } else {
                read(thread, name[0], name[1] & 0xffff_ffff).ok()?
            }
        }
        _ => peer(&socket)?,
    };
    is_remote(&address).then_some(SendCall { inode: metadata.ino(), way })
}

/// Whether an address, as a `sockaddr`, is where the remote machine listens. It hears nothing at its other ports.
fn is_remote(address: &[u8]) -> bool {
    let family = (libc::AF_INET as u16).to_ne_bytes();
    address.get(..8) == Some(&[&family[..], &PORT.to_be_bytes(), &REMOTE].concat())
}

/// The first bytes of a message, which lies in one buffer or in several.
fn message(thread: libc::pid_t, (number, arguments): (i64, [u64; 6]), length: usize) -> io::Result<Vec<u8>> {
    let parts = match number {
        libc::SYS_writev => words(thread, arguments[1], 2 * arguments[2])?,
        libc::SYS_sendmsg => {
            let head = words(thread, arguments[1], 4)?;
            words(thread, head[2], 2 * head[3])?
        }
        _ => vec![arguments[1], arguments[2]],
    };
    let mut bytes = Vec::new();
    for part in parts.chunks_exact(2) {
        let left = (length - bytes.len()) as u64;
        bytes.extend(read(thread, part[0], part[1].min(left))?);
    }
    Ok(bytes)
}

fn words(thread: libc::pid_t, address: u64, count: u64) -> io::Result<Vec<u64>> {
    let bytes = read(thread, address, count.saturating_mul(8))?;
    Ok(bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes"))).collect())
}

/// The program's socket, as a descriptor of our own.
fn duplicated(thread: libc::pid_t, number: u64) -> io::Result<OwnedFd> {
    let status = fs::read_to_string(format!("/proc/{thread}/status"))?;
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:")).and_then(|text| text.trim().parse().ok());
    let process: libc::pid_t = process.ok_or_else(|| io::Error::other("a thread without a process"))?;
    // SAFETY: plain numbers; fresh descriptors are ours.
    unsafe {
        let process = owned(libc::syscall(libc::SYS_pidfd_open, process, 0))?;
        owned(libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number as i32, 0))
    }
}

/// SAFETY: `result` is of a call that returns a fresh descriptor.
unsafe fn owned(result: libc::c_long) -> io::Result<OwnedFd> {
    check(result).map(|number| OwnedFd::from_raw_fd(number as i32))
}

fn option(socket: &OwnedFd, name: libc::c_int) -> Option<libc::c_int> {
    let (mut value, mut length) = (0, std::mem::size_of::<libc::c_int>() as libc::socklen_t);
    let place = (&raw mut value).cast();
    // SAFETY: the kernel writes one number.
    let result = unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, name, place, &mut length) };
    (result == 0).then_some(value)
}

/// The address that the socket is connected to.
fn peer(socket: &OwnedFd) -> Option<Vec<u8>> {
    let mut address = vec![0; std::mem::size_of::<libc::sockaddr_storage>()];
    let mut length = address.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes.
    let result = unsafe { libc::getpeername(socket.as_raw_fd(), address.as_mut_ptr().cast(), &mut length) };
    (result == 0).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remote_machine_hears_at_one_port_only() {
        let [low, high] = (libc::AF_INET as u16).to_ne_bytes();
        let at = |port: u16| {
            let [first, second] = port.to_be_bytes();
            [low, high, first, second, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0]
        };
        assert!(is_remote(&at(PORT)));
        assert!(!is_remote(&at(PORT + 1)) && !is_remote(&at(PORT)[..6]));
    }
}
