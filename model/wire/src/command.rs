//! Commands from the crash disk to the agent.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How the target is mounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// File system type as in mount(2).
    pub fstype: String,
    /// Comma-separated options as in mount(8); generic ones (`sync`, `noatime`, …) become flags.
    #[serde(default)]
    pub options: String,
    /// Program and arguments that mount a FUSE file system. Device, mount point and `-o` with the options are appended.
    #[serde(default)]
    pub helper: Vec<String>,
    /// Sectors of each test disk, if there are several. The first is /dev/vda, the others are /dev/vdc and so on.
    #[serde(default)]
    pub disks: Vec<u64>,
}

/// The words of the `.ops` language (model/operation.py). Every `match` on them names each, so that none is forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    Mkdir,
    Rmdir,
    Creat,
    Mknod,
    Open,
    Tmpfile,
    Close,
    Write,
    Append,
    Dwrite,
    Awrite,
    Mmapwrite,
    Truncate,
    Fallocate,
    Reflink,
    Dedupe,
    Link,
    Symlink,
    Unlink,
    Rename,
    Exchange,
    Setxattr,
    Removexattr,
    Fsync,
    Fdatasync,
    Msync,
    Sync,
    Syncfs,
    WriteOsync,
    WriteOdsync,
    DwriteOsync,
    AwriteOdsync,
    Writeback,
    Commit,
    Checkpoint,
    DropCaches,
    Sleep,
    /// Run a program; see `Operation::value`.
    Run,
    /// Run a program, and leave out flushes, whose numbers are in `Operation::name`.
    RunUnflushed,
    /// Run a program that traces its own children, as `Run`.
    Watch,
}

impl Word {
    /// Whether a program is run.
    pub fn is_program(self) -> bool {
        matches!(self, Word::Run | Word::RunUnflushed | Word::Watch)
    }

    /// Whether it stands for something that the kernel may do by itself at any time.
    pub fn is_environment(self) -> bool {
        matches!(self, Word::Writeback | Word::Commit | Word::Checkpoint | Word::DropCaches | Word::Sleep)
    }
}

/// One operation of a workload. Fields that the operation does not have are absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    pub op: Word,
    #[serde(default)]
    pub path: String,
    /// Second path of link, rename, exchange, reflink and dedupe. For symlink, it is the text of the target.
    #[serde(default)]
    pub to: String,
    /// Bytes.
    #[serde(default)]
    pub offset: Option<u64>,
    /// Bytes, in the file `to`.
    #[serde(default)]
    pub to_offset: Option<u64>,
    /// Bytes; the new size for truncate.
    #[serde(default)]
    pub length: Option<u64>,
    /// How long to sleep; how long a program may take.
    #[serde(default)]
    pub seconds: Option<u64>,
    /// fallocate's mode; the kind of file of mknod.
    #[serde(default)]
    pub mode: String,
    /// Name of the extended attribute; the numbers of the flushes that are left out, with commas between them.
    #[serde(default)]
    pub name: String,
    /// Value of the extended attribute; the shell command of a program.
    #[serde(default)]
    pub value: String,
    /// Number of the write, see [`crate::pattern`].
    #[serde(default)]
    pub tag: Option<u8>,
}

/// How long a program may take that does not say.
const PROGRAM_SECONDS: u64 = 60;

impl Operation {
    /// How long its program may take.
    pub fn program_seconds(&self) -> u64 {
        self.seconds.unwrap_or(PROGRAM_SECONDS)
    }
}

/// Mount, run the set-up, make it durable, run the operations, each marked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub mount: Mount,
    pub setup: Vec<Operation>,
    pub ops: Vec<Operation>,
    /// Have the kernel trace the test disk's requests. The result is the trace, in blktrace's format.
    #[serde(default)]
    pub blktrace: bool,
    /// Mount through dm-log-writes, which logs what it sees to the third disk. The log also gets the marks that the
    /// mailbox gets.
    #[serde(default)]
    pub log_writes: bool,
    /// The log has the set-up too. If false, it begins where the set-up has been made durable.
    #[serde(default)]
    pub log_set_up: bool,
    /// The disk completes writes late and in an order of its own.
    #[serde(default)]
    pub held: bool,
    /// Program and arguments of a supervisor (docs/xsync.md) under which the operations run, with the program that performs
    /// them, all as paths of the host. Empty for none.
    #[serde(default)]
    pub supervisor: Vec<String>,
}

/// Mount a crash state, look at what recovery made of it, report this, and unmount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recover {
    pub mount: Mount,
    /// Report the tree.
    pub walk: bool,
    /// Report where plain file data lies instead of reading it. This is only for file systems that do not check their
    /// data.
    #[serde(default)]
    pub map: bool,
    /// Report what files hold byte by byte (`bytes:` and hexadecimal digits), not which write it comes from.
    #[serde(default)]
    pub bytes: bool,
    /// Change, delete and write after recovery, once the tree is known.
    #[serde(default)]
    pub use_after: bool,
    /// Program and arguments to run on the device before it is mounted, as distributions do. Empty for none.
    #[serde(default)]
    pub repair: Vec<String>,
    /// Program and arguments to run on the unmounted device after recovery. Empty for none.
    #[serde(default)]
    pub fsck: Vec<String>,
    /// Wait, for seconds if necessary, until no limit of the kernel on messages can hide a line of this recovery.
    #[serde(default)]
    pub whole_log: bool,
    /// The files that fill an aged base image. They are looked at, and not listed.
    #[serde(default)]
    pub aged: Option<AgedFiles>,
    /// The number of a disk that is lost with the crash: a blank one is in its place.
    #[serde(default)]
    pub lost_disk: Option<u32>,
}

/// The files that fill an aged base image: `files` of them, which were numbered, without the first of each `removed_every`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgedFiles {
    pub files: u32,
    pub removed_every: u32,
    /// Of each file.
    pub bytes: u64,
}

impl AgedFiles {
    /// The names of the files that are left.
    pub fn names(&self) -> Vec<String> {
        (0..self.files).filter(|number| number % self.removed_every != 0).map(|number| number.to_string()).collect()
    }
}

/// Recover the same device many times without the crash disk (for the baseline of the benchmark).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spin {
    pub recover: Recover,
    pub device: String,
    pub count: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    Run(Run),
    Recover(Recover),
    Spin(Spin),
    /// Power off.
    Stop,
}

impl Command {
    /// Whether programs of the host run in the guest.
    pub fn runs_programs(&self) -> bool {
        let Command::Run(run) = self else { return false };
        !run.supervisor.is_empty() || run.setup.iter().chain(&run.ops).any(|operation| operation.op.is_program())
    }

    /// For how long its operations sleep, and its programs may take.
    pub fn sleeps(&self) -> Duration {
        let Command::Run(run) = self else { return Duration::ZERO };
        let seconds = run.setup.iter().chain(&run.ops).filter_map(|operation| match operation.op {
            word if word.is_program() => Some(operation.program_seconds()),
            _ => operation.seconds,
        });
        Duration::from_secs(seconds.fold(0, u64::saturating_add))
    }
}
