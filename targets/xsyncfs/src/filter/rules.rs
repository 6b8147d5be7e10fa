//! Which system calls of the box do not simply go to the kernel.

use std::os::fd::OwnedFd;

use anyhow::{Context, Result};

use super::program::{compile, Action, Rule, Test};
use crate::sys;

const NEW_USER: u32 = libc::CLONE_NEWUSER as u32;
const SHARED: u32 = libc::MAP_SHARED as u32;
const NO_DESCRIPTOR: u32 = u32::MAX;
const SYNC_FLAG: u32 = libc::MS_SYNC as u32;
/// O_SYNC has this bit, too.
const DATA_SYNC: u32 = libc::O_DSYNC as u32;
const CORE: u32 = libc::RLIMIT_CORE;

/// Calls that make something durable. The supervisor answers them, without a commit.
const SYNCS: [i64; 5] =
    [libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_sync_file_range, libc::SYS_syncfs, libc::SYS_sync];

/// Calls that nobody may use: keys are shared with the outside, and so is what bpf and perf_event_open make.
const REFUSED: [i64; 8] = [
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_open_by_handle_at,
    libc::SYS_setns,
    libc::SYS_syslog,
];

/// What sockets of the internet may speak. 0 stands for what their type means.
const PROTOCOLS: [i32; 5] = [0, libc::IPPROTO_ICMP, libc::IPPROTO_TCP, libc::IPPROTO_UDP, libc::IPPROTO_ICMPV6];

/// Calls that this kernel does not seem to have. A clone3 may ask for a user namespace where a filter cannot see it, and
/// io_uring makes sockets, such as AF_VSOCK, that a filter cannot see. Programs go on with clone and with plain calls. The
/// supervisor opens files for threads, and what Landlock forbids a thread it does not forbid the supervisor.
const UNKNOWN: [i64; 5] = [
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_restrict_self,
];
/// A thread that waits for an answer is not interrupted by signals, as the calls that are answered are not (Linux 5.19).
const WAIT_KILLABLE: libc::c_ulong = 1 << 5;

fn rules() -> Vec<Rule> {
    let rule = |call, tests: &[(u32, Test)], action| Rule { call, tests: tests.to_vec(), action };
    let mut rules = Vec::new();
    rules.extend(SYNCS.map(|call| rule(call, &[], Action::Ask)));
    rules.push(rule(libc::SYS_msync, &[(2, Test::HasAny(SYNC_FLAG))], Action::Ask));
    rules.push(rule(libc::SYS_mmap, &[(3, Test::HasAny(SHARED)), (4, Test::IsNot(NO_DESCRIPTOR))], Action::Ask));
    rules.push(rule(libc::SYS_open, &[(1, Test::HasAny(DATA_SYNC))], Action::Ask));
    rules.push(rule(libc::SYS_openat, &[(2, Test::HasAny(DATA_SYNC))], Action::Ask));
    let is_other =
        [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(|family| (0, Test::IsNot(family as u32)));
    rules.push(rule(libc::SYS_socket, &is_other, Action::Return(libc::EAFNOSUPPORT)));
    // Others may go around the TUN, and the kernel would load a module for them, and say so in its log.
    for family in [libc::AF_INET, libc::AF_INET6] {
        let is_other_protocol = PROTOCOLS.map(|protocol| (2, Test::IsNot(protocol as u32)));
        let tests = [&[(0, Test::Is(family as u32))], &is_other_protocol[..]].concat();
        rules.push(rule(libc::SYS_socket, &tests, Action::Return(libc::EPROTONOSUPPORT)));
    }
    let is_no_pair = [(0, Test::IsNot(libc::AF_UNIX as u32))];
    rules.push(rule(libc::SYS_socketpair, &is_no_pair, Action::Return(libc::EAFNOSUPPORT)));
    let is_other_netlink = [
        (0, Test::Is(libc::AF_NETLINK as u32)),
        (2, Test::IsNot(libc::NETLINK_ROUTE as u32)),
        (2, Test::IsNot(libc::NETLINK_SOCK_DIAG as u32)),
    ];
    rules.push(rule(libc::SYS_socket, &is_other_netlink, Action::Return(libc::EPROTONOSUPPORT)));
    rules.push(rule(libc::SYS_clone, &[(0, Test::HasAny(NEW_USER))], Action::Return(libc::EPERM)));
    rules.push(rule(libc::SYS_unshare, &[(0, Test::HasAny(NEW_USER))], Action::Return(libc::EPERM)));
    // A core file may be a pipe to a program outside, which only the limit that the box has switches off.
    rules.push(rule(libc::SYS_setrlimit, &[(0, Test::Is(CORE))], Action::Return(0)));
    for is_pointer in [Test::IsNot(0), Test::HighIsNot(0)] {
        rules.push(rule(libc::SYS_prlimit64, &[(1, Test::Is(CORE)), (2, is_pointer)], Action::Return(0)));
    }
    rules.extend(REFUSED.map(|call| rule(call, &[], Action::Return(libc::EPERM))));
    rules.extend(UNKNOWN.map(|call| rule(call, &[], Action::Return(libc::ENOSYS))));
    rules
}

/// Put the filter on this thread and all that it starts. Returns the descriptor at which calls ask what becomes of them.
pub fn install() -> Result<OwnedFd> {
    let mut program = compile(&rules());
    let handed = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    let with = |flags: libc::c_ulong| {
        // SAFETY: the program lives through the call.
        sys::owned(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &handed) })
    };
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    match with(flags | WAIT_KILLABLE) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => with(flags),
        other => other,
    }
    .context("seccomp")
}
