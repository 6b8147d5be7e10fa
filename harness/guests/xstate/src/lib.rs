//! A library that is preloaded into user-mode Linux, and replaces `ptrace`.
//!
//! User-mode Linux keeps the extended registers of a process in a buffer of fixed size, 2,696 bytes up to Linux 6.12.
//! It sets them with PTRACE_SETREGSET, and the host takes only the whole XSAVE area (`xstateregs_set` in
//! arch/x86/kernel/fpu/regset.c). If that area is larger than the buffer, as on a CPU with AMX, the call fails with
//! EFAULT and init is killed. So this library lays the given part over the area that the process has, and sets the
//! whole area. Registers that the part does not hold keep their values. All other calls are passed on unchanged.
//!
//! The code runs on the small stacks of user-mode Linux, so it allocates nothing and keeps the area in a static buffer.
//! One thread of user-mode Linux sets registers, and its signal handlers set none. A second call at the same time would
//! fail with EBUSY.

mod area;

use std::ffi::{c_int, c_long, c_uint, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::OnceLock;

use area::{Area, Ends, AREA_BYTES_MAX};

const NT_X86_XSTATE: usize = 0x202;

type Ptrace = unsafe extern "C" fn(c_uint, libc::pid_t, *mut c_void, *mut c_void) -> c_long;

/// The `ptrace` that this one stands in front of.
static NEXT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
/// Size of the host's XSAVE area, which is the same for all processes. 0: it is not known yet.
static AREA_BYTES: AtomicUsize = AtomicUsize::new(0);
/// Whether a call is using `BUFFER`.
static BUSY: AtomicBool = AtomicBool::new(false);
static mut BUFFER: Area = Area::new();
static ENDS: OnceLock<Ends> = OnceLock::new();

/// Runs when the library is loaded, on the stack of a starting program, and finds out what later calls need.
#[used]
#[link_section = ".init_array"]
static AT_START: extern "C" fn() = prepare;

extern "C" fn prepare() {
    let _ = ENDS.set(area::ends());
    // SAFETY: a name that ends in zero.
    NEXT.store(unsafe { libc::dlsym(libc::RTLD_NEXT, c"ptrace".as_ptr()) }, Ordering::Relaxed);
}

/// ptrace(2), but PTRACE_SETREGSET of NT_X86_XSTATE also takes only the first part of the area.
///
/// # Safety
///
/// As ptrace(2). In C, ptrace takes a variable number of arguments. They are passed in the same way as these four.
#[no_mangle]
pub unsafe extern "C" fn ptrace(request: c_uint, pid: libc::pid_t, address: *mut c_void, data: *mut c_void) -> c_long {
    let next = NEXT.load(Ordering::Relaxed);
    if next.is_null() {
        return fail(libc::ENOSYS); // somebody's constructor came before ours
    }
    // SAFETY: this is the function of that name in the C library or in a library between.
    let next: Ptrace = unsafe { mem::transmute::<*mut c_void, Ptrace>(next) };
    if request == libc::PTRACE_SETREGSET && address as usize == NT_X86_XSTATE && !data.is_null() {
        // SAFETY: PTRACE_SETREGSET takes an iovec.
        let part = unsafe { *data.cast::<libc::iovec>() };
        let known = AREA_BYTES.load(Ordering::Relaxed);
        if part.iov_len % 8 == 0 && (known == 0 || part.iov_len < known) {
            // SAFETY: the caller says that the part is there to be read.
            return unsafe { set_part(next, pid, part, data) };
        }
    }
    // SAFETY: the caller's own arguments.
    unsafe { next(request, pid, address, data) }
}

/// Set the registers in `part`. If `part` is the whole area, the call is passed on with the caller's `data`.
unsafe fn set_part(next: Ptrace, pid: libc::pid_t, part: libc::iovec, data: *mut c_void) -> c_long {
    if BUSY.swap(true, Ordering::Acquire) {
        return fail(libc::EBUSY);
    }
    // SAFETY: the call that has set BUSY has the buffer to itself.
    let area = unsafe { &mut *ptr::addr_of_mut!(BUFFER) };
    let mut whole = libc::iovec { iov_base: area.as_mut_ptr().cast(), iov_len: AREA_BYTES_MAX };
    let register_set = NT_X86_XSTATE as *mut c_void;
    // SAFETY: the buffer has the given length; the kernel says how many bytes it has filled.
    let mut result = unsafe { next(libc::PTRACE_GETREGSET, pid, register_set, (&raw mut whole).cast()) };
    if result == 0 {
        AREA_BYTES.store(whole.iov_len, Ordering::Relaxed);
        result = if part.iov_len < whole.iov_len {
            // SAFETY: the caller says that the part is there to be read.
            let part = unsafe { std::slice::from_raw_parts(part.iov_base.cast(), part.iov_len) };
            area.lay_over(part, ENDS.get_or_init(area::ends));
            // SAFETY: these are the buffer's first bytes, as many as the kernel gave.
            unsafe { next(libc::PTRACE_SETREGSET, pid, register_set, (&raw mut whole).cast()) }
        } else {
            // SAFETY: the caller's own arguments.
            unsafe { next(libc::PTRACE_SETREGSET, pid, register_set, data) }
        };
    }
    BUSY.store(false, Ordering::Release);
    result
}

fn fail(errno: c_int) -> c_long {
    // SAFETY: every thread has its errno.
    unsafe { *libc::__errno_location() = errno };
    -1
}
