//! What can go wrong with a guest.

use std::io;

use postcrash_core::io_error::in_words;
use serde::Serialize;
use thiserror::Error;

/// How the agent begins when it could not mount the target.
const MOUNT: &str = "mount: ";

#[derive(Debug, Error)]
pub enum GuestError {
    /// The guest is gone.
    #[error("{}", .0.what)]
    Lost(Casualty),
    /// No guest could be started. The end of the console is the evidence.
    #[error("{}", .0.what)]
    Boot(Casualty),
    /// The request cannot be carried out. The user can mend it.
    #[error("{0}")]
    Input(String),
    /// What the agent says, and the log of its kernel. If it could not mount the target, it says why, which is no failure
    /// of its own.
    #[error("{}{}", if .0.starts_with(MOUNT) { "" } else { "the guest agent failed: " }, .0.trim_start_matches(MOUNT))]
    Agent(String, String),
    #[error(transparent)]
    Recording(#[from] postcrash_core::recording::RecordingError),
    #[error("{}", in_words(.0))]
    Io(#[from] io::Error),
}

/// How a guest was lost.
#[derive(Debug, Clone, Serialize)]
pub struct Casualty {
    pub what: String,
    /// The end of its console.
    pub console: String,
    /// What its kernel was doing, or why this is not known.
    pub stacks: String,
}
