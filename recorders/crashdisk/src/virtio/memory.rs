//! The guest's memory, mapped here. Every access is checked, because the addresses come from the guest.

use std::cell::OnceCell;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};

use postcrash_wire::units::PAGE_BYTES;

use crate::virtio::shrunk::{self, Guard};

/// One stretch of guest memory.
pub struct Region {
    guest: u64,
    user: u64,
    size: usize,
    /// Start of the mapping. It begins `skip` bytes before the region.
    map: *mut u8,
    skip: usize,
    /// The file that holds it, as /proc/PID/maps names it: its device, and its number there.
    file: String,
    /// What `place_in` found.
    place: OnceCell<u64>,
    guard: Option<Guard>,
}

impl Region {
    /// Map `size` bytes from `offset` of `fd`. `guest` is the region's physical address and `user` its address in the
    /// guest's own space.
    pub fn map(fd: &OwnedFd, guest: u64, size: u64, user: u64, offset: u64) -> io::Result<Region> {
        let end = size.checked_add(offset);
        let end = end.ok_or_else(|| invalid(format!("a memory region of {size} bytes at {offset} wraps around")))?;
        // An access to a mapping past the end of its file raises a signal, not an error. See `shrunk` for later changes.
        let metadata = File::from(fd.try_clone()?).metadata()?;
        let (file_bytes, device) = (metadata.len(), metadata.dev());
        let file = format!("{:02x}:{:02x} {}", libc::major(device), libc::minor(device), metadata.ino());
        if size == 0 || end > file_bytes.next_multiple_of(PAGE_BYTES) {
            let place = format!("{size} bytes at {offset} of a file of {file_bytes}");
            return Err(invalid(format!("a memory region of {place}")));
        }
        let length = end as usize;
        // SAFETY: this is a new shared mapping of a file that the guest gave us. It is unmapped in drop.
        let map = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, fd.as_raw_fd(), 0)
        };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let guard = Guard::new(map as usize, length).inspect_err(|_| {
            // SAFETY: the mapping was just made, and nobody has a pointer to it.
            unsafe { libc::munmap(map, length) };
        })?;
        let (map, skip) = (map.cast(), offset as usize);
        Ok(Region { guest, user, size: size as usize, map, skip, file, place: OnceCell::new(), guard: Some(guard) })
    }

    /// Where physical address 0 is among the addresses of the guest's process, which has mapped this region too. It has
    /// the same distance from all physical memory.
    fn place_in(&self, process: u32) -> io::Result<u64> {
        if let Some(&known) = self.place.get() {
            return Ok(known);
        }
        let maps = std::fs::read(format!("/proc/{process}/maps"))?;
        let maps = String::from_utf8_lossy(&maps);
        let start = maps.lines().find_map(|line| place_of(line, &self.file, self.skip as u64));
        let start = start.ok_or_else(|| io::Error::other("its process has not mapped its memory"))?;
        Ok(*self.place.get_or_init(|| start.wrapping_sub(self.guest)))
    }

    fn host(&self, base: u64, address: u64, length: usize) -> Option<*mut u8> {
        let offset = usize::try_from(address.checked_sub(base)?).ok()?;
        (offset.checked_add(length)? <= self.size).then(|| {
            // SAFETY: the address is within the mapping, as was just checked.
            unsafe { self.map.add(self.skip + offset) }
        })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.guard = None;
        // SAFETY: the mapping is ours, and nobody keeps pointers to it longer than the connection.
        unsafe { libc::munmap(self.map.cast(), self.skip + self.size) };
    }
}

/// Where the byte `at` of a file is, if `line` of /proc/PID/maps maps it. A line is
/// `start-end access offset device inode name`, with numbers in hexadecimal, except for the inode.
fn place_of(line: &str, file: &str, at: u64) -> Option<u64> {
    let mut fields = line.splitn(4, ' ');
    let (range, _, offset, mapped) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let (start, end) = range.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let (start, end, within) = (number(start)?, number(end)?, at.checked_sub(number(offset)?)?);
    let is_of_file = mapped.strip_prefix(file)?.chars().next().is_none_or(char::is_whitespace);
    (is_of_file && within < end.checked_sub(start)?).then(|| start + within)
}

/// All stretches of the memory of one guest, whose process is `process`.
#[derive(Default)]
pub struct GuestMemory {
    regions: Vec<Region>,
    process: Option<u32>,
}

impl GuestMemory {
    pub fn of(process: u32) -> GuestMemory {
        GuestMemory { regions: Vec::new(), process: Some(process) }
    }

    pub fn add(&mut self, region: Region) {
        self.regions.push(region);
    }

    /// Bytes of all regions together.
    pub fn bytes(&self) -> u64 {
        self.regions.iter().map(|region| region.size as u64).sum()
    }

    /// Pointer to a ring of `length` bytes, aligned to `align`, at an address in the guest's own (user) address space.
    pub fn host_of_user(&self, address: u64, length: usize, align: usize) -> io::Result<*mut u8> {
        let found = self.regions.iter().find_map(|r| r.host(r.user, address, length));
        let host = found.ok_or_else(|| invalid(format!("a ring at {address:#x} is not inside the guest's memory")))?;
        match host.align_offset(align) {
            0 => Ok(host),
            _ => Err(invalid(format!("a ring at {address:#x} is not aligned to {align} bytes"))),
        }
    }

    fn host(&self, address: u64, length: usize) -> io::Result<*mut u8> {
        let found = self.regions.iter().find_map(|r| r.host(r.guest, address, length));
        found.ok_or_else(|| invalid(format!("{length} bytes at {address:#x} are outside the guest's memory")))
    }

    /// Copy guest memory into `out`.
    pub fn read(&self, address: u64, out: &mut [u8]) -> io::Result<()> {
        let host = match self.host(address, out.len()) {
            Ok(host) => host,
            Err(outside) => return self.read_image(address, out).unwrap_or(Err(outside)),
        };
        // SAFETY: the range is mapped. The guest may write at the same time, but this only garbles the bytes.
        unsafe { std::ptr::copy_nonoverlapping(host, out.as_mut_ptr(), out.len()) };
        shrunk::check()
    }

    /// Copy a part of the image of user-mode Linux into `out`. None if the address is not below all regions.
    ///
    /// Physical memory begins with the kernel's image, which no region has: it is private to the process. Nothing that
    /// is written to a disk used to be there. But since Linux 7 a page of zeros is, and `blkdev_issue_zeroout` writes
    /// it.
    fn read_image(&self, address: u64, out: &mut [u8]) -> Option<io::Result<()>> {
        let (first, process) = (self.regions.iter().min_by_key(|region| region.guest)?, self.process?);
        let length = out.len();
        if address.checked_add(length as u64)? > first.guest {
            return None;
        }
        let mut read = || {
            let place = first.place_in(process)?.wrapping_add(address);
            File::open(format!("/proc/{process}/mem"))?.read_exact_at(out, place)
        };
        Some(read().map_err(|error| {
            invalid(format!("{length} bytes at {address:#x} of the kernel's image cannot be read: {error}"))
        }))
    }

    /// Copy `bytes` into guest memory.
    pub fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        let host = self.host(address, bytes.len())?;
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), host, bytes.len()) };
        shrunk::check()
    }
}

/// The error of a guest that breaks the protocol.
pub fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// Guest memory for tests.
#[cfg(test)]
pub mod fake {
    use super::{GuestMemory, Region};
    use std::os::fd::OwnedFd;

    /// Guest-physical and guest-virtual address of its start.
    pub const GUEST: u64 = 0x10_0000;
    pub const USER: u64 = 0x7000_0000_0000;
    pub const BYTES: u64 = 1 << 16;

    /// The end of a pipe to read from, and the end to write to. `std::io::pipe` needs Rust 1.87.
    pub fn pipe() -> (std::fs::File, std::os::fd::OwnedFd) {
        let mut ends = [0; 2];
        // SAFETY: pipe2 fills the array. Nobody else has the two new descriptors.
        unsafe {
            assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0, "a pipe");
            (std::os::fd::FromRawFd::from_raw_fd(ends[0]), std::os::fd::FromRawFd::from_raw_fd(ends[1]))
        }
    }

    pub fn file(bytes: u64) -> OwnedFd {
        let file = tempfile::tempfile().expect("a temporary file");
        file.set_len(bytes).expect("room");
        file.into()
    }

    pub fn memory() -> GuestMemory {
        let mut memory = GuestMemory::default();
        memory.add(Region::map(&file(BYTES), GUEST, BYTES, USER, 0).expect("mapped"));
        memory
    }
}

#[cfg(test)]
mod tests {
    use super::fake::{file, memory, BYTES, GUEST, USER};
    use super::*;

    #[test]
    fn what_is_written_is_read_up_to_the_last_byte() {
        let memory = memory();
        memory.write(GUEST + BYTES - 4, &[1, 2, 3, 4]).expect("inside");
        let mut out = [0; 2];
        memory.read(GUEST + BYTES - 2, &mut out).expect("inside");
        assert_eq!(out, [3, 4]);
        memory.read(GUEST + BYTES, &mut []).expect("nothing to read");
    }

    #[test]
    fn addresses_outside_the_memory_are_errors() {
        let memory = memory();
        for address in [0, GUEST - 1, GUEST + BYTES - 1, GUEST + BYTES, USER, u64::MAX, u64::MAX - 1] {
            let error = memory.read(address, &mut [0; 2]).expect_err("outside");
            assert!(error.to_string().contains(&format!("{address:#x}")), "{error}");
            memory.write(address, &[0; 2]).expect_err("outside");
        }
        assert!(GuestMemory::default().read(0, &mut [0]).is_err());
    }

    #[test]
    fn what_is_below_all_regions_is_read_from_the_process() {
        let image = [7u8, 8, 9];
        let fd = file(2 * BYTES);
        let mut region = Region::map(&fd, GUEST, BYTES, USER, BYTES).expect("mapped");
        // This process has mapped the region, as a guest's process does. Let the image be as far below it as it is here.
        let base = image.as_ptr() as u64;
        let start = region.place_in(std::process::id()).expect("mapped").wrapping_add(GUEST);
        let distance = start.wrapping_sub(base);
        let mut memory = GuestMemory::of(std::process::id());
        (region.guest, region.place) = (distance + 5, OnceCell::new());
        memory.add(region);
        let mut out = [0; 3];
        memory.read(5, &mut out).expect("in this process");
        assert_eq!(out, image);
        let across = memory.read(distance + 4, &mut [0; 2]).expect_err("half in a region");
        assert!(across.to_string().contains("outside the guest's memory"), "{across}");
        memory.write(5, &[1]).expect_err("the image is only read");
    }

    #[test]
    fn a_line_of_maps_says_where_a_byte_of_a_file_is() {
        let line = "74d26000-75400000 rw-s 14d26000 00:32 3                  /dev/shm/#3 (deleted)";
        assert_eq!(place_of(line, "00:32 3", 0x14d2_6000), Some(0x74d2_6000));
        assert_eq!(place_of(line, "00:32 3", 0x14d2_7005), Some(0x74d2_7005));
        assert_eq!(place_of(line, "00:32 3", 0x1540_0000), None, "behind its end");
        assert_eq!(place_of(line, "00:32 3", 0x14d2_5fff), None, "before its start");
        for other in ["00:32 33", "00:31 3", "00:32 4"] {
            assert_eq!(place_of(line, other, 0x14d2_6000), None, "{other}");
        }
        assert_eq!(place_of("60a3b000-60a87000 rw-p 00000000 00:00 0 ", "00:00 0", 5), Some(0x60a3_b005));
        for broken in ["", "x", "5-1 r 0 00:00 0", "0-1 r 0", "g-h r 0 00:00 0"] {
            assert_eq!(place_of(broken, "00:00 0", 0), None, "{broken:?}");
        }
    }

    #[test]
    fn an_image_that_is_not_there_is_an_error() {
        let mut memory = GuestMemory::of(std::process::id());
        memory.add(Region::map(&file(BYTES), 1 << 62, BYTES, USER, 0).expect("mapped"));
        let error = memory.read(0, &mut [0; 2]).expect_err("nothing is mapped there");
        assert!(error.to_string().contains("2 bytes at 0x0 of the kernel's image cannot be read"), "{error}");
    }

    #[test]
    fn a_buffer_must_lie_in_one_region() {
        let mut memory = memory();
        memory.add(Region::map(&file(BYTES), GUEST + BYTES, BYTES, USER + BYTES, 0).expect("mapped"));
        memory.write(GUEST + BYTES, &[5]).expect("inside the second");
        memory.write(GUEST + BYTES - 1, &[5; 2]).expect_err("across both");
    }

    #[test]
    fn a_region_may_start_inside_its_file() {
        let backing = file(3 * 4096);
        let mut whole = GuestMemory::default();
        whole.add(Region::map(&backing, 0, 3 * 4096, 0, 0).expect("mapped"));
        let mut part = GuestMemory::default();
        part.add(Region::map(&backing, 0, 4096, 0, 8192).expect("mapped"));
        whole.write(8192 + 7, &[9]).expect("inside");
        let mut out = [0];
        part.read(7, &mut out).expect("inside");
        assert_eq!(out, [9]);
        part.read(4096, &mut out).expect_err("outside");
    }

    #[test]
    fn a_region_that_its_file_does_not_back_is_an_error() {
        let backing = file(4096);
        for (size, offset) in [(8192, 0), (4096, 4096), (0, 0), (u64::MAX, 1), (1, u64::MAX), (1 << 62, 1 << 62)] {
            assert!(Region::map(&backing, 0, size, 0, offset).is_err(), "{size} bytes at {offset}");
        }
        Region::map(&file(100), 0, 4096, 0, 0).expect("the file's last page is there");
    }

    #[test]
    fn memory_that_the_guest_took_away_is_an_error_and_not_a_signal() {
        let backing = file(3 * PAGE_BYTES);
        let mut memory = GuestMemory::default();
        memory.add(Region::map(&backing, GUEST, 3 * PAGE_BYTES, USER, 0).expect("mapped"));
        memory.write(GUEST, &[7; 2 * PAGE_BYTES as usize]).expect("inside");
        File::from(backing).set_len(PAGE_BYTES).expect("shrunk");
        let mut out = [9; 2];
        let error = memory.read(GUEST + PAGE_BYTES - 1, &mut out).expect_err("half of it is gone");
        assert!(error.to_string().contains("shrunk"), "{error}");
        assert_eq!(out, [7, 0]);
        memory.read(GUEST, &mut out).expect("it is there");
        memory.write(GUEST + 2 * PAGE_BYTES, &[1]).expect_err("it is gone");
    }

    /// Read memory whose file has been emptied, as rings are read: nobody checks.
    fn read_what_is_gone() {
        let backing = file(PAGE_BYTES);
        let mut memory = GuestMemory::default();
        memory.add(Region::map(&backing, GUEST, PAGE_BYTES, USER, 0).expect("mapped"));
        let place = memory.host_of_user(USER, 8, 8).expect("inside").cast::<u64>();
        File::from(backing).set_len(0).expect("shrunk");
        // SAFETY: the place is mapped, and what is gone is answered with zeros.
        assert_eq!(unsafe { place.read_volatile() }, 0);
    }

    #[test]
    fn what_a_guest_took_away_is_told_once() {
        read_what_is_gone();
        shrunk::check().expect_err("it was found gone");
        shrunk::check().expect("it was told");
    }

    #[test]
    fn what_a_guest_took_away_is_not_laid_at_the_next_ones_door() {
        read_what_is_gone();
        shrunk::forget();
        memory().read(GUEST, &mut [0; 2]).expect("this memory is whole");
    }

    #[test]
    fn rings_must_be_whole_and_aligned() {
        let memory = memory();
        memory.host_of_user(USER + BYTES - 64, 64, 16).expect("inside");
        for (address, length, align) in [
            (USER + BYTES - 48, 64, 16),
            (USER - 16, 16, 16),
            (GUEST, 16, 16),
            (u64::MAX - 15, 16, 16),
            (USER, usize::MAX, 16),
        ] {
            let error = memory.host_of_user(address, length, align).expect_err("outside").to_string();
            assert!(error.contains(&format!("{address:#x} is not inside")), "{error}");
        }
        let error = memory.host_of_user(USER + 8, 16, 16).expect_err("not aligned").to_string();
        assert!(error.contains("not aligned to 16"), "{error}");
    }
}
