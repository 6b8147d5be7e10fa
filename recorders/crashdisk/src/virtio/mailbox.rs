//! The mailbox device: a read of the agent waits for a command, and a write is a message.

use std::io;

use postcrash_wire::units::SECTOR_BYTES;
use postcrash_wire::{frame, Command, Message};

use crate::virtio::block::{Request, RequestKind, Status};
use crate::virtio::memory::invalid;
use crate::virtio::vhost::Connection;

/// Sector where frames start.
const START: u64 = frame::START_BYTES / SECTOR_BYTES as u64;

#[derive(Default)]
pub struct Mailbox {
    /// The command's frame. None once the agent has asked for the next one.
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

    /// Whether the agent waits for a command.
    pub fn waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Whether the agent has answered the command and waits for the next one.
    pub fn finished(&self) -> bool {
        self.waiting() && self.result.is_some()
    }

    pub fn take_result(&mut self) -> Message {
        self.result.take().expect("only called when finished")
    }

    /// Handle one request on the mailbox device; returns the messages that it completes.
    pub fn accept(&mut self, request: Request, connection: &mut Connection) -> io::Result<Option<Message>> {
        match &request.kind {
            RequestKind::Read { sector: START, .. } if self.command.is_none() || self.result.is_some() => {
                if self.waiting() {
                    return Err(invalid("the agent asks for a command while it waits for one".into()));
                }
                self.command = None;
                self.waiting = Some(request);
                return Ok(None);
            }
            RequestKind::Read { sector, bytes } => {
                let data = self.command_bytes(*sector, *bytes);
                complete(&request, connection, &data, Status::Ok)?;
            }
            RequestKind::Write { sector, data } => {
                if *sector == START {
                    self.assembling.clear();
                }
                if START + (self.assembling.len() / SECTOR_BYTES) as u64 != *sector {
                    return Err(invalid(format!("the agent wrote the mailbox at sector {sector}, out of order")));
                }
                self.assembling.extend_from_slice(data);
                complete(&request, connection, &[], Status::Ok)?;
                return self.assembled();
            }
            RequestKind::Flush { .. } => complete(&request, connection, &[], Status::Ok)?,
            RequestKind::Identify => complete(&request, connection, b"postcrash-mailbox", Status::Ok)?,
            _ => complete(&request, connection, &[], Status::Unsupported)?,
        }
        Ok(None)
    }

    /// Whether a request is a message that does not wait for the kernel to rest: an operation has returned, or a program's
    /// system call is noted. This message fits into one request.
    pub fn is_prompt(request: &Request) -> bool {
        let RequestKind::Write { sector: START, data } = &request.kind else { return false };
        let payload = frame::payload_length(data).ok().and_then(|length| data[frame::HEADER_BYTES..].get(..length));
        let message = payload.and_then(|payload| Message::decode(payload).ok());
        matches!(message, Some(Message::Returned { .. } | Message::Called { .. } | Message::CallEnded { .. }))
    }

    /// Answer the waiting read if there is a command.
    pub fn deliver(&mut self, connection: &mut Connection) -> io::Result<()> {
        if self.command.is_none() || self.result.is_some() {
            return Ok(());
        }
        if let Some(request) = self.waiting.take() {
            let RequestKind::Read { bytes, .. } = request.kind else { unreachable!("only reads wait") };
            let data = self.command_bytes(START, bytes);
            complete(&request, connection, &data, Status::Ok)?;
        }
        Ok(())
    }

    fn command_bytes(&self, sector: u64, bytes: usize) -> Vec<u8> {
        let start = sector.checked_sub(START).map_or(usize::MAX, |s| (s as usize).saturating_mul(SECTOR_BYTES));
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
        if matches!(message, Message::Done(_) | Message::Failed { .. }) {
            self.result = Some(message.clone());
        }
        Ok(Some(message))
    }
}

/// Answer a request and interrupt the guest.
fn complete(request: &Request, connection: &mut Connection, data: &[u8], status: Status) -> io::Result<()> {
    let written = request.answer(&connection.memory, data, status)?;
    connection.queue.complete(request.head, written);
    connection.queue.notify();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtio::block::Place;
    use crate::virtio::memory::fake::{memory, GUEST};
    use crate::virtio::virtqueue::{Buffer, Chain};
    use std::os::unix::net::UnixStream;

    const DATA: u64 = GUEST + 0x1000;

    struct Agent {
        mailbox: Mailbox,
        connection: Connection,
        _guest: UnixStream,
    }

    impl Agent {
        fn new() -> Agent {
            let (ours, guest) = UnixStream::pair().expect("sockets");
            let mut connection = Connection::new(ours, 0, Vec::new(), 0);
            connection.memory = memory();
            Agent { mailbox: Mailbox::default(), connection, _guest: guest }
        }

        /// Make a request of `length` bytes. Returns what the device does with it.
        fn ask(&mut self, kind: u32, sector: u64, length: u32) -> io::Result<Option<Message>> {
            let header = [&kind.to_le_bytes()[..], &[0; 4], &sector.to_le_bytes()].concat();
            self.connection.memory.write(GUEST, &header)?;
            let buffer = |address, length, writable| Buffer { address, length, writable };
            let data = buffer(DATA, length, kind == 0);
            let buffers = vec![buffer(GUEST, 16, false), data, buffer(GUEST + 0x100, 1, true)];
            let request = Request::parse(
                Chain { head: 0, buffers },
                &self.connection.memory,
                Place { disk: 0, start: 0, sectors: u64::MAX },
            )?;
            self.mailbox.accept(request, &mut self.connection)
        }

        fn write(&mut self, sector: u64, bytes: &[u8]) -> io::Result<Option<Message>> {
            self.connection.memory.write(DATA, bytes)?;
            self.ask(1, sector, bytes.len() as u32)
        }

        fn read(&mut self, sector: u64, length: u32) -> io::Result<Option<Message>> {
            self.connection.memory.write(DATA, &vec![0xee; length as usize])?;
            self.ask(0, sector, length)
        }

        fn data(&self, length: usize) -> Vec<u8> {
            let mut out = vec![0; length];
            self.connection.memory.read(DATA, &mut out).expect("inside");
            out
        }
    }

    #[test]
    fn a_command_goes_to_the_read_that_waits_and_the_result_comes_back() {
        let mut agent = Agent::new();
        agent.read(START, 4096).expect("waits");
        assert!(agent.mailbox.waiting() && !agent.mailbox.finished());
        agent.mailbox.send(&Command::Stop);
        agent.mailbox.deliver(&mut agent.connection).expect("delivered");
        assert!(!agent.mailbox.waiting());
        assert_eq!(agent.data(4096), frame::encode(b"\"stop\""));
        let done = Message::Done(vec![1; 5000]);
        let bytes = frame::encode(&done.encode());
        assert_eq!(agent.write(START, &bytes[..4096]).expect("the first half"), None);
        assert_eq!(agent.write(START + 8, &bytes[4096..]).expect("the rest"), Some(done.clone()));
        assert!(!agent.mailbox.finished());
        agent.read(START, 4096).expect("waits");
        assert!(agent.mailbox.finished());
        assert_eq!(agent.mailbox.take_result(), done);
    }

    #[test]
    fn returns_and_notes_are_told_from_all_else() {
        let is_prompt = |kind| Mailbox::is_prompt(&Request::of(kind));
        let write = |sector, message: &Message| RequestKind::Write { sector, data: frame::encode(&message.encode()) };
        let returned = Message::Returned { op: 3, errno: 0 };
        assert!(is_prompt(write(START, &returned)));
        assert!(is_prompt(write(START, &Message::CallEnded { thread: 1, result: 0 })));
        assert!(is_prompt(write(START, &Message::Called { thread: 1, program: "sh".into(), call: "sync()".into() })));
        assert!(!is_prompt(write(START + 8, &returned)));
        assert!(!is_prompt(RequestKind::Read { sector: START, bytes: 4096 }));
        for other in [Message::Started { op: 3 }, Message::Durable, Message::Done(Vec::new())] {
            assert!(!is_prompt(write(START, &other)), "{other:?}");
        }
        for broken in [vec![], vec![0xff; 512], frame::encode(&returned.encode())[..5].to_vec()] {
            assert!(!is_prompt(RequestKind::Write { sector: START, data: broken }));
        }
    }

    #[test]
    fn a_frame_out_of_order_is_an_error() {
        let bytes = frame::encode(&Message::Done(vec![1; 5000]).encode());
        for sector in [0, START - 1, START + 7, START + 9, START + 16, u64::MAX] {
            let mut agent = Agent::new();
            agent.write(START, &bytes[..4096]).expect("the first half");
            let error = agent.write(sector, &bytes[4096..]).expect_err("out of order").to_string();
            assert!(error.contains(&format!("at sector {sector}, out of order")), "{error}");
        }
        Agent::new().write(START + 8, &bytes[4096..]).expect_err("without its start");
    }

    #[test]
    fn a_frame_may_start_again() {
        let mut agent = Agent::new();
        agent.write(START, &frame::encode(&[4; 5000])[..4096]).expect("a first half");
        let message = agent.write(START, &frame::encode(&Message::Durable.encode())).expect("another frame");
        assert_eq!(message, Some(Message::Durable));
    }

    #[test]
    fn a_frame_that_is_no_message_is_an_error() {
        for payload in [&[][..], &[9], &[1, 0, 0]] {
            let error = Agent::new().write(START, &frame::encode(payload)).expect_err("hostile").to_string();
            assert!(error.contains("cannot be read"), "{error}");
        }
        let error = Agent::new().write(START, &[0xff; 512]).expect_err("hostile").to_string();
        assert!(error.contains("announces 4294967295 bytes"), "{error}");
    }

    #[test]
    fn a_second_read_for_a_command_is_an_error() {
        let mut agent = Agent::new();
        agent.read(START, 4096).expect("waits");
        let error = agent.read(START, 4096).expect_err("twice").to_string();
        assert!(error.contains("while it waits for one"), "{error}");
    }

    #[test]
    fn reads_anywhere_else_are_zeros_without_end() {
        let mut agent = Agent::new();
        agent.mailbox.send(&Command::Stop);
        for sector in [0, START - 1, START + 8, START + (1 << 55), u64::MAX] {
            assert_eq!(agent.read(sector, 512).expect("answered"), None);
            assert_eq!(agent.data(512), [0; 512], "sector {sector}");
        }
    }

    #[test]
    fn a_command_longer_than_its_read_is_continued() {
        let mut agent = Agent::new();
        let (fstype, options) = ("x".repeat(600), String::new());
        let mount = postcrash_wire::Mount { fstype, options, helper: Vec::new(), disks: Vec::new() };
        let run = postcrash_wire::Run {
            mount,
            setup: Vec::new(),
            ops: Vec::new(),
            blktrace: false,
            log_writes: false,
            log_set_up: false,
            held: false,
            supervisor: vec![],
        };
        let command = Command::Run(run);
        agent.mailbox.send(&command);
        let wanted = frame::encode(&serde_json::to_vec(&command).expect("plain data"));
        agent.read(START, 512).expect("answered");
        assert_eq!(agent.data(512), wanted[..512]);
        agent.read(START + 1, 8192).expect("answered");
        assert_eq!(agent.data(8192)[..wanted.len() - 512], wanted[512..]);
        assert_eq!(agent.data(8192)[wanted.len() - 512..], vec![0; 8192 + 512 - wanted.len()]);
    }

    #[test]
    fn other_requests_do_nothing() {
        let mut agent = Agent::new();
        for kind in [4, 8, 11, 99] {
            assert_eq!(agent.ask(kind, START, 512).expect("answered"), None);
        }
        assert_eq!(agent.ask(1, START, 0).expect("no data: unsupported"), None);
        assert!(!agent.mailbox.waiting());
    }
}
