//! The order in which events can follow each other.

use std::collections::HashMap;
use std::ops::Range;

use postcrash_wire::units::SECTOR_BYTES;

use super::Event;
use crate::disks::Disks;

/// Checks that events follow each other as they can: ids are new, completions belong to outstanding requests, and marks
/// are in order.
#[derive(Default)]
pub(super) struct EventOrder {
    /// Whether each request is under way. An id is never used twice, because ids tell what a flush covers.
    requests: HashMap<u32, bool>,
    next_op: u32,
    running_op: Option<u32>,
    durable: bool,
}

impl EventOrder {
    pub(super) fn admit(&mut self, event: &Event, disks: &Disks) -> Result<(), String> {
        match *event {
            Event::Write { ref data, .. } if data.is_empty() || data.len() % SECTOR_BYTES != 0 => {
                Err(format!("a write of {} bytes is not whole sectors", data.len()))
            }
            Event::Write { id, sector, ref data, .. } => {
                within(sector, (data.len() / SECTOR_BYTES) as u64, disks)?;
                self.submit(id)
            }
            Event::Zero { id, sector, sectors, .. } => {
                within(sector, sectors, disks)?;
                self.submit(id)
            }
            Event::Flush { disk, .. } if disk as usize >= disks.len() => Err(format!("there is no disk {disk}")),
            Event::Flush { id, .. } => self.submit(id),
            Event::Complete { id } => {
                let under_way = self.requests.get_mut(&id).filter(|under_way| **under_way);
                let under_way = under_way.ok_or_else(|| format!("request {id} completes but is not outstanding"))?;
                *under_way = false;
                Ok(())
            }
            Event::Started { op } if self.running_op.is_none() && op == self.next_op => {
                self.running_op = Some(op);
                self.next_op += 1;
                Ok(())
            }
            Event::Returned { op, .. } if self.running_op == Some(op) => {
                self.running_op = None;
                Ok(())
            }
            Event::Started { op } | Event::Returned { op, .. } => Err(format!("operation {op} is marked out of order")),
            Event::Durable if self.durable => Err("the set-up ends twice".into()),
            Event::Durable => {
                self.durable = true;
                Ok(())
            }
        }
    }

    fn submit(&mut self, id: u32) -> Result<(), String> {
        if self.requests.contains_key(&id) {
            return Err(format!("request {id} is submitted twice"));
        }
        self.requests.insert(id, true);
        Ok(())
    }
}

fn within(sector: u64, sectors: u64, disks: &Disks) -> Result<(), String> {
    if sectors > 0 && disks.have(sector, sectors) {
        return Ok(());
    }
    let Range { start, end } = disks.range(disks.of(sector));
    let disk = if start == 0 { format!("of {end}") } else { format!("from {start} to {end}") };
    Err(format!("{sectors} sectors from sector {sector} do not fit on a disk {disk}"))
}
