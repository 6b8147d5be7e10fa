//! A split virtqueue, the device's side (virtio 1.1, section 2.6).

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{fence, AtomicU16, Ordering};

use crate::vhost::invalid;

const SIZE_MAX: u32 = 1024;
const DESC_NEXT: u16 = 1;
const DESC_WRITE: u16 = 2;
const AVAIL_NO_INTERRUPT: u16 = 1;

/// One buffer of a request, in guest-physical addresses.
#[derive(Debug, Clone, Copy)]
pub struct Buffer {
    pub address: u64,
    pub length: u32,
    /// The device writes it.
    pub writable: bool,
}

/// A request as it stands in the ring.
#[derive(Debug)]
pub struct Chain {
    pub head: u16,
    pub buffers: Vec<Buffer>,
}

#[derive(Default)]
pub struct Virtqueue {
    size: u16,
    rings: Option<Rings>,
    next_avail: u16,
    next_used: u16,
    pub kick: Option<OwnedFd>,
    pub call: Option<OwnedFd>,
}

struct Rings {
    desc: *mut u8,
    used: *mut u8,
    avail: *mut u8,
}

impl Virtqueue {
    pub fn set_size(&mut self, size: u32) -> io::Result<()> {
        if !size.is_power_of_two() || size > SIZE_MAX {
            return Err(invalid(format!("a queue of {size} entries")));
        }
        self.size = size as u16;
        Ok(())
    }

    pub fn set_base(&mut self, base: u16) {
        self.next_avail = base;
        self.next_used = base;
    }

    pub fn set_rings(&mut self, desc: *mut u8, used: *mut u8, avail: *mut u8) {
        self.rings = Some(Rings { desc, used, avail });
    }

    /// Stop the queue; returns the index of the next request.
    pub fn stop(&mut self) -> u16 {
        self.rings = None;
        self.next_avail
    }

    /// Every request that the guest has made available, in order.
    pub fn take_available(&mut self) -> io::Result<Vec<Chain>> {
        let mut chains = Vec::new();
        let Some(rings) = &self.rings else { return Ok(chains) };
        let available = rings.avail_index();
        while self.next_avail != available {
            let head = rings.avail_entry(self.next_avail % self.size);
            chains.push(rings.chain(head, self.size)?);
            self.next_avail = self.next_avail.wrapping_add(1);
        }
        Ok(chains)
    }

    /// Give a request back, `written` bytes of it filled in.
    pub fn complete(&mut self, head: u16, written: u32) {
        let Some(rings) = &self.rings else { return };
        rings.put_used(self.next_used % self.size, head, written);
        self.next_used = self.next_used.wrapping_add(1);
        rings.publish_used(self.next_used);
    }

    /// Interrupt the guest if it wants to know about completions.
    pub fn notify(&self) {
        use std::os::fd::AsRawFd;
        let (Some(rings), Some(call)) = (&self.rings, &self.call) else { return };
        fence(Ordering::SeqCst);
        if rings.wants_interrupt() {
            // SAFETY: writing eight bytes to an eventfd that we own; a full counter already means "pending".
            unsafe { libc::write(call.as_raw_fd(), (&1u64 as *const u64).cast(), 8) };
        }
    }
}

impl Rings {
    fn atomic(&self, at: *mut u8) -> &AtomicU16 {
        // SAFETY: ring memory is mapped and two-byte aligned by the guest's ring layout.
        unsafe { AtomicU16::from_ptr(at.cast()) }
    }

    fn avail_index(&self) -> u16 {
        // SAFETY: the index is the second field of the available ring.
        self.atomic(unsafe { self.avail.add(2) }).load(Ordering::Acquire)
    }

    fn avail_entry(&self, slot: u16) -> u16 {
        // SAFETY: slot is below the queue size; the guest laid the ring out for that size.
        self.atomic(unsafe { self.avail.add(4 + 2 * usize::from(slot)) }).load(Ordering::Relaxed)
    }

    fn wants_interrupt(&self) -> bool {
        self.atomic(self.avail).load(Ordering::Relaxed) & AVAIL_NO_INTERRUPT == 0
    }

    fn put_used(&self, slot: u16, head: u16, written: u32) {
        // SAFETY: slot is below the queue size.
        unsafe {
            let element = self.used.add(4 + 8 * usize::from(slot)).cast::<u32>();
            element.write_volatile(u32::from(head));
            element.add(1).write_volatile(written);
        }
    }

    fn publish_used(&self, index: u16) {
        // SAFETY: the index is the second field of the used ring.
        self.atomic(unsafe { self.used.add(2) }).store(index, Ordering::Release);
    }

    fn chain(&self, head: u16, size: u16) -> io::Result<Chain> {
        let mut buffers = Vec::new();
        let mut index = head;
        loop {
            if index >= size || buffers.len() >= usize::from(size) {
                return Err(invalid("a descriptor chain leaves its ring or never ends".into()));
            }
            // SAFETY: index is below the queue size; a descriptor is 16 bytes.
            let (address, length, flags, next) = unsafe {
                let at = self.desc.add(16 * usize::from(index));
                let word = at.add(12).cast::<u16>();
                (
                    at.cast::<u64>().read_volatile(),
                    at.add(8).cast::<u32>().read_volatile(),
                    word.read_volatile(),
                    word.add(1).read_volatile(),
                )
            };
            buffers.push(Buffer { address, length, writable: flags & DESC_WRITE != 0 });
            if flags & DESC_NEXT == 0 {
                return Ok(Chain { head, buffers });
            }
            index = next;
        }
    }
}
