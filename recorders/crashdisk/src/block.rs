//! Requests of a virtio block device (virtio 1.1, section 5.2).

use std::io;

use crate::memory::GuestMemory;
use crate::vhost::invalid;
use crate::virtqueue::{Buffer, Chain};

const SECTOR_BYTES: usize = 512;
const HEADER_BYTES: u32 = 16;
/// Largest request in bytes that the queue can describe.
const REQUEST_BYTES_MAX: usize = 64 << 20;

const F_SIZE_MAX: u64 = 1 << 1;
const F_SEG_MAX: u64 = 1 << 2;
const F_BLK_SIZE: u64 = 1 << 6;
const F_FLUSH: u64 = 1 << 9;
const F_DISCARD: u64 = 1 << 13;
const F_WRITE_ZEROES: u64 = 1 << 14;
const F_VERSION_1: u64 = 1 << 32;
const SEGMENTS_MAX: u32 = 126;
const ZERO_SECTORS_MAX: u32 = 1 << 22;

/// virtio features of a disk; `volatile` for one with a write cache and discard.
pub fn features(volatile: bool) -> u64 {
    let cache = if volatile { F_SIZE_MAX | F_FLUSH | F_DISCARD | F_WRITE_ZEROES } else { 0 };
    F_VERSION_1 | F_SEG_MAX | F_BLK_SIZE | cache
}

/// Configuration space of a disk of `sectors`; requests of a `volatile` one are at most a block, so that a read is
/// about one choice.
pub fn config(sectors: u64, volatile: bool) -> Vec<u8> {
    let mut config = vec![0; 60];
    config[0..8].copy_from_slice(&sectors.to_le_bytes());
    config[8..12].copy_from_slice(&4096u32.to_le_bytes());
    let segments = if volatile { 1 } else { SEGMENTS_MAX };
    config[12..16].copy_from_slice(&segments.to_le_bytes());
    config[20..24].copy_from_slice(&(SECTOR_BYTES as u32).to_le_bytes());
    for at in [36, 48] {
        config[at..at + 4].copy_from_slice(&ZERO_SECTORS_MAX.to_le_bytes());
        config[at + 4..at + 8].copy_from_slice(&1u32.to_le_bytes());
    }
    config[44..48].copy_from_slice(&8u32.to_le_bytes());
    config
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Read {
        sector: u64,
        bytes: usize,
    },
    Write {
        sector: u64,
        data: Vec<u8>,
    },
    /// Discard or write-zeroes.
    Zero {
        sector: u64,
        sectors: u64,
        discard: bool,
    },
    Flush,
    /// Identification string.
    Identify,
    Unsupported,
}

/// How a request ended, as the status byte says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Ok = 0,
    Error = 1,
    Unsupported = 2,
}

#[derive(Debug)]
pub struct Request {
    pub head: u16,
    pub kind: Kind,
    /// Where the device puts data: all writable buffers without the status byte.
    target: Vec<Buffer>,
    status: u64,
}

impl Request {
    /// Read a request out of the ring; data of a write is copied, so the guest cannot change it later.
    pub fn parse(chain: Chain, memory: &GuestMemory) -> io::Result<Request> {
        let short = || invalid("a block request without header or status".into());
        let (header, rest) = chain.buffers.split_first().ok_or_else(short)?;
        let (status, data) = rest.split_last().ok_or_else(short)?;
        if header.writable || header.length != HEADER_BYTES || !status.writable || status.length != 1 {
            return Err(short());
        }
        let mut fields = [0; HEADER_BYTES as usize];
        memory.read(header.address, &mut fields)?;
        let sector = u64::from_le_bytes(fields[8..16].try_into().expect("eight bytes"));
        let total: usize = data.iter().map(|b| b.length as usize).sum();
        if total > REQUEST_BYTES_MAX {
            return Err(invalid(format!("a block request of {total} bytes")));
        }
        let kind = match u32::from_le_bytes(fields[0..4].try_into().expect("four bytes")) {
            0 if total > 0 && total % SECTOR_BYTES == 0 => Kind::Read { sector, bytes: total },
            1 if total > 0 && total % SECTOR_BYTES == 0 => Kind::Write { sector, data: gather(data, memory)? },
            4 => Kind::Flush,
            8 => Kind::Identify,
            kind @ (11 | 13) if total == 16 => zero(&gather(data, memory)?, kind == 11),
            _ => Kind::Unsupported,
        };
        let target = data.iter().copied().filter(|b| b.writable).collect();
        Ok(Request { head: chain.head, kind, target, status: status.address })
    }

    /// Put `data` where the guest wants it, and the status. Returns the number of bytes written.
    pub fn answer(&self, memory: &GuestMemory, data: &[u8], status: Status) -> io::Result<u32> {
        let mut rest = data;
        for buffer in &self.target {
            let (now, later) = rest.split_at(rest.len().min(buffer.length as usize));
            memory.write(buffer.address, now)?;
            rest = later;
        }
        memory.write(self.status, &[status as u8])?;
        Ok((data.len() - rest.len() + 1) as u32)
    }
}

fn gather(buffers: &[Buffer], memory: &GuestMemory) -> io::Result<Vec<u8>> {
    let mut data = vec![0; buffers.iter().map(|b| b.length as usize).sum()];
    let mut at = 0;
    for buffer in buffers {
        let end = at + buffer.length as usize;
        memory.read(buffer.address, &mut data[at..end])?;
        at = end;
    }
    Ok(data)
}

/// The one segment of a discard or write-zeroes request: sector, number of sectors, flags.
fn zero(segment: &[u8], discard: bool) -> Kind {
    let sector = u64::from_le_bytes(segment[0..8].try_into().expect("eight bytes"));
    let sectors = u64::from(u32::from_le_bytes(segment[8..12].try_into().expect("four bytes")));
    Kind::Zero { sector, sectors, discard }
}
