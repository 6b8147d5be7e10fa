//! The XSAVE area of a process, as ptrace shows it: the standard format (Intel SDM volume 1, 13.4).
//!
//! It has 512 bytes of x87 and SSE registers, a header of 64 bytes, and then the components, each where CPUID says. The
//! header begins with a bit for each component. If the bit is 0, the component is in its initial state, and its bytes
//! do not matter.

use std::arch::x86_64::__cpuid_count;

/// Far more than any CPU has: with AMX it is 11,008 bytes.
pub const AREA_BYTES_MAX: usize = 64 << 10;

const XSAVE_LEAF: u32 = 0xd;
const COMPONENTS: usize = 64;
const HEADER: usize = 512;
const COMPONENTS_AT: usize = 576;
/// x87 and SSE stand before the header.
const FIRST_COMPONENT: usize = 2;

/// Where each component ends; 0 for one that the CPU does not have.
pub type Ends = [usize; COMPONENTS];

#[repr(align(64))]
pub struct Area([u8; AREA_BYTES_MAX]);

impl Area {
    pub const fn new() -> Area {
        Area([0; AREA_BYTES_MAX])
    }

    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }

    /// Replace the first bytes. Components that are not whole in `part` stay in use, or unused, as they are.
    pub fn lay_over(&mut self, part: &[u8], ends: &Ends) {
        let before = self.in_use();
        let Some(start) = self.0.get_mut(..part.len()) else { return };
        start.copy_from_slice(part);
        if part.len() < HEADER + 8 {
            return;
        }
        let beyond = ends.iter().rev().fold(0, |bits, &end| bits << 1 | u64::from(end > part.len()));
        let now = self.in_use() & !beyond | before & beyond;
        if let Some(header) = self.0.get_mut(HEADER..HEADER + 8) {
            header.copy_from_slice(&now.to_le_bytes());
        }
    }

    fn in_use(&self) -> u64 {
        let mut bits = [0; 8];
        if let Some(header) = self.0.get(HEADER..HEADER + 8) {
            bits.copy_from_slice(header);
        }
        u64::from_le_bytes(bits)
    }
}

/// The ends on this machine's CPU. Asking takes long in a virtual machine, because each question leaves the machine.
pub fn ends() -> Ends {
    let mut ends = [0; COMPONENTS];
    for (component, end) in ends.iter_mut().enumerate().skip(FIRST_COMPONENT) {
        // SAFETY: Every processor that has XSAVE has this leaf. Newer Rust takes the call for safe, Rust 1.85 does not.
        #[allow(unused_unsafe)]
        let found = unsafe { __cpuid_count(XSAVE_LEAF, component as u32) };
        // Components of the supervisor have a size, but no offset.
        if found.ebx as usize >= COMPONENTS_AT {
            *end = (found.ebx + found.eax) as usize;
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ends on a CPU that has components 2, 9 and 18.
    fn some_ends() -> Ends {
        let mut ends = [0; COMPONENTS];
        (ends[2], ends[9], ends[18]) = (832, 840, 8192);
        ends
    }

    fn area(bits: u64) -> Box<Area> {
        let mut area = Box::new(Area::new());
        area.0.fill(1);
        area.0[HEADER..HEADER + 8].copy_from_slice(&bits.to_le_bytes());
        area
    }

    fn part(bytes: usize, bits: u64) -> Vec<u8> {
        let mut part = vec![2; bytes];
        part[HEADER..HEADER + 8].copy_from_slice(&bits.to_le_bytes());
        part
    }

    #[test]
    fn what_is_given_is_set_and_what_lies_beyond_stays() {
        let mut whole = area(0);
        whole.lay_over(&part(832, 7), &some_ends());
        assert!(whole.0[..HEADER].iter().chain(&whole.0[COMPONENTS_AT..832]).all(|&byte| byte == 2));
        assert!(whole.0[832..].iter().all(|&byte| byte == 1));
    }

    #[test]
    fn components_beyond_the_part_are_in_use_as_before() {
        let all = 7 | 1 << 9 | 1 << 18;
        for (bytes, before, given, now) in [
            (832, all, 0, 1 << 9 | 1 << 18),
            (832, 0, all, 7),
            (836, 1 << 9, 7, 7 | 1 << 9),
            (840, 1 << 9, 7, 7),
            (8192, all, 3, 3),
            (576, all, 3, all),
        ] {
            let mut whole = area(before);
            whole.lay_over(&part(bytes, given), &some_ends());
            assert_eq!(whole.in_use(), now, "{bytes} bytes, {before:x} and {given:x}");
        }
    }

    #[test]
    fn a_part_before_the_header_leaves_it_alone() {
        let mut whole = area(7);
        whole.lay_over(&[2; 512], &some_ends());
        assert_eq!((whole.in_use(), whole.0[511]), (7, 2));
    }

    #[test]
    fn this_cpu_has_wide_registers_right_behind_the_header() {
        if std::arch::is_x86_feature_detected!("avx") {
            assert_eq!(ends()[2], 832);
        }
        assert_eq!((ends()[0], ends()[1], ends()[62]), (0, 0, 0));
    }
}
