//! One guest: the process that runs its kernel, its devices, and the loop that serves them.
//!
//! One thread serves all rings. Before a message is handled, every disk request is handled that was in the ring when
//! the message was taken. So marks and requests stand in one order.

pub mod config;
mod confinement;
pub mod engine;
pub mod held_reads;
pub mod machine;
pub mod pending;
mod port;
pub mod process;
mod qemu;
mod sleep;
mod stacks;
pub mod termination;
mod tracer;
mod uml;

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::process::Child;
use std::time::{Duration, Instant};

use postcrash_wire::units::SECTOR_BYTES;
use postcrash_wire::{Command, Message};

use crate::disk::Disk;
use crate::error::{Casualty, GuestError};
use crate::guest::config::{GuestConfig, CONSOLE};
use crate::guest::held_reads::HeldReads;
use crate::guest::pending::PendingRequests;
use crate::guest::port::{Device, Port, MAILBOX};
use crate::guest::process::{peak_memory_kib, pidfd};
use crate::guest::sleep::Sleep;
use crate::virtio::block::{Request, RequestKind, Status};
use crate::virtio::log_disk::LogDisk;
use crate::virtio::mailbox::Mailbox;
use crate::virtio::poll::Poll;
use crate::virtio::shrunk;
use crate::virtio::vhost::is_cut_off;

/// How long to wait for a kernel that never comes to rest. It is long enough that a busy host does not cause this.
const REST_MAX: Duration = Duration::from_secs(2);
/// How often a guest that says nothing is checked.
const REMIND_EVERY: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, PartialEq, Eq)]
enum PollToken {
    Exit,
    Listen(usize),
    Socket(usize),
    Kick(usize),
}

pub struct Guest {
    config: GuestConfig,
    process: Child,
    /// Why the process could not be confined.
    pub unconfined: Option<String>,
    poll: Poll<PollToken>,
    ports: Vec<Port>,
    mailbox: Mailbox,
    log_disk: Option<LogDisk>,
    held: HeldReads,
    pending: PendingRequests,
    sleep: Sleep,
    gone: bool,
}

impl Guest {
    /// Start a guest and wait until its agent asks for a command.
    pub fn boot(config: &GuestConfig, disk: &mut dyn Disk) -> Result<Guest, GuestError> {
        Guest::start(config, disk).map_err(|error| match error {
            GuestError::Lost(casualty) => GuestError::Boot(casualty),
            other => other,
        })
    }

    fn start(config: &GuestConfig, disk: &mut dyn Disk) -> Result<Guest, GuestError> {
        std::fs::create_dir_all(&config.work)?;
        shrunk::forget();
        let log_disk = config.log_disk.as_deref().map(LogDisk::create).transpose()?;
        let ports = port::open(config)?;
        let (process, unconfined) = config.engine.launch(config)?;
        let mut poll = Poll::new()?;
        poll.add(pidfd(&process)?, PollToken::Exit)?;
        for (number, port) in ports.iter().enumerate() {
            poll.add(port.listener.as_raw_fd(), PollToken::Listen(number))?;
        }
        let mut guest = Guest {
            config: config.clone(),
            process,
            unconfined,
            poll,
            ports,
            mailbox: Mailbox::default(),
            log_disk,
            held: HeldReads::default(),
            pending: PendingRequests::default(),
            sleep: Sleep::watching(Vec::new()),
            gone: false,
        };
        guest.pump(disk, Duration::from_secs_f64(config.boot_timeout_s), "boot", |mailbox| mailbox.waiting())?;
        guest.sleep = config.engine.sleep(guest.process.id())?;
        Ok(guest)
    }

    /// Have the agent run `command` on `disk`. Returns its result once the agent asks for the next command.
    pub fn run(&mut self, command: &Command, disk: &mut dyn Disk) -> Result<Vec<u8>, GuestError> {
        self.mailbox.send(command);
        let limit = Duration::from_secs_f64(self.config.command_timeout_s) + command.sleeps();
        self.serve_mailbox(disk).map_err(|error| self.blame(error))?;
        self.pump(disk, limit, "answer", |mailbox| mailbox.finished())?;
        match self.mailbox.take_result() {
            Message::Done(payload) => Ok(payload),
            Message::Failed { reason, log } => Err(GuestError::Agent(reason, log)),
            _ => unreachable!("finished() means done or failed"),
        }
    }

    /// Whether the guest waits for reads at that sector, as far as has been seen.
    pub fn awaits(&self, sector: u64) -> bool {
        self.held.awaits(sector)
    }

    /// Peak resident memory of the guest's main process in KiB.
    pub fn memory_kib(&self) -> io::Result<u64> {
        peak_memory_kib(self.process.id())
    }

    /// Whether the guest cannot be used any more.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    fn pump(
        &mut self,
        disk: &mut dyn Disk,
        limit: Duration,
        what: &str,
        done: impl Fn(&Mailbox) -> bool,
    ) -> Result<(), GuestError> {
        let deadline = Instant::now() + limit;
        self.sleep.disturb();
        while !done(&self.mailbox) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.give_up(format!("the guest hangs: no {what} within {} s", limit.as_secs_f64())));
            }
            let idle = self.held.is_empty() && self.pending.is_empty();
            let tokens = if idle { self.poll.wait(left.min(REMIND_EVERY))? } else { self.poll.ready()? };
            if idle && tokens.is_empty() {
                self.remind();
            }
            for &token in &tokens {
                self.handle(token, disk).map_err(|error| self.blame(error))?;
            }
            if !tokens.is_empty() {
                self.sleep.disturb();
                self.held.awaited();
            } else if !idle && (self.sleep.is_sound() || self.sleep.is_late()) {
                self.let_go(disk).map_err(|error| self.blame(error))?;
                self.sleep.disturb();
            }
        }
        let rest = self.held.take_all();
        self.answer(rest, disk).map_err(|error| self.blame(error))?;
        while !self.pending.is_empty() {
            self.complete(disk).map_err(|error| self.blame(error))?;
        }
        Ok(())
    }

    /// Wake a guest that sleeps though it was interrupted.
    ///
    /// The idle loop of user-mode Linux checks its timer and then sleeps until a signal comes. A signal that comes
    /// between the two is noted, but the kernel acts on it only at the next signal. This may be a timer's, seconds
    /// later.
    fn remind(&self) {
        for connection in self.ports.iter().filter_map(|port| port.connection.as_ref()) {
            connection.queue.remind();
        }
    }

    /// The guest stands still. Answer a read or complete requests for which it may be waiting.
    fn let_go(&mut self, disk: &mut dyn Disk) -> Result<(), GuestError> {
        if let Some(request) = self.held.next() {
            return self.answer(vec![request], disk);
        }
        self.complete(disk)
    }

    /// Complete the pending requests whose turn it is, with one interrupt for all. New requests in the ring are handled
    /// first, because the guest submitted them without knowing of the completions.
    fn complete(&mut self, disk: &mut dyn Disk) -> Result<(), GuestError> {
        if self.serve_disk(disk)? {
            return Ok(());
        }
        let requests = self.pending.next(|count| disk.next_completion(count));
        for each in &requests {
            disk.completed(each.id)?;
        }
        for each in &requests {
            self.reply(&each.request, &[], Status::Ok)?;
        }
        self.notify();
        Ok(())
    }

    fn handle(&mut self, token: PollToken, disk: &mut dyn Disk) -> Result<(), GuestError> {
        match token {
            PollToken::Exit => Err(self.lose("the guest's kernel died".into())),
            PollToken::Listen(port) => self.accept(port),
            PollToken::Socket(port) => self.serve_socket(port),
            PollToken::Kick(port) => {
                if let Some(kick) = self.ports[port].kick {
                    drain_eventfd(kick);
                }
                match self.ports[port].device {
                    Device::Test(_) | Device::Mailbox => self.serve_mailbox(disk),
                    Device::Log => self.serve_log_disk().map(|_| ()),
                }
            }
        }
    }

    fn accept(&mut self, number: usize) -> Result<(), GuestError> {
        let socket = self.ports[number].connect(self.process.id())?;
        Ok(self.poll.add(socket, PollToken::Socket(number))?)
    }

    fn serve_socket(&mut self, number: usize) -> Result<(), GuestError> {
        let port = &mut self.ports[number];
        let connection = port.connection.as_mut().expect("its socket is ready");
        if !connection.serve()? {
            return Err(self.lose("the guest's kernel closed its disk".into()));
        }
        let kick = connection.queue.kick.as_ref().map(|fd| fd.as_raw_fd());
        if kick != port.kick {
            port.kick = kick;
            if let Some(kick) = kick {
                self.poll.add(kick, PollToken::Kick(number))?;
            }
        }
        Ok(())
    }

    /// Take the messages in the mailbox's ring, serve the disk's ring, then handle these messages.
    ///
    /// An operation that has returned has made its promises, whatever the kernel still does for it. So its mark does
    /// not wait for the kernel to rest, and a request that comes later stands behind the mark. The next message does
    /// wait. Nothing rests on where a system call is noted, so its notes do not wait either.
    fn serve_mailbox(&mut self, disk: &mut dyn Disk) -> Result<(), GuestError> {
        let taken = self.ports[MAILBOX].take()?;
        self.serve_disk(disk)?;
        for request in taken {
            if disk.wants_rest() && !Mailbox::is_prompt(&request) {
                self.rest(disk)?;
            }
            let Some(connection) = self.ports[MAILBOX].connection.as_mut() else { return Ok(()) };
            if let Some(message) = self.mailbox.accept(request, connection)? {
                disk.message(&message)?;
            }
        }
        let Some(connection) = self.ports[MAILBOX].connection.as_mut() else { return Ok(()) };
        self.mailbox.deliver(connection)?;
        Ok(())
    }

    /// Serve the requests in the log disk's ring. Returns whether there were any.
    fn serve_log_disk(&mut self) -> Result<bool, GuestError> {
        let port = self.ports.iter_mut().find(|port| port.device == Device::Log);
        let Some((port, log_disk)) = port.zip(self.log_disk.as_mut()) else {
            return Ok(false);
        };
        let taken = port.take()?;
        if let Some(connection) = port.connection.as_mut() {
            log_disk.serve(&taken, connection)?;
        }
        Ok(!taken.is_empty())
    }

    /// Serve the guest's disks until its kernel has come to rest. Work that the kernel does after an operation has
    /// returned, such as handling completed I/O, is then done before the next operation, however busy the host is.
    fn rest(&mut self, disk: &mut dyn Disk) -> Result<(), GuestError> {
        let deadline = Instant::now() + REST_MAX;
        self.sleep.disturb();
        while Instant::now() < deadline {
            if self.serve_disk(disk)? | self.serve_log_disk()? {
                self.sleep.disturb();
                continue;
            }
            let is_sound = self.sleep.is_sound();
            if is_sound && self.pending.is_empty() {
                break;
            }
            if !self.pending.is_empty() && (is_sound || self.sleep.is_late()) {
                self.complete(disk)?;
                self.sleep.disturb();
            }
        }
        Ok(())
    }

    /// Serve the requests in the rings of the test disks. Returns whether there were any. Requests of different disks
    /// that are found together did not wait for one another.
    fn serve_disk(&mut self, disk: &mut dyn Disk) -> Result<bool, GuestError> {
        let mut found = false;
        for number in 0..self.ports.len() {
            if matches!(self.ports[number].device, Device::Test(_)) {
                found |= self.serve_ring(number, disk)?;
            }
        }
        Ok(found)
    }

    /// Serve the requests in a test disk's ring, with one interrupt for all that are answered.
    fn serve_ring(&mut self, number: usize, disk: &mut dyn Disk) -> Result<bool, GuestError> {
        let requests = self.ports[number].take()?;
        let sectors = self.ports[number].range();
        let (found, mut answered) = (!requests.is_empty(), false);
        let ids = disk.submitted(&requests.iter().map(|request| &request.kind).collect::<Vec<_>>())?;
        for (request, id) in requests.into_iter().zip(ids) {
            let written = request.kind.written();
            match (&request.kind, &written) {
                (&RequestKind::Read { sector, bytes }, _) if disk.undecided(sector, (bytes / SECTOR_BYTES) as u64) => {
                    self.held.hold(request);
                    continue;
                }
                (_, Some(sectors)) => answered |= self.release(sectors, disk)?,
                _ => {}
            }
            let may_wait = written.is_some() || matches!(request.kind, RequestKind::Flush { .. });
            if may_wait && request.kind.fits(&sectors) && disk.completes_at_rest() {
                execute(&request.kind, disk, &sectors);
                self.pending.add(request, id);
                continue;
            }
            answered |= self.fill_in(vec![request], disk)?;
            disk.completed(id)?;
        }
        if answered {
            self.notify();
        }
        Ok(found)
    }

    /// Answer held reads of sectors that are about to change. Returns whether there were any. The guest is not
    /// interrupted yet.
    fn release(&mut self, sectors: &Range<u64>, disk: &mut dyn Disk) -> Result<bool, GuestError> {
        if self.held.is_empty() {
            return Ok(false);
        }
        let requests = self.held.overlapping(sectors);
        self.fill_in(requests, disk)
    }

    /// Carry out the requests, complete them and interrupt the guest.
    fn answer(&mut self, requests: Vec<Request>, disk: &mut dyn Disk) -> Result<(), GuestError> {
        if self.fill_in(requests, disk)? {
            self.notify();
        }
        Ok(())
    }

    /// Carry out the requests and put them into the ring of completed ones. Returns whether there were any.
    fn fill_in(&mut self, requests: Vec<Request>, disk: &mut dyn Disk) -> Result<bool, GuestError> {
        for request in &requests {
            let sectors = self.ports[self.port_of(request.disk)].range();
            let (data, status) = execute(&request.kind, disk, &sectors);
            self.reply(request, &data, status)?;
        }
        Ok(!requests.is_empty())
    }

    /// Put a request into its disk's ring of completed ones.
    fn reply(&mut self, request: &Request, data: &[u8], status: Status) -> Result<(), GuestError> {
        let number = self.port_of(request.disk);
        Ok(self.ports[number].reply(request, data, status)?)
    }

    /// Interrupt the guest for what its disks have done, once for each.
    fn notify(&mut self) {
        self.ports.iter_mut().for_each(Port::notify);
    }

    /// The port of the test disk with that number.
    fn port_of(&self, disk: u32) -> usize {
        let is_its = |port: &Port| matches!(port.device, Device::Test(place) if place.disk == disk);
        self.ports.iter().position(is_its).expect("the request came from it")
    }

    /// Data that cannot be understood came from the guest, so the guest's kernel is broken.
    fn blame(&mut self, error: GuestError) -> GuestError {
        match error {
            GuestError::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
                self.lose(format!("the guest broke the protocol: {error}"))
            }
            GuestError::Io(error) if is_cut_off(&error) => {
                self.lose(format!("the guest's kernel closed its disk: {error}"))
            }
            other => other,
        }
    }

    /// The guest hangs. Ask its kernel what it is doing, then end the guest.
    fn give_up(&mut self, what: String) -> GuestError {
        let console = stacks::end(&self.config.work.join(CONSOLE));
        let stacks = self.config.engine.stacks(&mut self.process, &self.config.work);
        self.end();
        GuestError::Lost(Casualty { what, console, stacks })
    }

    fn lose(&mut self, what: String) -> GuestError {
        self.end();
        let stacks = "no stacks could be had: the guest was gone".into();
        GuestError::Lost(Casualty { what, console: stacks::end(&self.config.work.join(CONSOLE)), stacks })
    }

    /// End the guest. It cannot be used any more.
    pub fn end(&mut self) {
        self.gone = true;
        process::kill(&mut self.process);
        for port in &mut self.ports {
            port.connection = None;
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if !self.gone {
            process::kill(&mut self.process);
        }
    }
}

fn execute(kind: &RequestKind, disk: &mut dyn Disk, sectors: &Range<u64>) -> (Vec<u8>, Status) {
    let mut data = Vec::new();
    match kind {
        kind if !kind.fits(sectors) => return (data, Status::Error),
        RequestKind::Read { sector, bytes } => {
            data.resize(*bytes, 0);
            disk.read(*sector, &mut data);
        }
        RequestKind::Write { sector, data } => disk.overlay().write(*sector, data),
        RequestKind::Zero { sector, sectors, .. } => disk.overlay().zero(*sector, *sectors),
        RequestKind::Flush { .. } => {}
        RequestKind::Identify => data.extend_from_slice(b"postcrash"),
        RequestKind::Unsupported => return (data, Status::Unsupported),
    }
    (data, Status::Ok)
}

fn drain_eventfd(fd: RawFd) {
    let mut count = 0u64;
    // SAFETY: the call reads eight bytes into a local. An eventfd of virtio_uml does not block once it is readable.
    unsafe { libc::read(fd, (&mut count as *mut u64).cast(), 8) };
}
