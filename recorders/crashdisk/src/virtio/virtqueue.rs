//! A split virtqueue, the device's side (virtio 1.1, section 2.6).

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{fence, AtomicU16, Ordering};

use crate::virtio::memory::{invalid, GuestMemory};
use crate::virtio::shrunk;

const SIZE_MAX: u32 = 1024;
const DESC_NEXT: u16 = 1;
const DESC_WRITE: u16 = 2;
const DESC_INDIRECT: u16 = 4;
const AVAIL_NO_INTERRUPT: u16 = 1;

/// One buffer of a request, in guest-physical addresses.
#[derive(Debug, Clone, Copy)]
pub struct Buffer {
    pub address: u64,
    pub length: u32,
    /// The device writes into it.
    pub writable: bool,
}

/// A request as it stands in the ring.
#[derive(Debug)]
pub struct Chain {
    pub head: u16,
    pub buffers: Vec<Buffer>,
}

/// Where the rings are, as the guest gives them: in its own (user) addresses.
#[derive(Debug, Clone, Copy)]
pub struct RingAddresses {
    pub desc: u64,
    pub used: u64,
    pub avail: u64,
}

#[derive(Default)]
pub struct Virtqueue {
    size: u16,
    addresses: Option<RingAddresses>,
    /// Set only while every ring is mapped in full length for `size`, which is then not zero.
    rings: Option<Rings>,
    next_avail: u16,
    next_used: u16,
    /// Bytes of the buffers of each request that was taken and not given back, by its first descriptor.
    in_flight: BTreeMap<u16, u64>,
    /// Bytes of the guest's memory. Buffers in flight do not overlap, so together they are no larger.
    memory_bytes: u64,
    pub kick: Option<OwnedFd>,
    pub call: Option<OwnedFd>,
}

struct Rings {
    desc: *mut u8,
    used: *mut u8,
    avail: *mut u8,
}

impl Virtqueue {
    /// Set the queue's size. This also stops the queue, because the rings were mapped for the old size.
    pub fn set_size(&mut self, size: u32) -> io::Result<()> {
        if !size.is_power_of_two() || size > SIZE_MAX {
            return Err(invalid(format!("a queue of {size} entries")));
        }
        self.stop();
        self.size = size as u16;
        Ok(())
    }

    pub fn set_base(&mut self, base: u16) {
        self.next_avail = base;
        self.next_used = base;
    }

    /// Start the queue on the rings at `addresses` in `memory`. The memory must outlive the rings, or `remap` must
    /// follow.
    pub fn set_rings(&mut self, addresses: RingAddresses, memory: &GuestMemory) -> io::Result<()> {
        self.stop();
        if self.size == 0 {
            return Err(invalid("the rings of a queue without entries".into()));
        }
        let entries = usize::from(self.size);
        self.rings = Some(Rings {
            desc: memory.host_of_user(addresses.desc, 16 * entries, 16)?,
            used: memory.host_of_user(addresses.used, 4 + 8 * entries, 4)?,
            avail: memory.host_of_user(addresses.avail, 4 + 2 * entries, 2)?,
        });
        self.addresses = Some(addresses);
        self.memory_bytes = memory.bytes();
        Ok(())
    }

    /// The guest's memory is now `memory`. Find a running queue's rings in it.
    pub fn remap(&mut self, memory: &GuestMemory) -> io::Result<()> {
        match self.addresses {
            Some(addresses) => self.set_rings(addresses, memory),
            None => Ok(()),
        }
    }

    /// Stop the queue. Returns the index of the next request.
    pub fn stop(&mut self) -> u16 {
        (self.rings, self.addresses) = (None, None);
        self.in_flight.clear();
        self.next_avail
    }

    /// Every request that the guest has made available, in order.
    pub fn take_available(&mut self) -> io::Result<Vec<Chain>> {
        let mut chains = Vec::new();
        let Some(rings) = &self.rings else { return Ok(chains) };
        let available = rings.avail_index();
        let waiting = available.wrapping_sub(self.next_avail);
        if waiting > self.size {
            return Err(invalid(format!("{waiting} requests in a queue of {} entries", self.size)));
        }
        let mut descriptors = 0;
        while self.next_avail != available {
            let head = rings.avail_entry(self.next_avail % self.size);
            let chain = rings.chain(head, self.size)?;
            descriptors += chain.buffers.len();
            if descriptors > usize::from(self.size) {
                return Err(invalid(format!("requests share descriptors in a queue of {} entries", self.size)));
            }
            let bytes = chain.buffers.iter().map(|buffer| u64::from(buffer.length)).sum();
            if self.in_flight.insert(head, bytes).is_some() {
                return Err(invalid(format!(
                    "descriptor {head} begins a second request before the first was answered"
                )));
            }
            let total: u64 = self.in_flight.values().sum();
            if total > self.memory_bytes {
                return Err(invalid(format!("requests for {total} bytes with {} bytes of memory", self.memory_bytes)));
            }
            chains.push(chain);
            self.next_avail = self.next_avail.wrapping_add(1);
        }
        shrunk::check()?;
        Ok(chains)
    }

    /// Give a request back. `written` bytes of it are filled in.
    pub fn complete(&mut self, head: u16, written: u32) {
        self.in_flight.remove(&head);
        let Some(rings) = &self.rings else { return };
        rings.put_used(self.next_used % self.size, head, written);
        self.next_used = self.next_used.wrapping_add(1);
        rings.publish_used(self.next_used);
    }

    /// Interrupt the guest if it wants to be told of completions.
    pub fn notify(&self) {
        let (Some(rings), Some(call)) = (&self.rings, &self.call) else { return };
        fence(Ordering::SeqCst);
        if rings.wants_interrupt() {
            interrupt(call);
        }
    }

    /// Interrupt the guest once more if it has not read the last interrupt. Returns whether this was necessary.
    ///
    /// Only a pipe can tell what was read from it. User-mode Linux interrupts itself with a pipe.
    pub fn remind(&self) -> bool {
        let Some(call) = &self.call else { return false };
        let mut unread: libc::c_int = 0;
        // SAFETY: the call writes into a local.
        let known = unsafe { libc::ioctl(call.as_raw_fd(), libc::FIONREAD, &mut unread) } == 0;
        if known && unread > 0 {
            interrupt(call);
        }
        known && unread > 0
    }
}

fn interrupt(call: &OwnedFd) {
    // SAFETY: this writes eight bytes to an eventfd or a pipe that we own. A full counter already means "pending".
    unsafe { libc::write(call.as_raw_fd(), (&1u64 as *const u64).cast(), 8) };
}

impl Rings {
    fn atomic(&self, at: *mut u8) -> &AtomicU16 {
        // SAFETY: ring memory is mapped and aligned, as `set_rings` has checked.
        unsafe { AtomicU16::from_ptr(at.cast()) }
    }

    fn avail_index(&self) -> u16 {
        // SAFETY: the index is the second field of the available ring.
        self.atomic(unsafe { self.avail.add(2) }).load(Ordering::Acquire)
    }

    fn avail_entry(&self, slot: u16) -> u16 {
        // SAFETY: `slot` is below the queue size, and the ring is mapped for this size.
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
                return Err(invalid(format!("a descriptor chain from {head} leaves its ring or never ends")));
            }
            // SAFETY: `index` is below the queue size, and the ring is mapped for this size. A descriptor has 16 bytes.
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
            if flags & DESC_INDIRECT != 0 {
                return Err(invalid(format!("descriptor {index} is indirect, which was not offered")));
            }
            buffers.push(Buffer { address, length, writable: flags & DESC_WRITE != 0 });
            if flags & DESC_NEXT == 0 {
                return Ok(Chain { head, buffers });
            }
            index = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtio::memory::fake::{memory, pipe, GUEST, USER};

    const SIZE: u16 = 8;
    const DESC: u64 = 0x1000;
    const USED: u64 = 0x2000;
    const AVAIL: u64 = 0x3000;
    const RINGS: RingAddresses = RingAddresses { desc: USER + DESC, used: USER + USED, avail: USER + AVAIL };

    /// A queue, together with the guest's side of it.
    struct Guest {
        memory: GuestMemory,
        queue: Virtqueue,
        next: u16,
    }

    impl Guest {
        fn new() -> Guest {
            let mut guest = Guest { memory: memory(), queue: Virtqueue::default(), next: 0 };
            guest.queue.set_size(SIZE.into()).expect("a size");
            guest.queue.set_rings(RINGS, &guest.memory).expect("rings");
            guest
        }

        fn put(&self, at: u64, bytes: &[u8]) {
            self.memory.write(GUEST + at, bytes).expect("inside");
        }

        fn describe(&self, index: u16, address: u64, length: u32, flags: u16, next: u16) {
            let at = DESC + 16 * u64::from(index);
            self.put(at, &address.to_le_bytes());
            self.put(at + 8, &length.to_le_bytes());
            self.put(at + 12, &[flags.to_le_bytes(), next.to_le_bytes()].concat());
        }

        fn offer(&mut self, head: u16) {
            self.put(AVAIL + 4 + 2 * u64::from(self.next % SIZE), &head.to_le_bytes());
            self.next = self.next.wrapping_add(1);
            self.put(AVAIL + 2, &self.next.to_le_bytes());
        }

        fn used(&self) -> u16 {
            let mut index = [0; 2];
            self.memory.read(GUEST + USED + 2, &mut index).expect("inside");
            u16::from_le_bytes(index)
        }

        fn error(&mut self) -> String {
            self.queue.take_available().expect_err("hostile").to_string()
        }
    }

    #[test]
    fn a_guest_is_reminded_of_an_interrupt_that_it_has_not_read() {
        use std::io::Read;
        let mut guest = Guest::new();
        let (mut reader, writer) = pipe();
        assert!(!guest.queue.remind(), "nobody to interrupt");
        guest.queue.call = Some(writer);
        assert!(!guest.queue.remind(), "no interrupt yet");
        guest.queue.complete(0, 0);
        guest.queue.notify();
        assert!(guest.queue.remind());
        let mut two = [0; 16];
        reader.read_exact(&mut two).expect("the interrupt and the reminder");
        assert!(!guest.queue.remind(), "both were read");
    }

    #[test]
    fn requests_are_taken_in_order_and_given_back() {
        let mut guest = Guest::new();
        for round in 0..40 {
            guest.describe(3, 0x1234, 16, DESC_NEXT, 5);
            guest.describe(5, 0x5678, 1, DESC_WRITE, 0);
            guest.describe(1, 0x9, 7, 0, 0);
            guest.offer(3);
            guest.offer(1);
            let chains = guest.queue.take_available().expect("two requests");
            let heads: Vec<(u16, usize)> = chains.iter().map(|chain| (chain.head, chain.buffers.len())).collect();
            assert_eq!(heads, [(3, 2), (1, 1)]);
            assert!(!chains[0].buffers[0].writable && chains[0].buffers[1].writable);
            assert!(guest.queue.take_available().expect("none").is_empty());
            guest.queue.complete(3, 1);
            guest.queue.complete(1, 0);
            assert_eq!(guest.used(), 2 * (round + 1));
        }
    }

    #[test]
    fn indices_wrap_around() {
        let mut guest = Guest::new();
        guest.queue.set_base(u16::MAX);
        guest.next = u16::MAX;
        guest.offer(0);
        guest.offer(1);
        assert_eq!(guest.queue.take_available().expect("two").len(), 2);
        guest.queue.complete(0, 0);
        guest.queue.complete(1, 0);
        assert_eq!(guest.used(), 1);
        assert_eq!(guest.queue.stop(), 1);
    }

    #[test]
    fn a_size_that_cannot_be_is_an_error() {
        for size in [0, 3, 2048, u32::MAX, 1 << 16, 1 << 31] {
            let error = Virtqueue::default().set_size(size).expect_err("hostile").to_string();
            assert!(error.contains(&format!("a queue of {size} entries")), "{error}");
        }
    }

    #[test]
    fn a_queue_without_size_has_no_rings() {
        let mut queue = Virtqueue::default();
        queue.set_rings(RINGS, &memory()).expect_err("no size");
        assert!(queue.take_available().expect("not running").is_empty());
        queue.complete(0, 0);
        queue.notify();
    }

    #[test]
    fn rings_outside_the_memory_are_an_error_and_stop_the_queue() {
        let mut guest = Guest::new();
        guest.describe(0, 0, 0, 0, 0);
        guest.offer(0);
        let end = USER + crate::virtio::memory::fake::BYTES;
        for addresses in [
            RingAddresses { desc: end - 16, ..RINGS },
            RingAddresses { used: end - 16, ..RINGS },
            RingAddresses { avail: end - 16, ..RINGS },
            RingAddresses { desc: 0, ..RINGS },
            RingAddresses { avail: RINGS.avail + 1, ..RINGS },
        ] {
            guest.queue.set_rings(addresses, &guest.memory).expect_err("outside or not aligned");
            assert!(guest.queue.take_available().expect("stopped").is_empty());
        }
        guest.queue.set_rings(RINGS, &guest.memory).expect("rings");
        assert_eq!(guest.queue.take_available().expect("one").len(), 1);
    }

    #[test]
    fn a_larger_size_needs_new_rings() {
        let mut guest = Guest::new();
        guest.queue.set_size(1024).expect("a size");
        guest.offer(0);
        assert!(guest.queue.take_available().expect("stopped").is_empty());
    }

    #[test]
    fn new_memory_moves_the_rings() {
        let mut guest = Guest::new();
        let other = memory();
        guest.queue.remap(&other).expect("the same addresses");
        guest.memory = other;
        guest.offer(0);
        assert_eq!(guest.queue.take_available().expect("one").len(), 1);
        guest.queue.remap(&GuestMemory::default()).expect_err("no rings there");
        guest.offer(0);
        assert!(guest.queue.take_available().expect("stopped").is_empty());
        Virtqueue::default().remap(&GuestMemory::default()).expect("nothing to move");
    }

    #[test]
    fn a_descriptor_chain_that_loops_is_an_error() {
        let mut guest = Guest::new();
        guest.describe(2, 0, 1, DESC_NEXT, 4);
        guest.describe(4, 0, 1, DESC_NEXT, 2);
        guest.offer(2);
        assert!(guest.error().contains("a descriptor chain from 2 leaves its ring or never ends"));
    }

    #[test]
    fn a_descriptor_outside_the_ring_is_an_error() {
        for head in [SIZE, u16::MAX] {
            let mut guest = Guest::new();
            guest.offer(head);
            assert!(guest.error().contains("leaves its ring"));
        }
        let mut guest = Guest::new();
        guest.describe(0, 0, 1, DESC_NEXT, SIZE);
        guest.offer(0);
        assert!(guest.error().contains("leaves its ring"));
    }

    #[test]
    fn an_indirect_descriptor_is_an_error() {
        let mut guest = Guest::new();
        guest.describe(0, 0, 16, DESC_INDIRECT, 0);
        guest.offer(0);
        assert!(guest.error().contains("indirect"));
    }

    #[test]
    fn more_requests_than_entries_are_an_error() {
        for ahead in [SIZE + 1, u16::MAX] {
            let mut guest = Guest::new();
            guest.next = ahead.wrapping_sub(1);
            guest.offer(0);
            assert!(guest.error().contains(&format!("{ahead} requests in a queue of 8 entries")));
        }
    }

    #[test]
    fn requests_that_share_descriptors_are_an_error() {
        let mut guest = Guest::new();
        for index in 0..SIZE - 1 {
            guest.describe(index, 0, 1, DESC_NEXT, index + 1);
        }
        guest.describe(SIZE - 1, 0, 1, 0, 0);
        guest.offer(0);
        assert_eq!(guest.queue.take_available().expect("all of them")[0].buffers.len(), 8);
        guest.queue.complete(0, 0);
        guest.offer(0);
        guest.offer(7);
        assert!(guest.error().contains("share descriptors"));
    }

    #[test]
    fn a_request_that_is_made_again_before_its_answer_is_an_error() {
        let mut guest = Guest::new();
        guest.offer(3);
        assert_eq!(guest.queue.take_available().expect("one").len(), 1);
        guest.offer(3);
        assert!(guest.error().contains("descriptor 3 begins a second request before the first was answered"));
    }

    #[test]
    fn requests_larger_than_the_memory_are_an_error() {
        let half = (crate::virtio::memory::fake::BYTES / 2) as u32;
        let offer = |guest: &mut Guest, head: u16, length: u32| {
            guest.describe(head, GUEST, length, 0, 0);
            guest.offer(head);
        };
        let mut guest = Guest::new();
        offer(&mut guest, 0, half);
        offer(&mut guest, 1, half);
        assert_eq!(guest.queue.take_available().expect("as large as the memory").len(), 2);
        guest.queue.complete(0, 0);
        offer(&mut guest, 2, half);
        assert_eq!(guest.queue.take_available().expect("one was answered").len(), 1);
        offer(&mut guest, 3, 1);
        assert!(guest.error().contains("requests for 65537 bytes with 65536 bytes of memory"));
    }
}
