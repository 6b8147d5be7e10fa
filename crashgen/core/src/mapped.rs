//! Files that are mapped, with a bound on how much of them counts as this process's memory.
//!
//! Pages of a mapped file that have been read stay resident until the kernel is short of memory, so that a process that
//! reads gigabytes seems to hold them. Here they are given back: they are still in the page cache, and reading them again
//! costs a fault.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;

use memmap2::{Mmap, UncheckedAdvice};

/// Bytes of all mapped files that may be resident.
const RESIDENT_MAX: u64 = 256 << 20;
/// Bytes of a page on the machines that guests run on.
const PAGE_BYTES: u64 = 4096;

/// A file that nobody changes while it is open.
pub struct Mapped(Mmap);

impl Mapped {
    pub fn open(path: &Path) -> io::Result<Mapped> {
        let file = File::open(path)?;
        // SAFETY: recordings and base images are immutable; one that is cut short while mapped ends the process, not
        // its soundness.
        unsafe { Mmap::map(&file) }.map(Mapped)
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Give back the pages of `files` where more than 256 MiB of mapped files are resident.
pub fn release_pages(files: &[&Mapped]) {
    if resident().is_none_or(|bytes| bytes <= RESIDENT_MAX) {
        return;
    }
    for file in files {
        // SAFETY: a mapping of a file that is only read: what is dropped is read from the file again. Where the advice
        // is refused, the pages stay, which is correct too.
        let _ = unsafe { file.0.unchecked_advise(UncheckedAdvice::DontNeed) };
    }
}

/// Resident bytes of mapped files, guest memory included. None where the kernel does not say.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let shared: u64 = text.split(' ').nth(2)?.parse().ok()?;
    Some(shared * PAGE_BYTES)
}
