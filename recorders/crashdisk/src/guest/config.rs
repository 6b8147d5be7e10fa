//! How a guest is started.

use std::path::PathBuf;

use serde::Deserialize;

/// Names of the guest's disks, as sockets in its work folder. The last is there only for a guest with a log disk.
pub const SOCKETS: [&str; 3] = ["disk", "mailbox", "log-disk"];
/// A kernel that dies ends its process, be it by panic or by oops. Only the last words go to the console, and what it
/// is asked for by SysRq keys, of which Debian's kernels allow only some by default.
pub const KERNEL_ARGUMENTS: &str = "quiet loglevel=1 log_buf_len=128K panic=-1 oops=panic sysrq_always_enabled";

/// File in a guest's work folder that takes what its kernel prints.
pub const CONSOLE: &str = "console";

#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "name", rename_all = "lowercase", deny_unknown_fields)]
pub enum Engine {
    Uml(Uml),
    Qemu(Qemu),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uml {
    /// A library that makes it run on hosts whose CPU has more registers than it knows (harness/guests/xstate).
    pub preload: Option<PathBuf>,
    /// The kernel has RAID 6 built in, and so would measure at each start which code for it is the fastest.
    pub measures_raid6: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Qemu {
    pub program: PathBuf,
    /// Use KVM; else TCG, which runs everywhere.
    pub kvm: bool,
    /// The guest's clock jumps ahead while its CPU is idle, so that sleeping costs nothing. Only with TCG.
    #[serde(default)]
    pub virtual_time: bool,
    /// A file where blklogwrites logs what is written to a disk of QEMU's own, the guest's last, which keeps nothing.
    #[serde(default)]
    pub blklogwrites: Option<PathBuf>,
}

/// How a guest is started.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestConfig {
    pub engine: Engine,
    pub kernel: PathBuf,
    /// The guest's root with `init`, modules and fsck programs: a folder for UML, an initramfs for QEMU.
    pub root: PathBuf,
    /// Folder for sockets and console, this guest's own.
    pub work: PathBuf,
    pub memory_mib: u32,
    /// Capacity of the test disk. Base images may be smaller.
    pub disk_sectors: u64,
    /// CPU that the guest and its disk are pinned to.
    pub cpu: Option<usize>,
    /// A guest that is not ready for commands after this long has failed.
    pub boot_timeout_s: f64,
    /// A command that is not answered after this long counts as a hang.
    pub command_timeout_s: f64,
    /// File that the guest sees as /dev/ubda, under QEMU as /dev/vdc (bench baseline).
    #[serde(default)]
    pub plain_disk: Option<PathBuf>,
    /// File behind the guest's third disk, /dev/vdc, where dm-log-writes can log.
    #[serde(default)]
    pub log_disk: Option<PathBuf>,
}

impl GuestConfig {
    /// Paths of the sockets of the guest's disks, in the order of their names there.
    pub fn sockets(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let count = if self.log_disk.is_some() { SOCKETS.len() } else { SOCKETS.len() - 1 };
        SOCKETS[..count].iter().map(|name| self.work.join(name))
    }
}
