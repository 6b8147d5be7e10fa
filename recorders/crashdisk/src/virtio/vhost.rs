//! The part of the vhost-user protocol that virtio_uml and QEMU use for a block device with one queue.
//!
//! This is written by hand on purpose, because the rust-vmm `vhost` crate refuses virtio_uml's SET_MEM_TABLE. Source:
//! QEMU's docs/interop/vhost-user.rst and arch/um/drivers/vhost_user.h.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::virtio::memory::{invalid, GuestMemory, Region};
use crate::virtio::virtqueue::{RingAddresses, Virtqueue};

const VERSION: u32 = 1;
const FLAG_REPLY: u32 = 1 << 2;
const FLAG_NEED_REPLY: u32 = 1 << 3;
const PAYLOAD_BYTES_MAX: usize = 4096;
/// A message begins with three words: request, flags and the size of the payload (vhost-user.rst, "Header").
const HEADER_BYTES: usize = 12;
/// The payload of GET_CONFIG begins with three words: offset, size and flags (vhost-user.rst, "Virtio device config
/// space").
const CONFIG_HEAD_BYTES: usize = 12;
/// The payload of SET_MEM_TABLE begins with the number of regions and padding (vhost-user.rst, "Multiple memory regions
/// description").
const MEMORY_HEAD_BYTES: usize = 8;
/// A region has four words of 64 bits: guest address, size, user address and offset (vhost-user.rst, "Memory region
/// description").
const MEMORY_REGION_BYTES: usize = 32;
/// As in the protocol.
const MEMORY_REGIONS_MAX: usize = 8;
/// When a message has begun, its rest is there at once or never comes.
const MESSAGE_TIMEOUT: Duration = Duration::from_millis(if cfg!(test) { 50 } else { 5000 });

/// VHOST_USER_F_PROTOCOL_FEATURES.
const F_PROTOCOL_FEATURES: u64 = 1 << 30;
/// VHOST_USER_PROTOCOL_F_REPLY_ACK.
const F_REPLY_ACK: u64 = 1 << 3;
/// VHOST_USER_PROTOCOL_F_BACKEND_REQ. virtio_uml insists on it.
const F_BACKEND_REQ: u64 = 1 << 5;
/// VHOST_USER_PROTOCOL_F_CONFIG.
const F_CONFIG: u64 = 1 << 9;
const PROTOCOL_FEATURES: u64 = F_REPLY_ACK | F_BACKEND_REQ | F_CONFIG;

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

/// The bits of a queue's number that hold the number. In kick and call messages a flag stands above them.
const QUEUE_MASK: u32 = 0xff;

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
    /// The guest's process.
    process: u32,
    pub memory: GuestMemory,
    pub queue: Virtqueue,
    backend_request: Option<OwnedFd>,
}

impl Connection {
    pub fn new(stream: UnixStream, features: u64, config: Vec<u8>, process: u32) -> Self {
        Connection {
            stream,
            features: features | F_PROTOCOL_FEATURES,
            config,
            process,
            memory: GuestMemory::default(),
            queue: Virtqueue::default(),
            backend_request: None,
        }
    }

    /// Read and answer one message. False when the guest has gone.
    pub fn serve(&mut self) -> io::Result<bool> {
        match self.serve_message() {
            Err(error) if is_cut_off(&error) => Ok(false),
            other => other,
        }
    }

    fn serve_message(&mut self) -> io::Result<bool> {
        self.stream.set_read_timeout(Some(MESSAGE_TIMEOUT))?;
        let mut head = [0u8; HEADER_BYTES];
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
        if is_about_queue(header.request) {
            let queue = u32_at(payload, 0)? & QUEUE_MASK;
            if queue != 0 {
                return Err(invalid(format!("vhost-user request {} is for queue {queue}", header.request)));
            }
        }
        let answer = match header.request {
            request::GET_FEATURES => Some(self.features.to_le_bytes().to_vec()),
            request::GET_PROTOCOL_FEATURES => Some(PROTOCOL_FEATURES.to_le_bytes().to_vec()),
            request::GET_QUEUE_NUM => Some(1u64.to_le_bytes().to_vec()),
            request::GET_CONFIG => Some(self.config_answer(payload)?),
            request::GET_VRING_BASE => {
                let base = self.queue.stop();
                Some([0u32.to_le_bytes(), u32::from(base).to_le_bytes()].concat())
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
            request::SET_MEM_TABLE => {
                let memory = memory_table(payload, fds, self.process)?;
                self.queue.remap(&memory)?;
                self.memory = memory;
            }
            request::SET_VRING_NUM => self.queue.set_size(u32_at(payload, 4)?)?,
            request::SET_VRING_BASE => self.queue.set_base(u32_at(payload, 4)? as u16),
            request::SET_VRING_ADDR => {
                let (desc, used) = (u64_at(payload, 8)?, u64_at(payload, 16)?);
                let addresses = RingAddresses { desc, used, avail: u64_at(payload, 24)? };
                self.queue.set_rings(addresses, &self.memory)?;
            }
            request::SET_VRING_KICK => self.queue.kick = fds.pop().map(nonblocking).transpose()?,
            request::SET_VRING_CALL => self.queue.call = fds.pop().map(nonblocking).transpose()?,
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

    /// GET_CONFIG: the answer repeats offset, size and flags, and then has the bytes of the device's configuration.
    fn config_answer(&self, payload: &[u8]) -> io::Result<Vec<u8>> {
        let (offset, size) = (u32_at(payload, 0)? as usize, u32_at(payload, 4)? as usize);
        if size > PAYLOAD_BYTES_MAX || offset > PAYLOAD_BYTES_MAX {
            return Err(invalid(format!("configuration read of {size} bytes at {offset}")));
        }
        let bytes = (offset..offset + size).map(|i| self.config.get(i).copied().unwrap_or(0));
        Ok(payload[..CONFIG_HEAD_BYTES.min(payload.len())].iter().copied().chain(bytes).collect())
    }

    fn reply(&mut self, request: u32, payload: &[u8]) -> io::Result<()> {
        let head = [request, VERSION | FLAG_REPLY, payload.len() as u32].map(u32::to_le_bytes).concat();
        self.stream.write_all(&[head, payload.to_vec()].concat())
    }
}

/// Whether the other end of a socket went away in the middle of something.
pub fn is_cut_off(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

fn is_about_queue(request: u32) -> bool {
    use request::{
        GET_VRING_BASE, SET_VRING_ADDR, SET_VRING_BASE, SET_VRING_CALL, SET_VRING_ENABLE, SET_VRING_KICK, SET_VRING_NUM,
    };
    let these = [SET_VRING_NUM, SET_VRING_ADDR, SET_VRING_BASE, GET_VRING_BASE, SET_VRING_ENABLE];
    these.contains(&request) || [SET_VRING_KICK, SET_VRING_CALL].contains(&request)
}

/// The descriptor, which never blocks from now on. Otherwise a guest could keep us waiting for ever: with an event that it
/// has read before us, or with a pipe that it never reads.
fn nonblocking(fd: OwnedFd) -> io::Result<OwnedFd> {
    // SAFETY: these are system calls with plain numbers on a descriptor that is ours.
    let done = unsafe {
        let flags = libc::fcntl(fd.as_raw_fd(), libc::F_GETFL);
        libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK)
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(fd)
}

fn memory_table(payload: &[u8], fds: &mut Vec<OwnedFd>, process: u32) -> io::Result<GuestMemory> {
    let regions = u32_at(payload, 0)? as usize;
    if regions > MEMORY_REGIONS_MAX {
        return Err(invalid(format!("{regions} memory regions")));
    }
    if regions > fds.len() {
        return Err(invalid(format!("{regions} memory regions with {} descriptors", fds.len())));
    }
    let mut memory = GuestMemory::of(process);
    for (i, fd) in fds.drain(..).take(regions).enumerate() {
        let field = |n: usize| u64_at(payload, MEMORY_HEAD_BYTES + MEMORY_REGION_BYTES * i + size_of::<u64>() * n);
        let region = Region::map(&fd, field(0)?, field(1)?, field(2)?, field(3)?);
        memory.add(region.map_err(|error| invalid(format!("memory region {i} cannot be mapped: {error}")))?);
    }
    Ok(memory)
}

/// The first bytes of a message, and the descriptors that came with them.
fn receive(stream: &UnixStream, head: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut iov = libc::iovec { iov_base: head.as_mut_ptr().cast(), iov_len: head.len() };
    let mut control = [0u64; 16];
    // SAFETY: an all-zero msghdr is valid. The pointers stay alive through the call.
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
    // SAFETY: the kernel filled the control buffer. The descriptors are new and ours.
    unsafe {
        let mut cmsg = libc::CMSG_FIRSTHDR(&header);
        while !cmsg.is_null() {
            if (*cmsg).cmsg_level == libc::SOL_SOCKET && (*cmsg).cmsg_type == libc::SCM_RIGHTS {
                let count = ((*cmsg).cmsg_len - libc::CMSG_LEN(0) as usize) / std::mem::size_of::<i32>();
                let data = libc::CMSG_DATA(cmsg).cast::<i32>();
                fds.extend((0..count).map(|i| OwnedFd::from_raw_fd(data.add(i).read_unaligned())));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtio::memory::fake::{file, memory, pipe, BYTES, GUEST, USER};

    fn pair() -> (UnixStream, Connection) {
        let (guest, ours) = UnixStream::pair().expect("sockets");
        (guest, Connection::new(ours, 1 << 9, vec![7; 8], 0))
    }

    fn message(request: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
        [&[request, VERSION | flags, payload.len() as u32].map(u32::to_le_bytes).concat(), payload].concat()
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn serve(request: u32, payload: &[u8]) -> io::Result<bool> {
        let (mut guest, mut connection) = pair();
        guest.write_all(&message(request, 0, payload)).expect("sent");
        connection.serve()
    }

    /// Payload of SET_MEM_TABLE with one region of `size` bytes from `offset` on.
    fn table(regions: u64, size: u64, offset: u64) -> Vec<u8> {
        words(&[regions, GUEST, size, USER, offset])
    }

    #[test]
    fn questions_are_answered() {
        let (mut guest, mut connection) = pair();
        for (request, flags, payload, wanted) in [
            (request::GET_FEATURES, 0, vec![], words(&[1 << 30 | 1 << 9])),
            (request::GET_QUEUE_NUM, 0, vec![], words(&[1])),
            (request::GET_VRING_BASE, 0, words(&[0]), words(&[0])),
            (request::SET_OWNER, FLAG_NEED_REPLY, vec![], words(&[0])),
            (request::GET_CONFIG, 0, [6, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1].to_vec(), {
                vec![6, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 7, 7, 0]
            }),
        ] {
            guest.write_all(&message(request, flags, &payload)).expect("sent");
            assert!(connection.serve().expect("served"));
            let mut answer = vec![0; 12 + wanted.len()];
            guest.read_exact(&mut answer).expect("answered");
            assert_eq!(answer, message(request, FLAG_REPLY, &wanted), "request {request}");
        }
    }

    #[test]
    fn a_guest_that_has_gone_is_no_error() {
        let (guest, mut connection) = pair();
        drop(guest);
        assert!(!connection.serve().expect("gone"));
        let whole = message(request::SET_VRING_NUM, 0, &words(&[8]));
        for length in [1, 11, 12, 19] {
            let (mut guest, mut connection) = pair();
            guest.write_all(&whole[..length]).expect("sent");
            drop(guest);
            assert!(!connection.serve().expect("gone"), "after {length} bytes");
        }
    }

    #[test]
    fn a_guest_that_stops_inside_a_message_is_not_waited_for() {
        let (mut guest, mut connection) = pair();
        guest.write_all(&message(request::SET_VRING_NUM, 0, &words(&[8]))[..13]).expect("sent");
        connection.serve().expect_err("the rest does not come");
    }

    #[test]
    fn requests_that_cannot_be_are_errors() {
        for (request, payload, reason) in [
            (99, vec![], "vhost-user request 99 is not known here"),
            (request::GET_FEATURES, vec![0; 4097], "vhost-user payload of 4097 bytes"),
            (request::SET_VRING_NUM, vec![], "payload is too short"),
            (request::SET_VRING_NUM, vec![0; 7], "payload is too short"),
            (request::SET_VRING_NUM, words(&[0]), "a queue of 0 entries"),
            (request::SET_VRING_NUM, words(&[8 << 32 | 1]), "is for queue 1"),
            (request::SET_VRING_KICK, words(&[2]), "is for queue 2"),
            (request::SET_VRING_ADDR, vec![0; 31], "payload is too short"),
            (request::SET_VRING_ADDR, vec![0; 40], "the rings of a queue without entries"),
            (request::GET_CONFIG, vec![0; 7], "payload is too short"),
            (request::GET_CONFIG, [[0xff; 4], [1, 0, 0, 0]].concat(), "configuration read of 1 bytes at 4294967295"),
            (request::SET_MEM_TABLE, vec![], "payload is too short"),
            (request::SET_MEM_TABLE, table(1, BYTES, 0), "1 memory regions with 0 descriptors"),
            (request::SET_MEM_TABLE, vec![0xff; 8], "4294967295 memory regions"),
        ] {
            let error = serve(request, &payload).expect_err(reason).to_string();
            assert!(error.contains(reason), "{error}, not {reason}");
        }
    }

    #[test]
    fn a_memory_table_that_cannot_be_is_an_error() {
        for payload in
            [table(2, BYTES, 0), table(1, BYTES + 4096, 0), table(1, BYTES, u64::MAX), table(1, 0, 0), words(&[1, 0])]
        {
            assert!(memory_table(&payload, &mut vec![file(BYTES), file(BYTES)], 0).is_err(), "{payload:?}");
        }
        let memory = memory_table(&table(1, BYTES, 0), &mut vec![file(BYTES)], 0).expect("mapped");
        memory.write(GUEST, &[1]).expect("inside");
    }

    #[test]
    fn rings_outside_the_memory_are_an_error() {
        let (mut guest, mut connection) = pair();
        connection.memory = memory();
        connection.queue.set_size(256).expect("a size");
        guest.write_all(&message(request::SET_VRING_ADDR, 0, &words(&[0, USER, USER + BYTES, USER]))).expect("sent");
        assert!(connection.serve().expect_err("outside").to_string().contains("not inside the guest's memory"));
    }

    #[test]
    fn new_memory_without_the_rings_of_a_running_queue_is_an_error() {
        let (_guest, mut connection) = pair();
        connection.memory = memory();
        connection.queue.set_size(256).expect("a size");
        let rings = RingAddresses { desc: USER, used: USER + 0x4000, avail: USER + 0x8000 };
        connection.queue.set_rings(rings, &connection.memory).expect("rings");
        let set = |connection: &mut Connection, size| {
            connection.configure(request::SET_MEM_TABLE, &table(1, size, 0), &mut vec![file(BYTES)])
        };
        set(&mut connection, BYTES).expect("the same place");
        assert!(connection.queue.take_available().expect("running").is_empty());
        set(&mut connection, 4096).expect_err("the rings are outside");
        assert!(connection.queue.take_available().expect("stopped").is_empty());
    }

    #[test]
    fn a_pipe_that_the_guest_does_not_read_is_not_waited_for() {
        let (_guest, mut connection) = pair();
        let (_reader, writer) = pipe();
        connection.configure(request::SET_VRING_CALL, &words(&[0]), &mut vec![writer]).expect("set");
        connection.memory = memory();
        connection.queue.set_size(256).expect("a size");
        let rings = RingAddresses { desc: USER, used: USER + 0x4000, avail: USER + 0x8000 };
        connection.queue.set_rings(rings, &connection.memory).expect("rings");
        // A pipe has room for 8192 interrupts.
        for _ in 0..10_000 {
            connection.queue.notify();
        }
    }

    /// Send `bytes` with `count` copies of a descriptor.
    fn send_with_descriptors(guest: &UnixStream, bytes: &[u8], count: usize) {
        let fd = file(BYTES);
        let mut control = [0u64; 32];
        let mut iov = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        // SAFETY: the control buffer is large enough for `count` descriptors; the pointers live through the call.
        let sent = unsafe {
            let mut header: libc::msghdr = std::mem::zeroed();
            header.msg_iov = &mut iov;
            header.msg_iovlen = 1;
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = libc::CMSG_SPACE(4 * count as u32) as usize;
            let cmsg = libc::CMSG_FIRSTHDR(&header);
            (*cmsg).cmsg_level = libc::SOL_SOCKET;
            (*cmsg).cmsg_type = libc::SCM_RIGHTS;
            (*cmsg).cmsg_len = libc::CMSG_LEN(4 * count as u32) as usize;
            for i in 0..count {
                libc::CMSG_DATA(cmsg).cast::<i32>().add(i).write_unaligned(fd.as_raw_fd());
            }
            libc::sendmsg(guest.as_raw_fd(), &header, 0)
        };
        assert_eq!(sent, bytes.len() as isize);
    }

    #[test]
    fn descriptors_come_with_their_message_and_none_is_left_open() {
        let (guest, mut connection) = pair();
        send_with_descriptors(&guest, &message(request::SET_MEM_TABLE, 0, &table(1, BYTES, 0)), 1);
        assert!(connection.serve().expect("served"));
        connection.memory.write(GUEST + BYTES - 1, &[1]).expect("inside");
        send_with_descriptors(&guest, &message(request::SET_OWNER, 0, &[]), 20);
        let mut head = [0; 12];
        let (_, fds) = receive(&connection.stream, &mut head).expect("received");
        assert_eq!(fds.len(), 20);
    }
}
