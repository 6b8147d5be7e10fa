//! From a recording to every disk content that a power cut could leave.
//!
//! [`recording`] is the log of one run, [`device`] the rules of the drive, [`interval`] cuts the log into crash
//! intervals, [`component`] into independent choices of content, [`space`] reads the disk of one crash
//! state over its [`ground`], [`explore`] has the states chosen lazily, [`walk`] says in which order, and [`memo`] knows what was answered before.
//! [`contents`] is what a recording has left on the disk.
//! No sockets, no guests: those live in the crash disk.

pub mod choice;
pub mod component;
pub mod contents;
pub mod cursor;
pub mod device;
pub mod explore;
pub mod ground;
mod history;
pub mod interval;
pub mod mapped;
pub mod memo;
pub mod piece;
pub mod recording;
mod same_content;
pub mod space;
pub mod walk;
