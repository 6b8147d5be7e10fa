//! The loop of `recover` without a crash disk under it. `make bench` compares with it.

use std::io;
use std::time::Instant;

use postcrash_wire::{Message, Spin};

use crate::kernel_log::KernelLog;
use crate::mailbox::Mailbox;
use crate::mount::{mount, unmount};
use crate::walk::walk;

/// Mount, walk and unmount `count` times. The answer has the seconds that this took.
pub fn spin(mailbox: &mut Mailbox, log: &mut KernelLog, spin: &Spin) -> io::Result<()> {
    let started = Instant::now();
    let mut entries = 0;
    for _ in 0..spin.count {
        log.begin(false)?;
        mount(&spin.device, &spin.recover.mount)?;
        let tree = walk(&spin.recover)?.entries;
        entries = tree.len();
        let json = serde_json::to_vec(&tree).map_err(io::Error::other)?;
        std::hint::black_box(json);
        log.take()?;
        unmount()?;
    }
    let seconds = started.elapsed().as_secs_f64();
    mailbox.send(&Message::Done(format!("{{\"seconds\": {seconds}, \"entries\": {entries}}}").into_bytes()))
}
