//! From a recording to every disk content that a power cut could leave.
//!
//! [`recording`] is the log of one run on one or several [`disks`]. [`device`] has the rules of the drive. [`interval`] is a stretch of the log
//! with the same crash states, and [`component`] is an independent choice of content. [`space`] reads the disk of one
//! crash state over its [`ground`]. [`explore`] chooses states lazily, [`walk`] says in which order, and [`memo`] knows
//! what earlier recoveries answered. [`contents`] is what a recording has left on the disk.
//! There are no sockets and no guests here: the crash disk has those.

mod barriers;
pub mod calls;
pub mod choice;
pub mod component;
pub mod contents;
pub mod cursor;
pub mod device;
pub mod disks;
mod drive;
pub mod explore;
pub mod ground;
mod history;
pub mod interval;
pub mod io_error;
pub mod mapped;
pub mod memo;
pub mod piece;
pub mod recording;
mod same_content;
pub mod space;
pub mod walk;
