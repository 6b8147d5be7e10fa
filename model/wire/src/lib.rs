//! What crosses the mailbox between the crash disk (host) and the agent (guest).
//!
//! The mailbox is a second block device: the agent's read of its start waits until the crash disk has a
//! command, the agent's writes are messages. [`frame`] is their layout on the device, [`command`] the
//! commands, [`message`] the answers, and [`pattern`] the bytes that each write of a workload carries. [`content`] is how
//! reports tell what a file holds. [`output`] is how what programs
//! say over the network is told. [`units`] holds what disks and files are counted in, for all crates.

pub mod command;
pub mod content;
pub mod frame;
pub mod message;
pub mod output;
pub mod pattern;
pub mod units;

pub use command::{AgedFiles, Command, Mount, Operation, Recover, Run, Spin, Word};
pub use message::Message;
