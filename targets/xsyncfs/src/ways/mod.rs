//! The ways out of the box, and the way in: its standard streams, its terminal, and its network.

mod input;
mod streams;
mod terminal;

pub use input::Input;
pub use streams::Streams;
pub use terminal::Terminal;
