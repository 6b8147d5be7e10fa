//! The box's network: a loopback device of its own, and with a TUN a way out that the supervisor holds.

use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};

use anyhow::{Context, Result};
use rustix::fs::{open, Mode, OFlags};
use rustix::net::{socket, AddressFamily, SocketType};

use crate::sys;

const TUN_SET_INTERFACE: libc::c_ulong = 0x4004_54CA;
/// The two ends of a TUN have the two addresses of a /30 network that are no broadcast addresses.
const MASK: Ipv4Addr = Ipv4Addr::new(255, 255, 255, 252);

/// The addresses of a TUN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    pub inside: Ipv4Addr,
    pub outside: Ipv4Addr,
}

impl Ends {
    /// The box has the address `inside`. None if its /30 network has another use for it.
    pub fn with(inside: Ipv4Addr) -> Option<Ends> {
        let bits = inside.to_bits();
        let outside = Ipv4Addr::from_bits(bits ^ 3);
        [1, 2].contains(&(bits & 3)).then_some(Ends { inside, outside })
    }
}

/// Switch the loopback device on. Every user may have every port: the box has no other users.
pub fn raise_loopback() -> Result<()> {
    std::fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0").context("ports of the box")?;
    Interface::named("lo")?.raise().context("loopback")
}

/// Make a TUN in this network namespace with that address. With `gateway` everything else is reached through it.
pub fn make_tun(address: Ipv4Addr, gateway: Option<Ipv4Addr>) -> Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let device = open("/dev/net/tun", flags, Mode::empty()).context("/dev/net/tun (is the module tun loaded?)")?;
    let mut request = request("xsync%d");
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as i16;
    // SAFETY: the structure lives through the call, which writes the name into it.
    sys::check(unsafe { libc::ioctl(device.as_raw_fd(), TUN_SET_INTERFACE, &mut request) }).context("TUNSETIFF")?;
    be_silent(&request);
    let interface = Interface { request, socket: ip_socket()? };
    interface.set_address(libc::SIOCSIFADDR, address).context("address of the TUN")?;
    interface.set_address(libc::SIOCSIFNETMASK, MASK).context("mask of the TUN")?;
    interface.raise().context("TUN")?;
    if let Some(gateway) = gateway {
        add_route(&interface.socket, gateway).context("route through the TUN")?;
    }
    Ok(device)
}

/// IPv6 would send packets by itself, and each of them would ask for a commit. A kernel without it has no such file.
fn be_silent(request: &libc::ifreq) {
    let name: Vec<u8> = request.ifr_name.iter().map(|&byte| byte as u8).take_while(|&byte| byte != 0).collect();
    let setting = format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", String::from_utf8_lossy(&name));
    let _ = std::fs::write(setting, "1");
}

/// What SIOCADDRT takes: `struct rtentry`.
#[repr(C)]
struct Route {
    pad1: libc::c_ulong,
    destination: libc::sockaddr,
    gateway: libc::sockaddr,
    mask: libc::sockaddr,
    flags: libc::c_ushort,
    pad2: libc::c_short,
    pad3: libc::c_ulong,
    pad4: *const libc::c_void,
    metric: libc::c_short,
    device: *const libc::c_char,
    mtu: libc::c_ulong,
    window: libc::c_ulong,
    round_trip: libc::c_ushort,
}

struct Interface {
    request: libc::ifreq,
    socket: OwnedFd,
}

impl Interface {
    fn named(name: &str) -> Result<Interface> {
        Ok(Interface { request: request(name), socket: ip_socket()? })
    }

    fn raise(&self) -> std::io::Result<()> {
        let mut request = self.request;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
        // SAFETY: the structure lives through the call.
        sys::check(unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::SIOCSIFFLAGS, &request) }).map(drop)
    }

    fn set_address(&self, call: libc::c_ulong, address: Ipv4Addr) -> std::io::Result<()> {
        let mut request = self.request;
        request.ifr_ifru.ifru_addr = as_sockaddr(address);
        // SAFETY: the structure lives through the call.
        sys::check(unsafe { libc::ioctl(self.socket.as_raw_fd(), call, &request) }).map(drop)
    }
}

fn ip_socket() -> Result<OwnedFd> {
    socket(AddressFamily::INET, SocketType::DGRAM, None).context("socket")
}

fn request(name: &str) -> libc::ifreq {
    // SAFETY: all zero is an empty request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request
}

fn as_sockaddr(address: Ipv4Addr) -> libc::sockaddr {
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: 0,
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.octets()) },
        sin_zero: [0; 8],
    };
    // SAFETY: both are plain data of the same size.
    unsafe { std::mem::transmute(address) }
}

fn add_route(socket: &OwnedFd, gateway: Ipv4Addr) -> std::io::Result<()> {
    // SAFETY: all zero is an empty route.
    let mut route: Route = unsafe { std::mem::zeroed() };
    route.destination = as_sockaddr(Ipv4Addr::UNSPECIFIED);
    route.mask = as_sockaddr(Ipv4Addr::UNSPECIFIED);
    route.gateway = as_sockaddr(gateway);
    route.flags = libc::RTF_UP | libc::RTF_GATEWAY;
    // SAFETY: the structure lives through the call.
    sys::check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCADDRT, &route) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_the_two_addresses_of_a_network() {
        let one = Ends::with(Ipv4Addr::new(10, 1, 1, 2)).unwrap();
        assert_eq!(one.outside, Ipv4Addr::new(10, 1, 1, 1));
        assert_eq!(Ends::with(one.outside).unwrap().outside, one.inside);
        assert_eq!(Ends::with(Ipv4Addr::new(10, 1, 1, 0)), None);
        assert_eq!(Ends::with(Ipv4Addr::new(10, 1, 1, 7)), None);
    }
}
