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
}

/// One operation of a workload. Fields that the operation does not have are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// The word of the `.ops` language.
    pub op: String,
    #[serde(default)]
    pub path: String,
    /// Second path of link, rename and exchange; the target text of symlink.
    #[serde(default)]
    pub to: String,
    /// Bytes.
    #[serde(default)]
    pub offset: Option<u64>,
    /// Bytes; the new size for truncate.
    #[serde(default)]
    pub length: Option<u64>,
    /// How long to sleep.
    #[serde(default)]
    pub seconds: Option<u64>,
    /// fallocate's mode.
    #[serde(default)]
    pub mode: String,
    /// Name of the extended attribute.
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub value: String,
    /// Number of the write, see [`crate::pattern`].
    #[serde(default)]
    pub tag: Option<u8>,
}

/// Mount, run the set-up, make it durable, run the operations, each marked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub mount: Mount,
    pub setup: Vec<Operation>,
    pub ops: Vec<Operation>,
}

/// Mount a crash state, look at what recovery made of it, report, unmount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recover {
    pub mount: Mount,
    /// Report the tree.
    pub walk: bool,
    /// Say where plain file data lies instead of reading it; only for file systems that do not check their data.
    #[serde(default)]
    pub map: bool,
    /// Program and arguments run on the unmounted device after recovery; empty for none.
    #[serde(default)]
    pub fsck: Vec<String>,
}

/// Recover the same device many times without the crash disk (bench baseline).
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
    /// For how long its operations sleep.
    pub fn sleeps(&self) -> Duration {
        let Command::Run(run) = self else { return Duration::ZERO };
        let seconds = run.setup.iter().chain(&run.ops).filter_map(|operation| operation.seconds);
        Duration::from_secs(seconds.fold(0, u64::saturating_add))
    }
}
