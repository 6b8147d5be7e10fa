//! epoll with a token for each descriptor.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

const EVENTS_MAX: usize = 8;

pub struct Poll<T> {
    epoll: OwnedFd,
    tokens: Vec<T>,
    owned: Vec<OwnedFd>,
}

/// A descriptor to watch, either borrowed by its number or handed over.
pub trait Watch {
    fn into_parts(self) -> (RawFd, Option<OwnedFd>);
}

impl Watch for RawFd {
    fn into_parts(self) -> (RawFd, Option<OwnedFd>) {
        (self, None)
    }
}

impl Watch for OwnedFd {
    fn into_parts(self) -> (RawFd, Option<OwnedFd>) {
        (self.as_raw_fd(), Some(self))
    }
}

impl<T: Copy> Poll<T> {
    pub fn new() -> io::Result<Self> {
        // SAFETY: this is a system call with plain numbers. The descriptor is new and ours.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made.
        Ok(Poll { epoll: unsafe { OwnedFd::from_raw_fd(fd) }, tokens: Vec::new(), owned: Vec::new() })
    }

    /// Report `token` whenever the descriptor is readable.
    pub fn add(&mut self, watch: impl Watch, token: T) -> io::Result<()> {
        let (fd, owned) = watch.into_parts();
        self.owned.extend(owned);
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: self.tokens.len() as u64 };
        self.tokens.push(token);
        // SAFETY: the event lives through the call.
        match unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Tokens of the descriptors that are readable. Empty if `timeout` ran out.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<Vec<T>> {
        self.poll(timeout.as_millis().clamp(1, 60_000) as i32)
    }

    /// Tokens of the descriptors that are readable now.
    pub fn ready(&mut self) -> io::Result<Vec<T>> {
        self.poll(0)
    }

    fn poll(&mut self, timeout_ms: i32) -> io::Result<Vec<T>> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX];
        // SAFETY: the array lives through the call, and its length is given.
        let count =
            unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), EVENTS_MAX as i32, timeout_ms) };
        match count {
            count if count >= 0 => Ok(events[..count as usize].iter().map(|e| self.tokens[e.u64 as usize]).collect()),
            _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => Ok(Vec::new()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
