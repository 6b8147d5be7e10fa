//! The vhost-user protocol, as far as virtio_uml and QEMU speak it to a block device with one queue.
//!
//! Written by hand on purpose: the rust-vmm `vhost` crate refuses virtio_uml's SET_MEM_TABLE. Source: QEMU's
//! docs/interop/vhost-user.rst and arch/um/drivers/vhost_user.h.

use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use crate::memory::{GuestMemory, Region};
use crate::virtqueue::Virtqueue;

const VERSION: u32 = 1;
const FLAG_REPLY: u32 = 1 << 2;
const FLAG_NEED_REPLY: u32 = 1 << 3;
const PAYLOAD_BYTES_MAX: usize = 4096;
const FDS_MAX: usize = 8;

/// VHOST_USER_F_PROTOCOL_FEATURES.
const F_PROTOCOL_FEATURES: u64 = 1 << 30;
/// VHOST_USER_PROTOCOL_F_REPLY_ACK, _BACKEND_REQ (virtio_uml insists on it) and _CONFIG.
const PROTOCOL_FEATURES: u64 = 1 << 3 | 1 << 5 | 1 << 9;

mod request {
    pub const GET_FEATURES: u32 = 1;
    pub const SET_FEATURES: u32 = 2;
    pub const SET_OWNER: u32 = 3;
    pub const SET_MEM_TABLE: u32 = 5;
    pub const SET_VRING_NUM: u32 = 8;
    pub const SET_VRING_ADDR: u32 = 9;
    pub const SET_VRING_BASE: u32 = 10;
    pub const GET_VRING_BASE: u32 = 11;
    pub const SET_VRING_KICK: u32 = 12;
    pub const SET_VRING_CALL: u32 = 13;
    pub const SET_VRING_ERR: u32 = 14;
    pub const GET_PROTOCOL_FEATURES: u32 = 15;
    pub const SET_PROTOCOL_FEATURES: u32 = 16;
    pub const GET_QUEUE_NUM: u32 = 17;
    pub const SET_VRING_ENABLE: u32 = 18;
    pub const SET_BACKEND_REQ_FD: u32 = 21;
    pub const GET_CONFIG: u32 = 24;
    pub const SET_CONFIG: u32 = 25;
}

struct Header {
    request: u32,
    flags: u32,
}

/// One connection of a guest to one device.
pub struct Connection {
    stream: UnixStream,
    /// virtio features that the device offers.
    features: u64,
    config: Vec<u8>,
    pub memory: GuestMemory,
    pub queue: Virtqueue,
    backend_request: Option<OwnedFd>,
}

impl Connection {
    pub fn new(stream: UnixStream, features: u64, config: Vec<u8>) -> Self {
        Connection {
            stream,
            features: features | F_PROTOCOL_FEATURES,
            config,
            memory: GuestMemory::default(),
            queue: Virtqueue::default(),
            backend_request: None,
        }
    }

    /// Read and answer one message. False when the guest has gone.
    pub fn serve(&mut self) -> io::Result<bool> {
        let mut head = [0u8; 12];
        let (received, mut fds) = receive(&self.stream, &mut head)?;
        if received == 0 {
            return Ok(false);
        }
        self.stream.read_exact(&mut head[received..])?;
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let header = Header { request: word(0), flags: word(4) };
        let length = word(8) as usize;
        if length > PAYLOAD_BYTES_MAX {
            return Err(invalid(format!("vhost-user payload of {length} bytes")));
        }
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload)?;
        self.dispatch(&header, &payload, &mut fds)?;
        Ok(true)
    }

    fn dispatch(&mut self, header: &Header, payload: &[u8], fds: &mut Vec<OwnedFd>) -> io::Result<()> {
        let index = payload.get(..4).map_or(0, |b| u32::from_le_bytes(b.try_into().expect("four bytes")));
        let answer = match header.request {
            request::GET_FEATURES => Some(self.features.to_le_bytes().to_vec()),
            request::GET_PROTOCOL_FEATURES => Some(PROTOCOL_FEATURES.to_le_bytes().to_vec()),
            request::GET_QUEUE_NUM => Some(1u64.to_le_bytes().to_vec()),
            request::GET_CONFIG => Some(self.config_answer(payload)?),
            request::GET_VRING_BASE => {
                let base = self.queue.stop();
                Some([index.to_le_bytes(), u32::from(base).to_le_bytes()].concat())
            }
            _ => {
                self.configure(header.request, payload, fds)?;
                None
            }
        };
        match answer {
            Some(answer) => self.reply(header.request, &answer),
            None if header.flags & FLAG_NEED_REPLY != 0 => self.reply(header.request, &0u64.to_le_bytes()),
            None => Ok(()),
        }
    }

    fn configure(&mut self, request: u32, payload: &[u8], fds: &mut Vec<OwnedFd>) -> io::Result<()> {
        match request {
            request::SET_MEM_TABLE => self.memory = memory_table(payload, fds)?,
            request::SET_VRING_NUM => self.queue.set_size(u32_at(payload, 4)?)?,
            request::SET_VRING_BASE => self.queue.set_base(u32_at(payload, 4)? as u16),
            request::SET_VRING_ADDR => {
                let user = |at: usize| self.memory.host_of_user(u64_at(payload, at)?);
                self.queue.set_rings(user(8)?, user(16)?, user(24)?);
            }
            request::SET_VRING_KICK => self.queue.kick = fds.pop(),
            request::SET_VRING_CALL => self.queue.call = fds.pop(),
            request::SET_BACKEND_REQ_FD => self.backend_request = fds.pop(),
            request::SET_VRING_ENABLE
            | request::SET_FEATURES
            | request::SET_PROTOCOL_FEATURES
            | request::SET_OWNER
            | request::SET_VRING_ERR
            | request::SET_CONFIG => {}
            other => return Err(invalid(format!("vhost-user request {other} is not known here"))),
        }
        Ok(())
    }

    /// GET_CONFIG: offset, size and flags are echoed, then the bytes of the device's configuration.
    fn config_answer(&self, payload: &[u8]) -> io::Result<Vec<u8>> {
        let (offset, size) = (u32_at(payload, 0)? as usize, u32_at(payload, 4)? as usize);
        if size > PAYLOAD_BYTES_MAX || offset > PAYLOAD_BYTES_MAX {
            return Err(invalid(format!("configuration read of {size} bytes at {offset}")));
        }
        let bytes = (offset..offset + size).map(|i| self.config.get(i).copied().unwrap_or(0));
        Ok(payload[..12.min(payload.len())].iter().copied().chain(bytes).collect())
    }

    fn reply(&mut self, request: u32, payload: &[u8]) -> io::Result<()> {
        let head = [request, VERSION | FLAG_REPLY, payload.len() as u32].map(u32::to_le_bytes).concat();
        self.stream.write_all(&[head, payload.to_vec()].concat())
    }
}

fn memory_table(payload: &[u8], fds: &mut Vec<OwnedFd>) -> io::Result<GuestMemory> {
    let regions = u32_at(payload, 0)? as usize;
    if regions > fds.len() {
        return Err(invalid(format!("{regions} memory regions with {} descriptors", fds.len())));
    }
    let mut memory = GuestMemory::default();
    for (i, fd) in fds.drain(..).take(regions).enumerate() {
        let field = |n: usize| u64_at(payload, 8 + 32 * i + 8 * n);
        memory.add(Region::map(&fd, field(0)?, field(1)?, field(2)?, field(3)?)?);
    }
    Ok(memory)
}

/// First bytes of a message with the descriptors that came with them.
fn receive(stream: &UnixStream, head: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    use std::os::fd::AsRawFd;
    let mut iov = libc::iovec { iov_base: head.as_mut_ptr().cast(), iov_len: head.len() };
    let mut control = [0u64; 16];
    // SAFETY: an all-zero msghdr is valid; the pointers stay alive through the call.
    let (received, header) = unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &mut iov;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = std::mem::size_of_val(&control);
        (libc::recvmsg(stream.as_raw_fd(), &mut header, libc::MSG_CMSG_CLOEXEC), header)
    };
    if received < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut fds = Vec::new();
    // SAFETY: the kernel filled the control buffer; the descriptors are new and ours.
    unsafe {
        let mut cmsg = libc::CMSG_FIRSTHDR(&header);
        while !cmsg.is_null() {
            if (*cmsg).cmsg_level == libc::SOL_SOCKET && (*cmsg).cmsg_type == libc::SCM_RIGHTS {
                let count = ((*cmsg).cmsg_len - libc::CMSG_LEN(0) as usize) / std::mem::size_of::<i32>();
                let data = libc::CMSG_DATA(cmsg).cast::<i32>();
                fds.extend((0..count.min(FDS_MAX)).map(|i| OwnedFd::from_raw_fd(data.add(i).read_unaligned())));
            }
            cmsg = libc::CMSG_NXTHDR(&header, cmsg);
        }
    }
    Ok((received as usize, fds))
}

fn u32_at(payload: &[u8], at: usize) -> io::Result<u32> {
    let bytes = payload.get(at..at + 4).ok_or_else(|| invalid("vhost-user payload is too short".into()))?;
    Ok(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
}

fn u64_at(payload: &[u8], at: usize) -> io::Result<u64> {
    let bytes = payload.get(at..at + 8).ok_or_else(|| invalid("vhost-user payload is too short".into()))?;
    Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
}

pub fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
