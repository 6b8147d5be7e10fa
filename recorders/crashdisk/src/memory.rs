//! The guest's memory, mapped here. Every access is checked: addresses come from the guest.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::vhost::invalid;

/// One stretch of guest memory.
pub struct Region {
    guest: u64,
    user: u64,
    size: usize,
    /// Start of the mapping, which begins `skip` bytes before the region.
    map: *mut u8,
    skip: usize,
}

impl Region {
    /// Map `size` bytes from `offset` of `fd`; `guest` and `user` are its physical address and the guest's own.
    pub fn map(fd: &OwnedFd, guest: u64, size: u64, user: u64, offset: u64) -> io::Result<Region> {
        let length = size.checked_add(offset).ok_or_else(|| invalid("memory region wraps around".into()))? as usize;
        // SAFETY: a fresh shared mapping of a file that the guest gave us; unmapped in drop.
        let map = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, fd.as_raw_fd(), 0)
        };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Region { guest, user, size: size as usize, map: map.cast(), skip: offset as usize })
    }

    fn host(&self, base: u64, address: u64, length: usize) -> Option<*mut u8> {
        let offset = usize::try_from(address.checked_sub(base)?).ok()?;
        (offset.checked_add(length)? <= self.size).then(|| {
            // SAFETY: within the mapping, just checked.
            unsafe { self.map.add(self.skip + offset) }
        })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: our own mapping; nobody keeps pointers past the connection.
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

    /// Pointer for an address in the guest's own (user) address space, as ring addresses are given.
    pub fn host_of_user(&self, address: u64) -> io::Result<*mut u8> {
        let found = self.regions.iter().find_map(|r| r.host(r.user, address, 0));
        found.ok_or_else(|| invalid(format!("ring address {address:#x} is outside the guest's memory")))
    }

    fn host(&self, address: u64, length: usize) -> io::Result<*mut u8> {
        let found = self.regions.iter().find_map(|r| r.host(r.guest, address, length));
        found.ok_or_else(|| invalid(format!("{length} bytes at {address:#x} are outside the guest's memory")))
    }

    /// Copy guest memory into `out`.
    pub fn read(&self, address: u64, out: &mut [u8]) -> io::Result<()> {
        let host = self.host(address, out.len())?;
        // SAFETY: the range is mapped; the guest may race, which only garbles the bytes.
        unsafe { std::ptr::copy_nonoverlapping(host, out.as_mut_ptr(), out.len()) };
        Ok(())
    }

    /// Copy `bytes` into guest memory.
    pub fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        let host = self.host(address, bytes.len())?;
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), host, bytes.len()) };
        Ok(())
    }
}
