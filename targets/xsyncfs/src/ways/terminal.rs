//! The box's terminal, and ours, which behaves as if the command used it.

use std::os::fd::{OwnedFd, RawFd};

use anyhow::{Context, Result};
use rustix::pty::{ioctl_tiocgptpeer, OpenptFlags};
use rustix::termios::{
    isatty, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize, OptionalActions, OutputModes, Termios,
};

use crate::release::ours;

/// Both terminals, until it is dropped: then ours is as it was.
pub struct Terminal {
    /// The supervisor's side of the box's terminal.
    pub outer: OwnedFd,
    /// The box's side. While it is open, what processes that have ended wrote can be read.
    _inner: OwnedFd,
    ours: RawFd,
    before: Option<Termios>,
}

impl Terminal {
    /// Connect the box's terminal `outer` with our terminal, which is our descriptor `ours`.
    pub fn connect(outer: OwnedFd, our: RawFd) -> Result<Terminal> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let inner = ioctl_tiocgptpeer(&outer, flags).context("terminal of the box")?;
        let mut modes = tcgetattr(ours(our)).context("our terminal")?;
        // What we type goes to the box as it is, if we type at a terminal at all.
        let before = isatty(ours(0)).then(|| modes.clone());
        if before.is_some() {
            tcsetattr(&inner, OptionalActions::Now, &modes).context("terminal of the box")?;
            modes.make_raw();
            tcsetattr(ours(our), OptionalActions::Now, &modes).context("our terminal")?;
        } else {
            // Our terminal puts a carriage return before each line end, so that the box's must not.
            modes.output_modes.remove(OutputModes::OPOST);
            tcsetattr(&inner, OptionalActions::Now, &modes).context("terminal of the box")?;
        }
        let terminal = Terminal { outer, _inner: inner, ours: our, before };
        terminal.take_size();
        Ok(terminal)
    }

    /// The box's terminal has the size of ours.
    pub fn take_size(&self) {
        if let Ok(size) = tcgetwinsize(ours(self.ours)) {
            let _ = tcsetwinsize(&self.outer, size);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(ours(self.ours), OptionalActions::Drain, before);
        }
    }
}
