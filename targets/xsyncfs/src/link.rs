//! Messages between the processes of one xsync: what was done, or why it was not, with descriptors.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use anyhow::{bail, ensure, Context, Result};
use rustix::net::{
    recvmsg, sendmsg, socketpair, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

const DESCRIPTORS_MAX: usize = 4;
const TEXT_BYTES_MAX: usize = 4096;
const DONE: u8 = 0;
const FAILED: u8 = 1;

/// One end of a pair of sockets.
pub struct Link(OwnedFd);

impl Link {
    /// Both ends.
    pub fn pair() -> Result<(Link, Link)> {
        let (one, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).context("socketpair")?;
        Ok((Link(one), Link(other)))
    }

    /// Tell the other end that a step is done, and give it `descriptors`.
    pub fn done(&self, descriptors: &[BorrowedFd<'_>]) -> Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            ensure!(control.push(SendAncillaryMessage::ScmRights(descriptors)), "too many descriptors");
        }
        sendmsg(&self.0, &[IoSlice::new(&[DONE])], &mut control, SendFlags::NOSIGNAL).context("sendmsg")?;
        Ok(())
    }

    /// Tell the other end why a step is not done.
    pub fn failed(&self, reason: &str) {
        let mut message = vec![FAILED];
        message.extend(reason.bytes().take(TEXT_BYTES_MAX - 1));
        // If the other end is gone, nobody is left to tell.
        let _ = rustix::net::send(&self.0, &message, SendFlags::NOSIGNAL);
    }

    /// Wait for the other end to be done. Returns the descriptors that it gives. None if it has ended.
    pub fn wait(&self) -> Result<Option<Vec<OwnedFd>>> {
        let mut text = [0; TEXT_BYTES_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = rustix::io::retry_on_intr(|| {
            recvmsg(&self.0, &mut [IoSliceMut::new(&mut text)], &mut control, RecvFlags::CMSG_CLOEXEC)
        })
        .context("recvmsg")?;
        if received.bytes == 0 {
            return Ok(None);
        }
        if text[0] == FAILED {
            bail!("{}", String::from_utf8_lossy(&text[1..received.bytes]));
        }
        let rights = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        Ok(Some(rights.flatten().collect()))
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
