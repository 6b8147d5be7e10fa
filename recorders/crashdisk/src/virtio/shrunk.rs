//! What happens if a guest shrinks the file that is its memory: an access to what is gone finds zeros, and the guest is
//! ended as one that breaks the protocol.
//!
//! The access raises SIGBUS. The handler puts a page of zeros in the place, notes that it did, and the access goes on.

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

use postcrash_wire::units::PAGE_BYTES;

/// Mappings at a time. A table has eight regions, a guest up to sixteen test disks and two others, and a table is mapped
/// before the last one goes.
const MAPPINGS_MAX: usize = 320;
static MAPPINGS: [Range; MAPPINGS_MAX] =
    [const { Range { start: AtomicUsize::new(0), end: AtomicUsize::new(0) } }; MAPPINGS_MAX];
static IS_PREPARED: OnceLock<Result<(), i32>> = OnceLock::new();
thread_local! {
    /// The signal comes to the thread that made the access.
    static IS_SHRUNK: Cell<bool> = const { Cell::new(false) };
}

/// Addresses of a mapping; a free place has none. A start of 1 is a place that is being filled in.
struct Range {
    start: AtomicUsize,
    end: AtomicUsize,
}

/// While this lives, SIGBUS in the mapping is answered with zeros.
#[derive(Debug)]
pub struct Guard(usize);

impl Guard {
    /// Guard the mapping of `length` bytes at `start`.
    pub fn new(start: usize, length: usize) -> io::Result<Guard> {
        IS_PREPARED.get_or_init(prepare).map_err(io::Error::from_raw_os_error)?;
        for (place, range) in MAPPINGS.iter().enumerate() {
            if range.start.compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                range.start.store(start, Ordering::SeqCst);
                range.end.store(start + length, Ordering::SeqCst);
                return Ok(Guard(place));
            }
        }
        Err(io::Error::other(format!("more than {MAPPINGS_MAX} memory regions")))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let range = &MAPPINGS[self.0];
        range.end.store(0, Ordering::SeqCst);
        range.start.store(0, Ordering::SeqCst);
    }
}

/// Forget what an earlier guest did.
pub fn forget() {
    IS_SHRUNK.set(false);
}

/// An error if this thread found memory gone since its last call.
pub fn check() -> io::Result<()> {
    match IS_SHRUNK.replace(false) {
        true => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the file that is the guest's memory was shrunk, or has no room",
        )),
        false => Ok(()),
    }
}

fn prepare() -> Result<(), i32> {
    // SAFETY: the handler makes one system call, and touches atomics and a cell of its own thread.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = put_zeros as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        match libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL)),
        }
    }
}

/// The handler. An access anywhere else is repeated, and then ends this process as if there were no handler.
extern "C" fn put_zeros(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel gives a valid `info`. The page lies in a mapping of ours, whose owner unmaps it as a whole.
    unsafe {
        let address = (*info).si_addr() as usize;
        let is_guarded =
            |range: &Range| (range.start.load(Ordering::SeqCst)..range.end.load(Ordering::SeqCst)).contains(&address);
        if MAPPINGS.iter().any(is_guarded) {
            let page = (address & !(PAGE_BYTES as usize - 1)) as *mut libc::c_void;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            if libc::mmap(page, PAGE_BYTES as usize, access, kind, -1, 0) != libc::MAP_FAILED {
                IS_SHRUNK.set(true);
                return;
            }
        }
        libc::signal(libc::SIGBUS, libc::SIG_DFL);
        if (*info).si_code <= 0 {
            libc::raise(libc::SIGBUS); // somebody sent it
        }
    }
}
