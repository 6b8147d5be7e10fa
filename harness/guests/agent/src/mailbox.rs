//! The agent's side of the mailbox device.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use postcrash_wire::{frame, Command, Message};

use crate::sys::AlignedBuffer;

/// The most bytes that one request moves.
const CHUNK_BYTES: usize = 64 << 10;

pub struct Mailbox {
    device: File,
    buffer: AlignedBuffer,
}

impl Mailbox {
    pub fn open(path: &str) -> io::Result<Mailbox> {
        let device = OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(path);
        let device = device.map_err(|e| io::Error::new(e.kind(), format!("{path}: {e}")))?;
        Ok(Mailbox { device, buffer: AlignedBuffer::new(CHUNK_BYTES) })
    }

    /// Wait for the next command.
    pub fn next_command(&mut self) -> io::Result<Command> {
        let first = &mut self.buffer.bytes_mut()[..frame::ALIGNMENT_BYTES];
        self.device.read_exact_at(first, frame::START_BYTES)?;
        let length = frame::payload_length(first).map_err(io::Error::other)?;
        let total = (frame::HEADER_BYTES + length).next_multiple_of(frame::ALIGNMENT_BYTES);
        let mut bytes = first.to_vec();
        while bytes.len() < total {
            let chunk = &mut self.buffer.bytes_mut()[..CHUNK_BYTES.min(total - bytes.len())];
            self.device.read_exact_at(chunk, frame::START_BYTES + bytes.len() as u64)?;
            bytes.extend_from_slice(chunk);
        }
        let json = &bytes[frame::HEADER_BYTES..frame::HEADER_BYTES + length];
        serde_json::from_slice(json).map_err(|e| io::Error::other(format!("command: {e}")))
    }

    pub fn send(&mut self, message: &Message) -> io::Result<()> {
        let bytes = frame::encode(&message.encode());
        for (i, chunk) in bytes.chunks(CHUNK_BYTES).enumerate() {
            self.buffer.bytes_mut()[..chunk.len()].copy_from_slice(chunk);
            let offset = frame::START_BYTES + (i * CHUNK_BYTES) as u64;
            self.device.write_all_at(&self.buffer.bytes()[..chunk.len()], offset)?;
        }
        Ok(())
    }
}
