//! External synchrony for unmodified programs: their calls return at once, and what they say waits for the disk.
//!
//! A command runs in a box: namespaces of its own, with one file system that it can change. Whatever leaves the box goes
//! through the supervisor, which holds it until everything that the box had changed by then is on disk.

mod buffer;
pub mod canary;
pub mod cli;
mod commit;
mod committer;
mod eager;
mod filter;
mod inside;
mod journal;
mod keeper;
mod link;
mod mounts;
mod release;
mod supervisor;
mod sys;
mod usage;
mod ways;
