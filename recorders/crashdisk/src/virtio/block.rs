//! Requests of a virtio block device (virtio 1.1, section 5.2).

use std::io;
use std::ops::Range;

use postcrash_wire::units::{BLOCK_BYTES, BLOCK_SECTORS, SECTOR_BYTES};

use crate::virtio::memory::{invalid, GuestMemory};
use crate::virtio::virtqueue::{Buffer, Chain};

/// A request begins with its type, a reserved word and the first sector (section 5.2.6).
const HEADER_BYTES: u32 = 16;
const SECTOR_AT: usize = 8;
/// The only segment of a discard or write-zeroes that the configuration allows (section 5.2.6).
const ZERO_SEGMENT_BYTES: usize = 16;
/// The most segments of a request, each of a block at most.
const SEGMENTS_MAX: u32 = 126;
/// Largest request of whole blocks. The kernel splits larger ones.
pub const SPLIT_BYTES: usize = SEGMENTS_MAX as usize * BLOCK_BYTES;
/// Largest request in bytes that the queue can describe.
const REQUEST_BYTES_MAX: usize = 64 << 20;

const F_SIZE_MAX: u64 = 1 << 1;
const F_SEG_MAX: u64 = 1 << 2;
const F_BLK_SIZE: u64 = 1 << 6;
const F_FLUSH: u64 = 1 << 9;
const F_DISCARD: u64 = 1 << 13;
const F_WRITE_ZEROES: u64 = 1 << 14;
const F_VERSION_1: u64 = 1 << 32;
const ZERO_SECTORS_MAX: u32 = 1 << 22;

/// virtio features of a disk. `volatile` means that it has a write cache and discard.
pub fn features(volatile: bool) -> u64 {
    let cache = if volatile { F_SIZE_MAX | F_FLUSH | F_DISCARD | F_WRITE_ZEROES } else { 0 };
    F_VERSION_1 | F_SEG_MAX | F_BLK_SIZE | cache
}

/// Types of requests (section 5.2.6).
mod request_type {
    pub const IN: u32 = 0;
    pub const OUT: u32 = 1;
    pub const FLUSH: u32 = 4;
    pub const GET_ID: u32 = 8;
    pub const DISCARD: u32 = 11;
    pub const WRITE_ZEROES: u32 = 13;
}

/// Offsets in `struct virtio_blk_config` (virtio 1.1, section 5.2.4), and its size.
mod field {
    pub const CAPACITY: usize = 0;
    pub const SIZE_MAX: usize = 8;
    pub const SEG_MAX: usize = 12;
    pub const BLK_SIZE: usize = 20;
    pub const MAX_DISCARD_SECTORS: usize = 36;
    pub const MAX_DISCARD_SEG: usize = 40;
    pub const DISCARD_SECTOR_ALIGNMENT: usize = 44;
    pub const MAX_WRITE_ZEROES_SECTORS: usize = 48;
    pub const MAX_WRITE_ZEROES_SEG: usize = 52;
    pub const END: usize = 60;
}

/// Configuration space of a disk of `sectors`.
pub fn config(sectors: u64) -> Vec<u8> {
    let mut config = vec![0; field::END];
    let words = [
        (field::SIZE_MAX, BLOCK_BYTES as u32),
        (field::SEG_MAX, SEGMENTS_MAX),
        (field::BLK_SIZE, SECTOR_BYTES as u32),
        (field::MAX_DISCARD_SECTORS, ZERO_SECTORS_MAX),
        (field::MAX_DISCARD_SEG, 1),
        (field::DISCARD_SECTOR_ALIGNMENT, BLOCK_SECTORS as u32),
        (field::MAX_WRITE_ZEROES_SECTORS, ZERO_SECTORS_MAX),
        (field::MAX_WRITE_ZEROES_SEG, 1),
    ];
    config[field::CAPACITY..][..size_of::<u64>()].copy_from_slice(&sectors.to_le_bytes());
    for (at, word) in words {
        config[at..][..size_of::<u32>()].copy_from_slice(&word.to_le_bytes());
    }
    config
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestKind {
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
    /// A flush of the disk with this number.
    Flush {
        disk: u32,
    },
    /// Identification string.
    Identify,
    Unsupported,
}

/// Which disk a ring belongs to, where its sectors begin among those of all disks, and how many they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    pub disk: u32,
    pub start: u64,
    pub sectors: u64,
}

impl Place {
    /// The number of a sector of the disk among those of all disks. One behind the disk's end is behind all disks.
    fn of(self, sector: u64) -> u64 {
        if sector < self.sectors {
            self.start + sector
        } else {
            u64::MAX
        }
    }
}

impl RequestKind {
    /// The sectors that it changes; None if it changes none.
    pub fn written(&self) -> Option<Range<u64>> {
        match self {
            RequestKind::Write { sector, data } => {
                Some(*sector..sector.saturating_add((data.len() / SECTOR_BYTES) as u64))
            }
            RequestKind::Zero { sector, sectors, .. } => Some(*sector..sector.saturating_add(*sectors)),
            _ => None,
        }
    }

    /// Whether all its sectors are among `sectors`.
    pub fn fits(&self, sectors: &Range<u64>) -> bool {
        let (start, count) = match self {
            RequestKind::Read { sector, bytes } => (*sector, (bytes / SECTOR_BYTES) as u64),
            RequestKind::Write { sector, data } => (*sector, (data.len() / SECTOR_BYTES) as u64),
            RequestKind::Zero { sector, sectors, .. } => (*sector, *sectors),
            RequestKind::Flush { .. } | RequestKind::Identify | RequestKind::Unsupported => return true,
        };
        start >= sectors.start && start.checked_add(count).is_some_and(|end| end <= sectors.end)
    }
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
    /// The number of its disk.
    pub disk: u32,
    pub kind: RequestKind,
    /// Where the device puts data: all writable buffers, without the status byte.
    target: Vec<Buffer>,
    status: u64,
}

impl Request {
    /// Read a request from the ring of a disk. The data of a write is copied, so the guest cannot change it later.
    pub fn parse(chain: Chain, memory: &GuestMemory, place: Place) -> io::Result<Request> {
        let short = || invalid("a block request without header or status".into());
        let (header, rest) = chain.buffers.split_first().ok_or_else(short)?;
        let (status, data) = rest.split_last().ok_or_else(short)?;
        if header.writable || header.length != HEADER_BYTES || !status.writable || status.length != 1 {
            return Err(short());
        }
        let mut fields = [0; HEADER_BYTES as usize];
        memory.read(header.address, &mut fields)?;
        let sector = place.of(u64::from_le_bytes(fields[SECTOR_AT..].try_into().expect("eight bytes")));
        let total: usize = data.iter().map(|b| b.length as usize).sum();
        if total > REQUEST_BYTES_MAX {
            return Err(invalid(format!("a block request of {total} bytes")));
        }
        let is_sectors = total > 0 && total % SECTOR_BYTES == 0;
        let all = |writable: bool| data.iter().all(|buffer| buffer.writable == writable);
        let kind = match u32::from_le_bytes(fields[0..4].try_into().expect("four bytes")) {
            request_type::IN if is_sectors && all(true) => RequestKind::Read { sector, bytes: total },
            request_type::OUT if is_sectors && all(false) => RequestKind::Write { sector, data: gather(data, memory)? },
            request_type::FLUSH => RequestKind::Flush { disk: place.disk },
            request_type::GET_ID => RequestKind::Identify,
            kind @ (request_type::DISCARD | request_type::WRITE_ZEROES)
                if total == ZERO_SEGMENT_BYTES && all(false) =>
            {
                zero(&gather(data, memory)?, kind == request_type::DISCARD, place)
            }
            _ => RequestKind::Unsupported,
        };
        let target = data.iter().copied().filter(|b| b.writable).collect();
        Ok(Request { head: chain.head, disk: place.disk, kind, target, status: status.address })
    }

    #[cfg(test)]
    pub fn of(kind: RequestKind) -> Request {
        Request { head: 0, disk: 0, kind, target: Vec::new(), status: 0 }
    }

    /// Put `data` and the status where the guest expects them. Returns the number of bytes written.
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

/// The one segment of a discard or write-zeroes request to a disk: sector, number of sectors, flags.
fn zero(segment: &[u8], discard: bool, place: Place) -> RequestKind {
    let sector = place.of(u64::from_le_bytes(segment[0..8].try_into().expect("eight bytes")));
    match u32::from_le_bytes(segment[8..12].try_into().expect("four bytes")) {
        sectors @ 1..=ZERO_SECTORS_MAX => RequestKind::Zero { sector, sectors: u64::from(sectors), discard },
        _ => RequestKind::Unsupported,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtio::memory::fake::{memory, BYTES, GUEST};

    const WHOLE: Place = Place { disk: 0, start: 0, sectors: u64::MAX };
    const HEADER: u64 = GUEST;
    const STATUS: u64 = GUEST + 0x100;
    const DATA: u64 = GUEST + 0x1000;

    fn buffer(address: u64, length: u32, writable: bool) -> Buffer {
        Buffer { address, length, writable }
    }

    fn header(memory: &GuestMemory, kind: u32, sector: u64) {
        let fields = [&kind.to_le_bytes()[..], &[0; 4], &sector.to_le_bytes()].concat();
        memory.write(HEADER, &fields).expect("inside");
    }

    fn parse(memory: &GuestMemory, data: &[Buffer]) -> io::Result<Request> {
        let all = [&[buffer(HEADER, 16, false)], data, &[buffer(STATUS, 1, true)]].concat();
        Request::parse(Chain { head: 0, buffers: all }, memory, WHOLE)
    }

    fn kind(memory: &GuestMemory, kind: u32, sector: u64, data: &[Buffer]) -> RequestKind {
        header(memory, kind, sector);
        parse(memory, data).expect("a request").kind
    }

    #[test]
    fn a_write_carries_its_data() {
        let memory = memory();
        memory.write(DATA, &[7; 1024]).expect("inside");
        let data = [buffer(DATA, 100, false), buffer(DATA + 100, 924, false)];
        assert_eq!(kind(&memory, 1, 9, &data), RequestKind::Write { sector: 9, data: vec![7; 1024] });
    }

    #[test]
    fn a_read_fills_its_buffers_and_the_status() {
        let memory = memory();
        header(&memory, 0, 3);
        let request = parse(&memory, &[buffer(DATA, 200, true), buffer(DATA + 4096, 312, true)]).expect("a read");
        assert_eq!(request.kind, RequestKind::Read { sector: 3, bytes: 512 });
        assert_eq!(request.answer(&memory, &[5; 512], Status::Error).expect("answered"), 513);
        let mut out = [0; 2];
        memory.read(DATA + 199, &mut out).expect("inside");
        assert_eq!(out, [5, 0]);
        memory.read(DATA + 4096 + 311, &mut out).expect("inside");
        assert_eq!(out, [5, 0]);
        memory.read(STATUS, &mut out[..1]).expect("inside");
        assert_eq!(out[0], 1);
    }

    #[test]
    fn an_answer_longer_than_the_buffers_is_cut() {
        let memory = memory();
        header(&memory, 8, 0);
        let request = parse(&memory, &[buffer(DATA, 4, true)]).expect("a request");
        assert_eq!(request.answer(&memory, b"postcrash", Status::Ok).expect("answered"), 5);
    }

    #[test]
    fn a_request_that_moves_no_whole_sectors_is_unsupported() {
        let memory = memory();
        for code in [0, 1] {
            assert_eq!(kind(&memory, code, 0, &[]), RequestKind::Unsupported);
            for length in [0, 1, 511, 513] {
                assert_eq!(kind(&memory, code, 0, &[buffer(DATA, length, code == 0)]), RequestKind::Unsupported);
            }
        }
    }

    #[test]
    fn the_sectors_of_a_later_disk_begin_where_the_one_before_it_ends() {
        let memory = memory();
        let parsed = |code: u32, sector: u64, data: &[Buffer]| {
            header(&memory, code, sector);
            let all = [&[buffer(HEADER, 16, false)], data, &[buffer(STATUS, 1, true)]].concat();
            Request::parse(Chain { head: 0, buffers: all }, &memory, Place { disk: 1, start: 64, sectors: 8 })
                .expect("a request")
        };
        let read = parsed(0, 3, &[buffer(DATA, 512, true)]);
        assert_eq!((read.disk, &read.kind), (1, &RequestKind::Read { sector: 67, bytes: 512 }));
        assert_eq!(parsed(4, 0, &[]).kind, RequestKind::Flush { disk: 1 });
        memory.write(DATA, &[&5u64.to_le_bytes()[..], &8u32.to_le_bytes(), &[0; 4]].concat()).expect("inside");
        let zero = parsed(13, 0, &[buffer(DATA, 16, false)]).kind;
        assert_eq!(zero, RequestKind::Zero { sector: 69, sectors: 8, discard: false });
        assert!(read.kind.fits(&(64..68)) && !read.kind.fits(&(68..99)));
        for sector in [8, 64, u64::MAX - 3] {
            let behind = parsed(0, sector, &[buffer(DATA, 512, true)]).kind;
            assert!(!behind.fits(&(0..1 << 40)), "{sector}");
        }
    }

    #[test]
    fn data_in_the_wrong_direction_is_unsupported() {
        let memory = memory();
        assert_eq!(kind(&memory, 0, 0, &[buffer(DATA, 512, false)]), RequestKind::Unsupported);
        assert_eq!(kind(&memory, 1, 0, &[buffer(DATA, 512, true)]), RequestKind::Unsupported);
        assert_eq!(kind(&memory, 11, 0, &[buffer(DATA, 16, true)]), RequestKind::Unsupported);
        assert_eq!(kind(&memory, 0, 0, &[buffer(DATA, 256, true), buffer(DATA, 256, false)]), RequestKind::Unsupported);
    }

    #[test]
    fn unknown_kinds_are_unsupported() {
        let memory = memory();
        for code in [2, 3, 5, 7, 10, 12, 14, u32::MAX] {
            assert_eq!(kind(&memory, code, u64::MAX, &[buffer(DATA, 512, true)]), RequestKind::Unsupported);
        }
        assert_eq!(kind(&memory, 4, u64::MAX, &[]), RequestKind::Flush { disk: 0 });
    }

    #[test]
    fn a_discard_is_one_segment_within_the_limit() {
        let memory = memory();
        let discard = |sectors: u32, length: u32| {
            let segment = [&u64::MAX.to_le_bytes()[..], &sectors.to_le_bytes(), &[0; 20]].concat();
            memory.write(DATA, &segment).expect("inside");
            kind(&memory, 11, 0, &[buffer(DATA, length, false)])
        };
        assert_eq!(discard(8, 16), RequestKind::Zero { sector: u64::MAX, sectors: 8, discard: true });
        for (sectors, length) in [(0, 16), (ZERO_SECTORS_MAX + 1, 16), (u32::MAX, 16), (8, 0), (8, 15), (8, 32)] {
            assert_eq!(discard(sectors, length), RequestKind::Unsupported, "{sectors} sectors in {length} bytes");
        }
    }

    #[test]
    fn a_request_without_header_or_status_is_an_error() {
        let memory = memory();
        let (head, status) = (buffer(HEADER, 16, false), buffer(STATUS, 1, true));
        for buffers in [
            vec![],
            vec![head],
            vec![status],
            vec![head, head],
            vec![status, status],
            vec![buffer(HEADER, 15, false), status],
            vec![buffer(HEADER, 16, true), status],
            vec![head, buffer(STATUS, 0, true)],
            vec![head, buffer(STATUS, 2, true)],
        ] {
            let error = Request::parse(Chain { head: 0, buffers }, &memory, WHOLE).expect_err("hostile").to_string();
            assert_eq!(error, "a block request without header or status");
        }
    }

    #[test]
    fn buffers_outside_the_memory_are_errors() {
        let memory = memory();
        for address in [0, GUEST + BYTES - 511, u64::MAX] {
            header(&memory, 1, 0);
            parse(&memory, &[buffer(address, 512, false)]).expect_err("data outside");
            header(&memory, 0, 0);
            let read = parse(&memory, &[buffer(address, 512, true)]).expect("looked at when it is answered");
            read.answer(&memory, &[0; 512], Status::Ok).expect_err("data outside");
            let outside = vec![buffer(address, 16, false), buffer(STATUS, 1, true)];
            if address != GUEST + BYTES - 511 {
                Request::parse(Chain { head: 0, buffers: outside }, &memory, WHOLE).expect_err("header outside");
            }
        }
        let status = vec![buffer(HEADER, 16, false), buffer(0, 1, true)];
        let request = Request::parse(Chain { head: 0, buffers: status }, &memory, WHOLE).expect("a request");
        request.answer(&memory, &[], Status::Ok).expect_err("status outside");
    }

    #[test]
    fn an_oversized_chain_is_an_error_and_takes_no_memory() {
        let memory = memory();
        for code in [0, 1, 11] {
            header(&memory, code, 0);
            let error = parse(&memory, &vec![buffer(DATA, u32::MAX, code == 0); 1022]).expect_err("hostile");
            assert!(error.to_string().contains("a block request of 4389456575490 bytes"), "{error}");
        }
    }
}
