//! One crash state: mount (the kernel recovers), look, report, unmount.

use std::io;

use postcrash_wire::{Message, Recover};
use serde::Serialize;

use crate::fsck::{fsck, FsckResult};
use crate::kernel_log::KernelLog;
use crate::mailbox::Mailbox;
use crate::mount::{forget, mount, unmount};
use crate::sys::errno;
use crate::usage::{use_after_recovery, Usage};
use crate::walk::{walk, Entry};

#[derive(Default, Serialize)]
struct Observation {
    mount_errno: i32,
    /// How the helper ended that did not mount the disk, and what it said.
    #[serde(skip_serializing_if = "String::is_empty")]
    helper: String,
    /// Null if it was not asked for.
    tree: Option<Vec<Entry>>,
    /// Names in the root that are there as they were made, and not in the tree.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unlisted: Vec<String>,
    /// What is wrong with the files that fill an aged image.
    #[serde(skip_serializing_if = "String::is_empty")]
    aged: String,
    /// Contents are told byte by byte.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    bytes: bool,
    klog: Vec<String>,
    /// Whether it is certain that no line of `klog` is missing.
    klog_whole: bool,
    /// How the program ended that ran before the mount. Absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    repair: Option<FsckResult>,
    /// Null if it was not asked for, or if the mount failed.
    fsck: Option<FsckResult>,
    /// Null if it was not asked for, or if the mount failed.
    used: Option<Usage>,
}

/// Recover `device`. The report is sent before unmounting, unless fsck is to run afterwards. So blocks that the kernel
/// reads after the report have influenced nothing.
pub fn recover(mailbox: &mut Mailbox, log: &mut KernelLog, recover: &Recover, device: &str) -> io::Result<()> {
    log.begin(recover.whole_log)?;
    // The disk is mounted whatever the repair says. A judge decides whether a boot would have gone on.
    let repair = fsck(&recover.repair)?;
    let mounted = mount(device, &recover.mount);
    let mut is_mounted = mounted.is_ok();
    let is_walked = recover.walk && is_mounted;
    let found = is_walked.then(|| walk(recover)).transpose()?.unwrap_or_default();
    let mut observation = Observation {
        mount_errno: mounted.as_ref().err().map_or(0, errno),
        helper: mounted
            .as_ref()
            .err()
            .filter(|_| !recover.mount.helper.is_empty())
            .map_or(String::new(), io::Error::to_string),
        tree: recover.walk.then_some(found.entries),
        unlisted: found.unlisted,
        aged: found.damage,
        bytes: recover.bytes,
        repair,
        ..Observation::default()
    };
    if mounted.is_ok() && recover.use_after {
        let used = use_after_recovery(device, &recover.mount);
        is_mounted = used.is_mounted;
        observation.used = Some(used);
    }
    let check_after = is_mounted && !recover.fsck.is_empty();
    if check_after {
        observation.fsck = match unmount()? {
            None => fsck(&recover.fsck)?,
            Some(killed) => Some(FsckResult::not_run(&killed)),
        };
    }
    let state_log = log.take()?;
    (observation.klog, observation.klog_whole) = (state_log.lines, state_log.whole);
    mailbox.send(&Message::Done(serde_json::to_vec(&observation).map_err(io::Error::other)?))?;
    if is_mounted && !check_after {
        unmount()?;
    }
    forget(&recover.mount)
}
