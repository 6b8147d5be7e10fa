//! The guest's memory, mapped here. Every access is checked, because the addresses come from the guest.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::virtio::shrunk::{self, Guard, PAGE_BYTES};

/// One stretch of guest memory.
pub struct Region {
    guest: u64,
    user: u64,
    size: usize,
    /// Start of the mapping. It begins `skip` bytes before the region.
    map: *mut u8,
    skip: usize,
    guard: Option<Guard>,
}

impl Region {
    /// Map `size` bytes from `offset` of `fd`. `guest` is the region's physical address and `user` its address in the
    /// guest's own space.
    pub fn map(fd: &OwnedFd, guest: u64, size: u64, user: u64, offset: u64) -> io::Result<Region> {
        let end = size.checked_add(offset);
        let end = end.ok_or_else(|| invalid(format!("a memory region of {size} bytes at {offset} wraps around")))?;
        // An access to a mapping past the end of its file raises a signal, not an error. See `shrunk` for later changes.
        let file_bytes = File::from(fd.try_clone()?).metadata()?.len();
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
        Ok(Region { guest, user, size: size as usize, map: map.cast(), skip: offset as usize, guard: Some(guard) })
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

#[derive(Default)]
pub struct GuestMemory {
    regions: Vec<Region>,
}

impl GuestMemory {
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
        let host = self.host(address, out.len())?;
        // SAFETY: the range is mapped. The guest may write at the same time, but this only garbles the bytes.
        unsafe { std::ptr::copy_nonoverlapping(host, out.as_mut_ptr(), out.len()) };
        shrunk::check()
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
