//! The mailbox device: the agent's reads wait for a command, its writes are messages.

use std::io;

use postcrash_wire::{frame, Command, Message};

use crate::block::{Kind, Request, Status};
use crate::vhost::{invalid, Connection};

/// Sector where frames start.
const START: u64 = frame::START_BYTES / 512;

#[derive(Default)]
pub struct Mailbox {
    /// The command's frame, until the agent has asked for the next one.
    command: Option<Vec<u8>>,
    /// A read of the mailbox's start that waits for a command.
    waiting: Option<Request>,
    /// Bytes of a message that comes in several requests.
    assembling: Vec<u8>,
    result: Option<Message>,
}

impl Mailbox {
    pub fn send(&mut self, command: &Command) {
        let json = serde_json::to_vec(command).expect("commands are plain data");
        self.command = Some(frame::encode(&json));
        self.result = None;
    }

    /// The agent waits for a command.
    pub fn waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// The agent has answered the command and waits for the next one.
    pub fn finished(&self) -> bool {
        self.waiting() && self.result.is_some()
    }

    pub fn take_result(&mut self) -> Message {
        self.result.take().expect("only called when finished")
    }

    /// Handle one request on the mailbox device; returns the messages that it completes.
    pub fn accept(&mut self, request: Request, connection: &mut Connection) -> io::Result<Option<Message>> {
        match &request.kind {
            Kind::Read { sector: START, .. } if self.command.is_none() || self.result.is_some() => {
                self.command = None;
                self.waiting = Some(request);
                return Ok(None);
            }
            Kind::Read { sector, bytes } => {
                let data = self.command_bytes(*sector, *bytes);
                complete(&request, connection, &data, Status::Ok)?;
            }
            Kind::Write { sector, data } => {
                if *sector == START {
                    self.assembling.clear();
                }
                if START + (self.assembling.len() / 512) as u64 != *sector {
                    return Err(invalid(format!("the agent wrote the mailbox at sector {sector}, out of order")));
                }
                self.assembling.extend_from_slice(data);
                complete(&request, connection, &[], Status::Ok)?;
                return self.assembled();
            }
            Kind::Flush => complete(&request, connection, &[], Status::Ok)?,
            Kind::Identify => complete(&request, connection, b"postcrash-mailbox", Status::Ok)?,
            _ => complete(&request, connection, &[], Status::Unsupported)?,
        }
        Ok(None)
    }

    /// Answer the waiting read if there is a command.
    pub fn deliver(&mut self, connection: &mut Connection) -> io::Result<()> {
        if self.command.is_none() || self.result.is_some() {
            return Ok(());
        }
        if let Some(request) = self.waiting.take() {
            let Kind::Read { bytes, .. } = request.kind else { unreachable!("only reads wait") };
            let data = self.command_bytes(START, bytes);
            complete(&request, connection, &data, Status::Ok)?;
        }
        Ok(())
    }

    fn command_bytes(&self, sector: u64, bytes: usize) -> Vec<u8> {
        let start = sector.checked_sub(START).map_or(usize::MAX, |s| s as usize * 512);
        let command = self.command.as_deref().unwrap_or_default();
        let rest = command.get(start..).unwrap_or_default();
        let mut data = rest[..rest.len().min(bytes)].to_vec();
        data.resize(bytes, 0);
        data
    }

    fn assembled(&mut self) -> io::Result<Option<Message>> {
        let length = frame::payload_length(&self.assembling).map_err(|e| invalid(e.to_string()))?;
        let Some(payload) = self.assembling.get(frame::HEADER_BYTES..frame::HEADER_BYTES + length) else {
            return Ok(None);
        };
        let message = Message::decode(payload).map_err(|e| invalid(e.to_string()))?;
        self.assembling.clear();
        if matches!(message, Message::Done(_) | Message::Failed(_)) {
            self.result = Some(message.clone());
        }
        Ok(Some(message))
    }
}

fn complete(request: &Request, connection: &mut Connection, data: &[u8], status: Status) -> io::Result<()> {
    let written = request.answer(&connection.memory, data, status)?;
    connection.queue.complete(request.head, written);
    connection.queue.notify();
    Ok(())
}
