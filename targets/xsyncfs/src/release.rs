//! Outputs, and what it means to release one.

use std::io::{self, Write};
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

use rustix::event::{poll, PollFd, PollFlags};
use rustix::fs::{open, Mode, OFlags};
use rustix::io::Errno;

/// The status of a command that has succeeded, where something around it has not: output found no room outside, or the
/// file system may stay covered.
pub const NOT_ALL_SUCCEEDED: u8 = 1;

/// Something that leaves the box.
#[derive(Debug, PartialEq, Eq)]
pub enum Output {
    /// Bytes for one of xsync's own descriptors: 0, 1 or 2.
    Bytes(RawFd, Vec<u8>),
    /// The box has closed the stream that leads to this descriptor of ours.
    Closed(RawFd),
    /// A packet for the network.
    Packet(Vec<u8>),
    /// The box has taken so many bytes of its input: who writes the input may see that there is room for more.
    Taken(usize),
    /// The command has ended, with this status.
    Exit(u8),
}

impl Output {
    /// So much memory it takes.
    pub fn bytes(&self) -> usize {
        match self {
            Output::Bytes(_, bytes) | Output::Packet(bytes) => bytes.len(),
            Output::Closed(_) | Output::Taken(_) | Output::Exit(_) => 0,
        }
    }
}

/// Lets outputs out.
pub struct Release {
    /// The outer side of the network, if there is one.
    pub network: Option<Arc<OwnedFd>>,
    /// So many bytes of input may be read.
    pub credit: Arc<AtomicUsize>,
    /// Those of our descriptors that nobody reads any more.
    pub refused: Arc<[AtomicBool; 3]>,
    /// Whether there was no room for some output.
    pub is_lost: AtomicBool,
}

impl Release {
    /// Let an output out. Returns the status with which all ends, if it was that.
    pub fn release(&self, output: Output) -> Option<u8> {
        match output {
            Output::Bytes(descriptor, bytes) => {
                if let Err(error) = write_all(ours(descriptor), &bytes) {
                    let nobody_reads = [libc::EPIPE, libc::EIO, libc::ECONNRESET].map(Some);
                    if !nobody_reads.contains(&error.raw_os_error()) {
                        // Standard error may be what has no room.
                        let _ = writeln!(io::stderr(), "xsync: output is lost: {error}");
                        self.is_lost.store(true, Ordering::Relaxed);
                    }
                    close(descriptor);
                    self.refused[descriptor as usize].store(true, Ordering::Relaxed);
                }
            }
            // What goes wrong later is said on our standard error.
            Output::Closed(STDERR) => {}
            Output::Closed(descriptor) => close(descriptor),
            Output::Packet(bytes) => {
                // A network may lose packets.
                let _ = self.network.as_ref().map(|network| rustix::io::write(network, &bytes));
            }
            Output::Taken(bytes) => {
                self.credit.fetch_add(bytes, Ordering::Relaxed);
            }
            Output::Exit(0) if self.is_lost.load(Ordering::Relaxed) => return Some(NOT_ALL_SUCCEEDED),
            Output::Exit(status) => return Some(status),
        }
        None
    }
}

/// One of our descriptors 0, 1 and 2.
pub fn ours(descriptor: RawFd) -> BorrowedFd<'static> {
    assert!((0..=2).contains(&descriptor));
    // SAFETY: these three are open from the start to the end of this process (see `open_missing`).
    unsafe { BorrowedFd::borrow_raw(descriptor) }
}

const STDERR: RawFd = 2;

/// Whoever is at the other end of the descriptor sees its end. We keep one that leads nowhere in its place.
fn close(descriptor: RawFd) {
    if let Ok(nowhere) = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        let _ = match descriptor {
            0 => rustix::stdio::dup2_stdin(nowhere),
            1 => rustix::stdio::dup2_stdout(nowhere),
            _ => rustix::stdio::dup2_stderr(nowhere),
        };
    }
}

/// Open those of the descriptors 0, 1 and 2 that whoever started us has closed.
pub fn open_missing() -> io::Result<()> {
    for descriptor in 0..=2 {
        // SAFETY: a plain number.
        if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } < 0 {
            let opened = open("/dev/null", OFlags::RDWR, Mode::empty())?;
            // The lowest free number is this one.
            std::mem::forget(opened);
        }
    }
    Ok(())
}

fn write_all(descriptor: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(descriptor, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::new(&descriptor, PollFlags::OUT)], None);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_ends_it_and_credit_is_given_back() {
        let release = Release {
            network: None,
            credit: Arc::new(AtomicUsize::new(1)),
            refused: Arc::default(),
            is_lost: AtomicBool::new(false),
        };
        assert_eq!(release.release(Output::Taken(4)), None);
        assert_eq!(release.credit.load(Ordering::Relaxed), 5);
        assert_eq!(release.release(Output::Packet(vec![1])), None);
        assert_eq!(release.release(Output::Exit(0)), Some(0));
        release.is_lost.store(true, Ordering::Relaxed);
        assert_eq!(release.release(Output::Exit(0)), Some(NOT_ALL_SUCCEEDED));
        assert_eq!(release.release(Output::Exit(3)), Some(3));
    }

    #[test]
    fn everything_is_written_though_the_reader_is_slow() {
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
        let sent = vec![7; 300_000];
        let writing = std::thread::spawn(move || write_all(std::os::fd::AsFd::as_fd(&writer), &sent).unwrap());
        let (mut read, mut buffer) = (0, [0; 4096]);
        while read < 300_000 {
            match rustix::io::read(&reader, &mut buffer) {
                Ok(count) => read += count,
                Err(_) => drop(poll(&mut [PollFd::new(&reader, PollFlags::IN)], None)),
            }
        }
        writing.join().unwrap();
    }
}
