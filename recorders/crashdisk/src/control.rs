//! Requests of the harness on standard input, and answers on standard output: one JSON object a line.

use std::io::Write;
use std::path::PathBuf;

use postcrash_core::choice::{self, by_component, Choice};
use postcrash_core::interval::Instant;
use postcrash_core::space::{CrashState, Space};
use postcrash_wire::{Recover, Run, Spin};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::disk::{FailedOperation, Marks};
use crate::error::Casualty;
use crate::guest::config::GuestConfig;

#[derive(Debug, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum HarnessRequest {
    /// Start the guest. Answered by `booted`.
    Boot(GuestConfig),
    /// Run a workload on `base` and write the recording `out`. With the seed `held`, completions are held back. With
    /// `blktrace`, the kernel's own trace of the requests is written there. Answered by `lost-at-work` for each guest
    /// that is lost, then by `recorded`. If two guests were lost, an error comes instead of `recorded`, and `out` has
    /// what was recorded until then.
    Record {
        base: PathBuf,
        out: PathBuf,
        run: Run,
        metadata: String,
        #[serde(default)]
        held: Option<u64>,
        #[serde(default)]
        blktrace: Option<PathBuf>,
    },
    /// Recover the disk image `base` and write what the recovery wrote to the recording `out`. The answers are those of
    /// `record`.
    RecordRecovery { base: PathBuf, out: PathBuf, recover: Recover, marks: Marks, metadata: String },
    /// Explore the crash states of a recording. Answered by `interval` (one each), `lost-guest`, then `explored`.
    Explore(Explore),
    /// Recover one crash state. Answered by `executed`.
    Execute { recording: PathBuf, base: PathBuf, model: String, interval: u32, choices: Vec<Choice>, recover: Recover },
    /// Loop over a device of the guest without a crash disk. Answered by `spun`.
    Spin(Spin),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Explore {
    pub recording: PathBuf,
    pub base: PathBuf,
    /// Name of the device model.
    pub model: String,
    pub recover: Recover,
    /// At most this many recoveries, if given. Whatever remains is reported as left out.
    pub recoveries_max: Option<u64>,
    /// At most about this many seconds, if given.
    pub seconds_max: Option<f64>,
    /// If given, run only states that deviate in at most this many components from everything kept or from nothing
    /// kept.
    pub bound: Option<u32>,
    /// If given, run only this many random states, besides those within the bound.
    pub samples: Option<u64>,
    /// Share of executions that are run again, in another order and with everything that was not read set at random.
    pub recheck_share: f64,
    pub seed: u64,
    /// 1: crashes of the recorded run. 2: also crashes within the recovery of each of its crash states.
    pub depth: u32,
    /// Run every content instead of walking lazily.
    #[serde(default)]
    pub brute_force: bool,
    /// Do not run a state if its recovery would read what an earlier one has read.
    pub memo: bool,
    /// Only these crash intervals; all when absent.
    #[serde(default)]
    pub intervals: Option<Vec<u32>>,
}

/// One distinct observation of an interval and what it stands for.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// What the agent reported. Null if every guest was lost.
    pub observation: serde_json::Value,
    /// Crash states that lead to it, as a decimal number.
    pub states: String,
    /// Executions that led to it, whether run or remembered.
    pub executions: u64,
    /// The state with the fewest losses that leads to it.
    pub choices: Vec<Choice>,
    /// Pieces that this state lost.
    pub lost: Vec<u32>,
    /// Why there is no observation, with the console's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub casualty: Option<Casualty>,
}

/// What a guest can be lost over, other than a crash state that is explored.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// A workload.
    Run,
    /// The recovery of the base image, which shows that the guest can be trusted.
    Trust,
    /// The recovery of a crash state, which is being recorded.
    Recovery,
}

#[derive(Debug, Serialize)]
pub struct IntervalReport {
    pub index: u32,
    /// The crash came while this state was being recovered. Below, its components have numbers from 2^31 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<RecoveredState>,
    /// The instants that have these crash states. For a crash within recovery, they are those of the state that was
    /// being recovered.
    pub instants: Vec<Instant>,
    pub pieces: usize,
    pub components: usize,
    /// Crash states at each instant, and crash states that the recoveries cover, as decimal numbers.
    pub states: String,
    pub covered: String,
    /// Different disk contents, as a decimal number.
    pub contents: String,
    pub recoveries: u64,
    /// Recoveries that were not run, because an earlier one had read the same bytes.
    pub remembered: u64,
    pub rechecks: u64,
    pub outcomes: Vec<Outcome>,
    /// Every execution: its choices, and the number of its outcome. A state that agrees with the choices has this
    /// outcome.
    pub executions: Vec<(Vec<Choice>, usize)>,
    /// Why the interval is not covered completely.
    pub left_out: Option<String>,
    /// What is covered for certain if not everything is.
    pub reached: Option<ReachReport>,
}

/// See [`postcrash_core::choice::Reach`].
#[derive(Debug, Serialize)]
pub struct ReachReport {
    pub all_kept: Option<u32>,
    pub none_kept: Option<u32>,
    pub samples: u64,
    pub seed: u64,
}

impl ReachReport {
    pub fn of(reached: &choice::Reach, seed: u64) -> ReachReport {
        ReachReport { all_kept: reached.all_kept, none_kept: reached.none_kept, samples: reached.samples, seed }
    }
}

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum HarnessEvent {
    /// `unconfined`: why the guest's process has rights that it does not need.
    Booted {
        seconds: f64,
        unconfined: Option<String>,
    },
    /// `failed` is the first operation that returned an error.
    Recorded {
        requests: u32,
        failed: Option<FailedOperation>,
        /// What programs of the run said, one after the other; null where there was none.
        transcripts: Value,
        /// If an operation or a program failed, what the kernel and the helper said (`GuestOutput` of the agent).
        output: Value,
    },
    Interval(Box<IntervalReport>),
    /// A guest was lost. The state is run again in a new one.
    LostGuest {
        interval: u32,
        choices: Vec<Choice>,
        #[serde(flatten)]
        casualty: Casualty,
    },
    /// A guest was lost, but not over a crash state. This many operations had started and had returned. The work is
    /// tried once more in a new guest.
    LostAtWork {
        during: Work,
        started: u32,
        returned: u32,
        #[serde(flatten)]
        casualty: Casualty,
    },
    /// Recoveries so far, for progress.
    Progress {
        recoveries: u64,
    },
    /// Two runs of the same crash state were observed differently.
    Nondeterministic {
        interval: u32,
        choices: Vec<Choice>,
        first: serde_json::Value,
        second: serde_json::Value,
    },
    /// With the peak memory of the guest and of this process.
    Explored {
        recoveries: u64,
        seconds: f64,
        memory_kib: u64,
        disk_memory_kib: u64,
    },
    Executed {
        observation: serde_json::Value,
        choices: Vec<Choice>,
        casualty: Option<Casualty>,
    },
    Spun {
        result: serde_json::Value,
    },
    /// The request failed. `kind` is `input` if the user can mend it, `lost` if two guests were lost over it
    /// (`lost-at-work` has told of them), and `infrastructure` otherwise.
    Error {
        kind: &'static str,
        message: String,
        console: String,
    },
}

impl HarnessEvent {
    pub fn emit(&self) {
        let mut out = std::io::stdout().lock();
        let line = serde_json::to_string(self).expect("events are plain data");
        // If the harness is gone, this process ends through its parent-death signal.
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}

/// The crash states that a recovery stands for, and what it showed.
#[derive(Debug, Clone, Serialize)]
pub struct RecoveredState {
    pub interval: u32,
    #[serde(skip)]
    pub instants: Vec<Instant>,
    pub choices: Vec<Choice>,
    pub observation: Value,
}

impl RecoveredState {
    /// The disk under the recovery of a state in `space`.
    pub fn ground<'a>(&self, space: Space<'a>) -> CrashState<'a> {
        CrashState { space, chosen: by_component(&self.choices) }
    }
}
