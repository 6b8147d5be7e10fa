//! What can go wrong with a guest.

use std::io;

use serde::Serialize;
use thiserror::Error;

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
    #[error("the guest agent failed: {0}")]
    Agent(String),
    #[error(transparent)]
    Recording(#[from] postcrash_core::recording::RecordingError),
    #[error("{0}")]
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
