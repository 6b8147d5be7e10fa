//! The jobs of the crash disk: record a run, record a recovery, explore, execute.

mod budget;
pub mod explore;
mod kernel_log;
pub mod record;
pub mod recovery;
pub mod source;
pub mod trust;
