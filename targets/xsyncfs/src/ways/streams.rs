//! The standard streams: which are a terminal, and pipes in the place of the others.

use std::os::fd::{OwnedFd, RawFd};

use anyhow::{Context, Result};
use rustix::fs::{fcntl_setfl, fstat, OFlags};
use rustix::pipe::{pipe_with, PipeFlags};
use rustix::termios::isatty;

use crate::release::ours;

/// The ends that the supervisor holds, and those that the box gets.
pub struct Streams {
    /// The pipe that the box reads its input from, if that is no terminal.
    pub input: Option<OwnedFd>,
    /// Pipes that the box writes to, with our descriptor for which the bytes are.
    pub outputs: Vec<(RawFd, OwnedFd)>,
    /// Our descriptor for what the box's terminal shows, if one of the streams is a terminal.
    pub terminal: Option<RawFd>,
    /// For the box: None is its terminal.
    pub inside: [Option<OwnedFd>; 3],
}

impl Streams {
    /// For each of our own standard streams that is a terminal the box gets a terminal, and a pipe for the others. What is
    /// one stream for us is one for the box, so that the order in it stays.
    pub fn like_ours() -> Result<Streams> {
        let is_terminal = [0, 1, 2].map(|descriptor| isatty(ours(descriptor)));
        let mut streams = Streams { input: None, outputs: Vec::new(), terminal: None, inside: [None, None, None] };
        streams.terminal = [1, 2, 0].into_iter().find(|&descriptor| is_terminal[descriptor as usize]);
        if !is_terminal[0] {
            let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).context("pipe")?;
            fcntl_setfl(&writer, OFlags::WRONLY | OFlags::NONBLOCK).context("pipe")?;
            (streams.inside[0], streams.input) = (Some(reader), Some(writer));
        }
        for descriptor in [1, 2] {
            if is_terminal[descriptor as usize] {
                continue;
            }
            let merged = streams.inside[1].as_ref().filter(|_| descriptor == 2 && are_one()).map(OwnedFd::try_clone);
            if let Some(merged) = merged {
                streams.inside[2] = Some(merged.context("dup")?);
                continue;
            }
            let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).context("pipe")?;
            fcntl_setfl(&reader, OFlags::RDONLY | OFlags::NONBLOCK).context("pipe")?;
            streams.outputs.push((descriptor, reader));
            streams.inside[descriptor as usize] = Some(writer);
        }
        Ok(streams)
    }
}

/// Whether our standard output and our standard error lead to the same place.
fn are_one() -> bool {
    let identity = |descriptor| fstat(ours(descriptor)).map(|stat| (stat.st_dev, stat.st_ino, stat.st_rdev));
    matches!((identity(1), identity(2)), (Ok(output), Ok(error)) if output == error)
}
