//! How a guest is started.

use std::path::PathBuf;

use serde::Deserialize;

/// A kernel that dies ends its process, whether by panic or by oops. The console gets only the last messages and the
/// answers to SysRq keys. Debian's kernels allow only some of these keys by default.
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
    /// A library that the guest's program needs on hosts whose CPU has more registers than it knows
    /// (harness/guests/xstate).
    pub preload: Option<PathBuf>,
    /// The kernel has RAID 6 built in. It would measure at each start which code for RAID 6 is the fastest, so it gets
    /// an argument against this.
    pub measures_raid6: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Qemu {
    pub program: PathBuf,
    /// Use KVM. If false, use TCG, which runs everywhere.
    pub kvm: bool,
    /// The guest's clock jumps ahead while its CPU is idle, so that sleeping costs nothing. This works with TCG only.
    #[serde(default)]
    pub virtual_time: bool,
    /// A file where blklogwrites logs the writes to a disk of QEMU's own. This disk is the guest's last and keeps
    /// nothing.
    #[serde(default)]
    pub blklogwrites: Option<PathBuf>,
}

/// Everything that is needed to start a guest.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestConfig {
    pub engine: Engine,
    pub kernel: PathBuf,
    /// The guest's root with `init`, modules and fsck programs: a folder for UML, an initramfs for QEMU.
    pub root: PathBuf,
    /// Folder for sockets and console. No other guest uses it.
    pub work: PathBuf,
    pub memory_mib: u32,
    /// Capacity of the test disk. Base images may be smaller.
    pub disk_sectors: u64,
    /// Capacities of the test disks after the first, if there are several. A base image has them one after the other.
    #[serde(skip)]
    pub further_disks: Vec<u64>,
    /// CPU to which the guest and its disk are pinned.
    pub cpu: usize,
    /// A guest that is not ready for commands after this long has failed.
    pub boot_timeout_s: f64,
    /// A command that is not answered after this long counts as a hang.
    pub command_timeout_s: f64,
    /// File that the guest sees as /dev/ubda, or under QEMU as /dev/vdc (for the baseline of the benchmark).
    #[serde(default)]
    pub plain_disk: Option<PathBuf>,
    /// Whether the host's files can be read in the guest, where the engine can show them.
    #[serde(default)]
    pub sees_host: bool,
    /// File behind the guest's third disk, /dev/vdc, where dm-log-writes can log.
    #[serde(default)]
    pub log_disk: Option<PathBuf>,
}

/// How much more memory than the guest's its process needs: the kernel's own.
const KERNEL_BYTES: u64 = 256 << 20;
/// How much larger than the guest's memory its file may be. Old kernels begin the memory where their heap ends, which
/// the host puts anywhere within 1 GiB, and the file has a hole of this length.
const HOLE_BYTES: u64 = 2 << 30;
/// The most that QEMU's log of writes may hold.
const QEMU_LOG_BYTES: u64 = 16 << 30;

impl GuestConfig {
    /// The most that a file of the guest's process may hold: its memory, a disk of its own, its console, a log.
    pub fn file_bytes(&self) -> std::io::Result<u64> {
        let disk = self.plain_disk.as_ref().map_or(Ok(0), |path| path.metadata().map(|found| found.len()))?;
        let log = match &self.engine {
            Engine::Qemu(Qemu { blklogwrites: Some(_), .. }) => QEMU_LOG_BYTES,
            _ => 0,
        };
        Ok((u64::from(self.memory_mib) << 20).max(disk).max(log) + HOLE_BYTES)
    }

    /// The most memory that the files of a confined process may take.
    pub fn memory_bytes(&self) -> u64 {
        (u64::from(self.memory_mib) << 20) + KERNEL_BYTES
    }

    /// Paths of the sockets of the guest's disks, in the order of the disks in the guest.
    pub fn sockets(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let first = ["disk", "mailbox"].into_iter().map(str::to_owned);
        let further = (1..=self.further_disks.len()).map(|number| format!("disk-{number}"));
        let last = self.log_disk.iter().map(|_| "log-disk".to_owned());
        first.chain(further).chain(last).map(|name| self.work.join(name))
    }

    /// The same guest with test disks of these sizes. A single disk keeps its capacity, and its image may be smaller.
    pub fn with_disks(&self, sizes: &[u64]) -> GuestConfig {
        let mut config = self.clone();
        config.further_disks = Vec::new();
        if let [first, further @ ..] = sizes {
            if !further.is_empty() {
                (config.disk_sectors, config.further_disks) = (*first, further.to_vec());
            }
        }
        config
    }
}
