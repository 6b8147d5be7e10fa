//! The process outside the box: it takes what the box says, holds it, and lets it out when it is true.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;

use anyhow::{Context, Result};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{pidfd_send_signal, waitid, Signal, WaitId, WaitIdOptions};

use crate::commit::Commit;
use crate::committer::{self, Failure, Outbox};
use crate::eager::Modifications;
use crate::filter;
use crate::inside::{make_tun, Ends, Inside};
use crate::release::{ours, Output, Release};
use crate::sys;
use crate::ways::{Input, Streams, Terminal};

const READ_BYTES_MAX: usize = 1 << 16;
/// Signals that are passed on to the command.
const PASSED_ON: [i32; 6] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// The file system that the box changes.
pub struct Target {
    pub device: (u32, u32),
    pub commit: Commit,
    /// Whether each modification asks for a commit.
    pub eager: Option<Modifications>,
}

/// Attend to a box until its command has ended and everything is out. Returns the command's status, or why a commit failed.
pub fn attend(inside: Inside, streams: Streams, target: Target, network: Option<Ends>) -> Result<Result<u8, Failure>> {
    let init = inside.init.try_clone().context("dup")?;
    let result = attend_to_box(inside, streams, target, network);
    if result.is_err() {
        // Before others see its files, it must be gone.
        pidfd_send_signal(&init, Signal::KILL).context("the box cannot be ended")?;
        waitid(WaitId::PidFd(init.as_fd()), WaitIdOptions::EXITED).context("waitid")?;
    }
    result
}

fn attend_to_box(
    inside: Inside,
    streams: Streams,
    target: Target,
    network: Option<Ends>,
) -> Result<Result<u8, Failure>> {
    sys::block_signals(true)?;
    let signals = sys::signals(&[&PASSED_ON[..], &[libc::SIGWINCH]].concat())?;
    let outbox = Arc::new(Outbox::new().context("eventfd")?);
    let input = Input::new();
    let outer_network = match network {
        Some(ends) => Some(Arc::new(make_tun(ends.outside, None::<Ipv4Addr>)?)),
        None => None,
    };
    let refused: Arc<[AtomicBool; 3]> = Arc::default();
    let (credit, flags) = (Arc::clone(&input.credit), Arc::clone(&refused));
    let release = Release { network: outer_network.clone(), credit, refused: flags, is_lost: AtomicBool::new(false) };
    let terminal = match (inside.terminal, streams.terminal) {
        (Some(outer), Some(our)) => Some(Terminal::connect(outer, our)?),
        _ => None,
    };
    let listener = inside.listener;
    let is_mapped = Arc::clone(&target.commit.is_mapped);
    thread::spawn(move || filter::serve(&listener, target.device, &is_mapped));
    if let Some(modifications) = target.eager {
        let outbox = Arc::clone(&outbox);
        thread::spawn(move || modifications.each(|| outbox.want_commit()));
    }
    let committing = {
        let outbox = Arc::clone(&outbox);
        let mut commit = target.commit;
        thread::spawn(move || committer::run(&outbox, || commit.commit(), |output| release.release(output)))
    };
    let mut supervisor = Supervisor {
        init: inside.init,
        input_pipe: streams.input,
        outputs: streams.outputs,
        inner_network: inside.network,
        our_terminal: streams.terminal,
        terminal,
        outer_network,
        signals,
        input,
        refused,
        outbox,
    };
    supervisor.collect()?;
    let result = committing.join().expect("the committer does not panic");
    drop(supervisor.terminal);
    Ok(result)
}

struct Supervisor {
    init: OwnedFd,
    input_pipe: Option<OwnedFd>,
    outputs: Vec<(RawFd, OwnedFd)>,
    our_terminal: Option<RawFd>,
    terminal: Option<Terminal>,
    /// With the network namespace, which lasts as long as it is open.
    inner_network: Option<(OwnedFd, OwnedFd)>,
    outer_network: Option<Arc<OwnedFd>>,
    signals: OwnedFd,
    input: Input,
    refused: Arc<[AtomicBool; 3]>,
    outbox: Arc<Outbox>,
}

/// What a descriptor that can be read or written is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ready {
    Ended,
    News,
    Signals,
    OurInput,
    ItsInput,
    Output(usize),
    Terminal,
    InnerNetwork,
    OuterNetwork,
}

impl Supervisor {
    /// Take everything that the box says until it has ended.
    fn collect(&mut self) -> Result<()> {
        loop {
            let ready = self.wait()?;
            if ready.contains(&Ready::Ended) {
                break;
            }
            for what in ready {
                self.attend_to(what);
            }
            if self.outbox.has_failed() {
                pidfd_send_signal(&self.init, Signal::KILL).context("the box cannot be ended")?;
            }
        }
        let ended = waitid(WaitId::PidFd(self.init.as_fd()), WaitIdOptions::EXITED).context("waitid")?;
        let status = ended.and_then(|ended| ended.exit_status()).unwrap_or(128 + libc::SIGKILL);
        self.drain();
        self.outbox.arrive(Output::Exit(status as u8));
        Ok(())
    }

    fn wait(&self) -> Result<Vec<Ready>> {
        let events = self.expected_events();
        let mut descriptors: Vec<_> =
            events.iter().map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
        match poll(&mut descriptors, None) {
            Err(Errno::INTR) => return Ok(Vec::new()),
            other => other.context("poll")?,
        };
        let ready = events.iter().zip(&descriptors).filter(|(_, descriptor)| !descriptor.revents().is_empty());
        Ok(ready.map(|((what, _, _), _)| *what).collect())
    }

    /// What to wait for.
    fn expected_events(&self) -> Vec<(Ready, BorrowedFd<'_>, PollFlags)> {
        let mut events = vec![
            (Ready::Ended, self.init.as_fd(), PollFlags::IN),
            (Ready::News, self.outbox.news.as_fd(), PollFlags::IN),
            (Ready::Signals, self.signals.as_fd(), PollFlags::IN),
        ];
        if self.input.wants_to_read() {
            events.push((Ready::OurInput, ours(0), PollFlags::IN));
        }
        if let Some(place) = self.input_place() {
            // A pipe without a reader is an event even if none is asked for.
            let flags = if self.input.wants_to_write() { PollFlags::OUT } else { PollFlags::empty() };
            events.push((Ready::ItsInput, place.as_fd(), flags));
        }
        if let Some(network) = &self.outer_network {
            events.push((Ready::OuterNetwork, network.as_fd(), PollFlags::IN));
        }
        if self.outbox.has_room() {
            let outputs = self.outputs.iter().enumerate();
            events.extend(outputs.map(|(number, (_, pipe))| (Ready::Output(number), pipe.as_fd(), PollFlags::IN)));
            if let Some(terminal) = &self.terminal {
                events.push((Ready::Terminal, terminal.outer.as_fd(), PollFlags::IN));
            }
            if let Some((network, _)) = &self.inner_network {
                events.push((Ready::InnerNetwork, network.as_fd(), PollFlags::IN));
            }
        }
        events
    }

    /// Where the box's input goes.
    fn input_place(&self) -> Option<&OwnedFd> {
        match &self.input_pipe {
            Some(pipe) => Some(pipe),
            None if self.input.wants_to_write() => self.terminal.as_ref().map(|terminal| &terminal.outer),
            None => None,
        }
    }

    fn attend_to(&mut self, what: Ready) {
        match what {
            Ready::Ended => {}
            Ready::News => self.hear_news(),
            Ready::Signals => self.pass_signals_on(),
            Ready::OurInput => {
                self.input.read();
                self.end_input();
            }
            Ready::ItsInput => self.write_input(),
            Ready::Output(number) => drop(self.take_output(number)),
            Ready::Terminal => drop(self.take_from_terminal()),
            Ready::InnerNetwork => drop(self.take_packet()),
            Ready::OuterNetwork => self.give_packet(),
        }
    }

    /// Something was released. If nobody reads a stream any more, whoever writes to it in the box hears of it.
    fn hear_news(&mut self) {
        let _ = rustix::io::read(&self.outbox.news, &mut [0; 8]);
        let is_refused = |descriptor: RawFd| self.refused[descriptor as usize].load(Ordering::Relaxed);
        self.outputs.retain(|(descriptor, _)| !is_refused(*descriptor));
        if self.our_terminal.is_some_and(is_refused) {
            self.terminal = None;
        }
    }

    fn pass_signals_on(&self) {
        while let Some(number) = sys::next_signal(&self.signals) {
            match (number, Signal::from_named_raw(number)) {
                (libc::SIGWINCH, _) => drop(self.terminal.as_ref().map(Terminal::take_size)),
                (_, Some(signal)) => drop(pidfd_send_signal(&self.init, signal)),
                _ => {}
            }
        }
    }

    fn write_input(&mut self) {
        if !self.input.wants_to_write() {
            // The box has closed its input.
            self.input_pipe = None;
            self.outbox.arrive(self.input.refuse());
            return;
        }
        let place = self.input_pipe.as_ref().or(self.terminal.as_ref().map(|terminal| &terminal.outer));
        if let Some(output) = place.and_then(|place| self.input.write(place)) {
            self.outbox.arrive(output);
        }
        self.end_input();
    }

    /// When there is no more input, the box sees its end.
    fn end_input(&mut self) {
        if self.input.is_over() {
            self.input_pipe = None;
        }
    }

    /// Take what the box has written to a stream. Whether there may be more.
    fn take_output(&mut self, number: usize) -> bool {
        let mut buffer = [0; READ_BYTES_MAX];
        let Some((descriptor, pipe)) = self.outputs.get(number) else { return false };
        let descriptor = *descriptor;
        match rustix::io::read(pipe, &mut buffer) {
            Ok(0) => {
                self.outputs.remove(number);
                self.outbox.arrive(Output::Closed(descriptor));
                false
            }
            Ok(read) => {
                self.outbox.arrive(Output::Bytes(descriptor, buffer[..read].to_vec()));
                true
            }
            Err(_) => false,
        }
    }

    fn take_from_terminal(&mut self) -> bool {
        let mut buffer = [0; READ_BYTES_MAX];
        let (Some(terminal), Some(our)) = (&self.terminal, self.our_terminal) else { return false };
        match rustix::io::read(&terminal.outer, &mut buffer) {
            Ok(read) if read > 0 => {
                self.outbox.arrive(Output::Bytes(our, buffer[..read].to_vec()));
                true
            }
            _ => false,
        }
    }

    fn take_packet(&mut self) -> bool {
        let mut buffer = [0; READ_BYTES_MAX];
        let Some((network, _)) = &self.inner_network else { return false };
        match rustix::io::read(network, &mut buffer) {
            Ok(read) if read > 0 => {
                self.outbox.arrive(Output::Packet(buffer[..read].to_vec()));
                true
            }
            _ => false,
        }
    }

    /// A packet for the box comes in at once.
    fn give_packet(&mut self) {
        let mut buffer = [0; READ_BYTES_MAX];
        let (Some(from), Some((to, _))) = (&self.outer_network, &self.inner_network) else { return };
        match rustix::io::read(from, &mut buffer) {
            // A network may lose packets.
            Ok(read) => drop(rustix::io::write(to, &buffer[..read])),
            Err(Errno::AGAIN | Errno::INTR) => {}
            // Somebody has removed it.
            Err(_) => self.outer_network = None,
        }
    }

    /// The box has ended: take what is left.
    fn drain(&mut self) {
        while !self.outputs.is_empty() && !self.outbox.has_failed() {
            while self.take_output(0) {}
        }
        while self.take_from_terminal() {}
        while self.take_packet() {}
    }
}
