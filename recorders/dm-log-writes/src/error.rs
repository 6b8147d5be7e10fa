use std::path::{Path, PathBuf};

use postcrash_core::io_error::in_words;
use postcrash_core::recording::RecordingError;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum LogError {
    #[error("{path}: {}", in_words(source))]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{path}: not a log of dm-log-writes: {reason} (byte {at})")]
    Malformed { path: PathBuf, at: u64, reason: String },
    /// The log may be sound, but something that it needs is impossible.
    #[error("{path}: {reason}")]
    Refused { path: PathBuf, reason: String },
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The caller's `go_on` said no.
    #[error("interrupted")]
    Interrupted,
}

impl LogError {
    /// Makes an error about `path`, for `map_err`.
    pub(crate) fn io(path: &Path) -> impl Fn(std::io::Error) -> LogError + '_ {
        move |source| LogError::Io { path: path.to_owned(), source }
    }
}
