//! The other machine of a program that says something over the network. It is the guest's own kernel, outside of any box:
//! what it has received has left the program's machine.

use std::io::{self, ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;

use postcrash_wire::output::{Lines, Way, PORT, REMOTE};

use crate::sys::check;

const DATAGRAM_BYTES: usize = 1 << 16;

pub struct Remote {
    datagrams: UdpSocket,
    listener: TcpListener,
    streams: Vec<(TcpStream, Lines)>,
}

impl Remote {
    /// Listen. None if the kernel has no network.
    pub fn listen() -> io::Result<Option<Self>> {
        let place = SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT));
        let datagrams = match UdpSocket::bind(place) {
            Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => return Ok(None),
            bound => bound?,
        };
        be_reached(&datagrams)?;
        let listener = TcpListener::bind(place)?;
        datagrams.set_nonblocking(true)?;
        listener.set_nonblocking(true)?;
        Ok(Some(Self { datagrams, listener, streams: Vec::new() }))
    }

    /// The lines that have come.
    pub fn received(&mut self) -> io::Result<Vec<String>> {
        let mut lines = Vec::new();
        let mut buffer = vec![0; DATAGRAM_BYTES];
        while let Some(length) = there(self.datagrams.recv(&mut buffer))? {
            lines.extend(Lines::new(Way::Udp).take(&buffer[..length]));
        }
        while let Some((stream, _)) = there(self.listener.accept())? {
            stream.set_nonblocking(true)?;
            self.streams.push((stream, Lines::new(Way::Tcp)));
        }
        for (stream, of_stream) in &mut self.streams {
            while let Some(length @ 1..) = there(stream.read(&mut buffer))? {
                lines.extend(of_stream.take(&buffer[..length]));
            }
        }
        Ok(lines)
    }
}

/// What was there, if anything was. A peer that has gone has nothing more to say.
fn there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionReset) => Ok(None),
        other => other.map(Some),
    }
}

/// Switch the loopback device on, with the remote machine's address as one more.
fn be_reached(socket: &UdpSocket) -> io::Result<()> {
    let mut request = named("lo");
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    // SAFETY: the structures live through the calls.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &request) })?;
    let mut request = named("lo:1");
    // SAFETY: all zero is an address, and both are plain data of the same size.
    request.ifr_ifru.ifru_addr = unsafe {
        let mut address: libc::sockaddr_in = std::mem::zeroed();
        address.sin_family = libc::AF_INET as libc::sa_family_t;
        address.sin_addr.s_addr = u32::from_ne_bytes(REMOTE);
        std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(address)
    };
    // SAFETY: as above.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFADDR, &request) }).map(drop)
}

fn named(name: &str) -> libc::ifreq {
    // SAFETY: all zero is an empty request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request
}
