//! For tests: preloaded into a program, it makes the host's XSAVE area as large as on a CPU with AMX.
//!
//! PTRACE_GETREGSET gives zeros behind the registers that the host has. PTRACE_SETREGSET takes only the whole area.

use std::ffi::{c_long, c_uint, c_void};

const NT_X86_XSTATE: usize = 0x202;
/// The size with AMX, whose tile data of 8 KiB end here.
const AREA_BYTES: usize = 11_008;

type Ptrace = unsafe extern "C" fn(c_uint, libc::pid_t, *mut c_void, *mut c_void) -> c_long;

/// # Safety
///
/// As ptrace(2).
#[no_mangle]
pub unsafe extern "C" fn ptrace(request: c_uint, pid: libc::pid_t, address: *mut c_void, data: *mut c_void) -> c_long {
    // SAFETY: the C library has a function of that name and type; an iovec is where ptrace(2) says.
    unsafe {
        let next: Ptrace = std::mem::transmute(libc::dlsym(libc::RTLD_NEXT, c"ptrace".as_ptr()));
        let is_ours = address as usize == NT_X86_XSTATE;
        let vector = data.cast::<libc::iovec>();
        if is_ours && request == libc::PTRACE_SETREGSET && (*vector).iov_len < AREA_BYTES {
            *libc::__errno_location() = libc::EFAULT;
            return -1;
        }
        let length = if is_ours && request == libc::PTRACE_GETREGSET { (*vector).iov_len.min(AREA_BYTES) } else { 0 };
        let result = next(request, pid, address, data);
        if result == 0 && length > 0 && (*vector).iov_len < length {
            let has = (*vector).iov_len;
            (*vector).iov_base.cast::<u8>().add(has).write_bytes(0, length - has);
            (*vector).iov_len = length;
        }
        result
    }
}
