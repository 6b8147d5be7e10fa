//! The ports of a guest: a socket for each of its disks, and the connection that its kernel makes.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixListener;

use postcrash_wire::frame;
use postcrash_wire::units::SECTOR_BYTES;

use crate::guest::config::GuestConfig;
use crate::virtio::block::{self, Place, Request, Status};
use crate::virtio::log_disk;
use crate::virtio::vhost::Connection;

/// The port of the mailbox.
pub const MAILBOX: usize = 1;

/// What a port is. The ports stand in the order of the guest's disks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// The test disk with this place among all of them.
    Test(Place),
    Mailbox,
    Log,
}
pub struct Port {
    pub device: Device,
    pub listener: UnixListener,
    pub sectors: u64,
    pub connection: Option<Connection>,
    pub kick: Option<RawFd>,
    /// Something was put into the ring of completed requests, and the guest was not interrupted for it yet.
    pub owes_interrupt: bool,
}

impl Port {
    /// Where the disk begins.
    fn place(&self) -> Place {
        match self.device {
            Device::Test(place) => place,
            Device::Mailbox | Device::Log => Place { disk: 0, start: 0, sectors: self.sectors },
        }
    }

    /// Its sectors among those of all disks.
    pub fn range(&self) -> Range<u64> {
        let start = self.place().start;
        start..start + self.sectors
    }

    /// The requests in its ring.
    pub fn take(&mut self) -> io::Result<Vec<Request>> {
        let place = self.place();
        let Some(connection) = self.connection.as_mut() else { return Ok(Vec::new()) };
        let chains = connection.queue.take_available()?;
        chains.into_iter().map(|chain| Request::parse(chain, &connection.memory, place)).collect()
    }

    /// Put a request into its ring of completed ones. The guest is not interrupted yet.
    pub fn reply(&mut self, request: &Request, data: &[u8], status: Status) -> io::Result<()> {
        let Some(connection) = self.connection.as_mut() else { return Ok(()) };
        let written = request.answer(&connection.memory, data, status)?;
        connection.queue.complete(request.head, written);
        self.owes_interrupt = true;
        Ok(())
    }

    /// Interrupt the guest, if something was completed since the last time.
    pub fn notify(&mut self) {
        if std::mem::take(&mut self.owes_interrupt) {
            if let Some(connection) = self.connection.as_ref() {
                connection.queue.notify();
            }
        }
    }

    /// A connection that was accepted from the process.
    pub fn connect(&mut self, process: u32) -> io::Result<RawFd> {
        let (stream, _) = self.listener.accept()?;
        let socket = stream.as_raw_fd();
        let is_volatile = matches!(self.device, Device::Test(_));
        let (features, config) = (block::features(is_volatile), block::config(self.sectors));
        self.connection = Some(Connection::new(stream, features, config, process));
        Ok(socket)
    }
}

/// The guest's disks with their sectors, in the order of [`GuestConfig::sockets`].
fn devices(config: &GuestConfig) -> Vec<(Device, u64)> {
    let mut start = 0;
    let mut disk = |(number, &sectors): (u32, &u64)| {
        let place = Place { disk: number, start, sectors };
        start += sectors;
        (Device::Test(place), sectors)
    };
    let mut devices = vec![disk((0, &config.disk_sectors))];
    devices.push((Device::Mailbox, frame::MAILBOX_BYTES / SECTOR_BYTES as u64));
    devices.extend((1..).zip(&config.further_disks).map(disk));
    devices.extend(config.log_disk.as_ref().map(|_| (Device::Log, log_disk::SECTORS)));
    devices
}

/// The ports, each with a socket to which the guest will connect.
pub fn open(config: &GuestConfig) -> io::Result<Vec<Port>> {
    let listen = |(path, (device, sectors))| {
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(path)?;
        Ok(Port { device, listener, sectors, connection: None, kick: None, owes_interrupt: false })
    };
    config.sockets().zip(devices(config)).map(listen).collect()
}
