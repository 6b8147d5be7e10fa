//! The box, seen from inside: the process that makes it, and what it consists of.

mod devices;
mod init;
mod network;
mod privileges;
mod root;

pub use init::{start, Inside, Plan};
pub use network::{make_tun, Ends};
pub use privileges::User;
