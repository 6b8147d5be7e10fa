//! Mapped files, with a limit on how much of them counts as this process's memory.
//!
//! Pages of a mapped file stay resident once they are read, until the kernel is short of memory. So a process that
//! reads gigabytes seems to hold them. This module gives the pages back. They remain in the page cache, and reading
//! them again costs a fault.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;

use memmap2::{Mmap, UncheckedAdvice};
use postcrash_wire::units::PAGE_BYTES;

/// How many bytes of all mapped files may be resident.
const RESIDENT_MAX: u64 = 256 << 20;

/// A file that nobody changes while it is open.
pub struct MappedFile(Mmap);

impl MappedFile {
    pub fn open(path: &Path) -> io::Result<MappedFile> {
        let file = File::open(path)?;
        // SAFETY: recordings and base images are immutable. If such a file is cut short while it is mapped, the process
        // ends, but it stays sound.
        unsafe { Mmap::map(&file) }.map(MappedFile)
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Give back the pages of `files` if more than 256 MiB of mapped files are resident.
pub fn release_pages(files: &[&MappedFile]) {
    if resident().is_none_or(|bytes| bytes <= RESIDENT_MAX) {
        return;
    }
    for file in files {
        // SAFETY: this file is mapped for reading only, so what is dropped is read from the file again. If the kernel
        // refuses the advice, the pages stay, and this is correct too.
        let _ = unsafe { file.0.unchecked_advise(UncheckedAdvice::DontNeed) };
    }
}

/// Resident bytes of mapped files, guest memory included. None if the kernel does not tell.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let shared: u64 = text.split(' ').nth(2)?.parse().ok()?;
    Some(shared * PAGE_BYTES)
}
