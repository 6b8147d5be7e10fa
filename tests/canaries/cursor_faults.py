"""The faults that are planted in cursor.rs of a copy of crashgen/core. They concern what is stable and the instants."""

from .fault import Fault

CURSOR_FAULTS = [
    Fault(
        "an interval is handed out after the event that ends it",
        "cursor.rs",
        """            if !self.stages.is_empty() || self.is_handed_out(event) {
                if let Some(interval) = self.next_stages() {
                    return Some(interval);
                }
            }
            self.leave_stages();
            self.stages.clear();
            self.keep_settled();
            self.apply(event?);
            self.at += 1;
""",
        """            let edge = self.is_handed_out(event);
            self.leave_stages();
            self.stages.clear();
            self.keep_settled();
            self.apply(event?);
            self.at += 1;
            if edge {
                return self.next_stages();
            }
""",
    ),
    Fault(
        "only the instants at which something becomes stable are judged",
        "cursor.rs",
        "None | Some(Event::Started { .. } | Event::Returned { .. }) => true,",
        "None => true,",
    ),
    Fault(
        "only the latest instant of an interval is judged",
        "cursor.rs",
        "            instants.push(instant);\n",
        "            instants = vec![instant];\n",
    ),
    Fault(
        "only the first instant of an interval is judged",
        "cursor.rs",
        "            instants.push(instant);\n",
        "            let _ = &mut instants;\n",
    ),
    Fault(
        "an instant after those that were handed out is taken for one of them",
        "cursor.rs",
        "self.instants.last().map_or(0, |instant| instant.event + 1);",
        "self.instants.last().map_or(0, |instant| instant.event + 2);",
        "brute_force",
    ),
    Fault(
        "a flush covers all that was submitted",
        "drive.rs",
        "self.completed.range(..event).map(|(_, &write)| write)",
        "self.in_flight.range(..event).map(|(&write, _)| write)",
    ),
    Fault(
        "a flush covers what completes before it does",
        "drive.rs",
        "self.model.honours_flush() { request.event }",
        "self.model.honours_flush() { usize::MAX }",
    ),
    Fault(
        "a flush does nothing",
        "cursor.rs",
        "disk: disk as usize, flush: true, fua: false }",
        "disk: disk as usize, flush: false, fua: false }",
    ),
    Fault(
        "a flush counts once it is submitted",
        "cursor.rs",
        "self.under_way.insert(id, OpenRequest { event: at, disk: disk as usize, flush: true, fua: false });",
        "let (_, drive) = (id, &mut self.drives[disk as usize]);\n"
        "                drive.stabilise(drive.completed_before(at).collect(), &mut self.stable);",
    ),
    Fault("FUA does nothing", "drive.rs", "request.fua && self.model", "false && request.fua && self.model"),
    Fault(
        "FUA is a barrier",
        "drive.rs",
        "if request.flush && self.model.honours_flush()",
        "if (request.flush || request.fua) && self.model.honours_flush()",
    ),
    Fault("the flush of a PREFLUSH write makes nothing stable", "cursor.rs", "flush: preflush,", "flush: false,"),
    Fault(
        "a PREFLUSH write does not wait for its flush",
        "drive.rs",
        "let waits = write.behind > stage",
        "let waits = false && write.behind > stage",
    ),
    Fault(
        "a PREFLUSH write starts only when it completes",
        "drive.rs",
        "self.waiting.range(last..).copied().find(more)",
        "self.waiting.range(last..).copied().find(more).filter(|_| false)",
    ),
    Fault(
        "a discard does nothing",
        "cursor.rs",
        "self.submit(sector, sectors, Source::zeroed(order), self.barrier());",
        "self.submit(sector, 0 * sectors, Source::zeroed(order), self.barrier());",
    ),
    Fault(
        "a discard is stable at once",
        "cursor.rs",
        "self.submit(sector, sectors, Source::zeroed(order), self.barrier());",
        "self.submit(sector, sectors, Source::zeroed(order), self.barrier());\n"
        "                self.drives[disk].stabilise(vec![at], &mut self.stable);",
    ),
    Fault(
        "what is stable in a stage stays so",
        "cursor.rs",
        "self.stable.extend(self.before_stages.drain());",
        "self.before_stages.clear();",
        "brute_force",
    ),
    Fault(
        "stable content runs backwards",
        "drive.rs",
        "if last { source } else { (*known).max(source) }",
        "if last || source > Source::BASE { source } else { *known }",
    ),
    Fault(
        "writes stand in the order of their completion",
        "cursor.rs",
        """        if let Some(write) = drive.in_flight.get_mut(&request.event) {
            write.completed = Some(self.at);
            drive.completed.insert(self.at, request.event);
        }
""",
        """        if let Some(mut write) = drive.in_flight.remove(&request.event) {
            write.completed = Some(self.at);
            drive.completed.insert(self.at, self.at);
            drive.in_flight.insert(self.at, write);
        }
""",
    ),
    Fault(
        "a write is cut from its start, not at blocks",
        "drive.rs",
        "((at / unit + 1) * unit).min(sectors.end)",
        "(at + unit).min(sectors.end)",
    ),
    Fault("a write is one piece", "drive.rs", "((at / unit + 1) * unit).min(sectors.end)", "unit.max(sectors.end)"),
    Fault(
        "each piece of a write carries the write's first bytes",
        "drive.rs",
        "source: source.sector(start + part.start - sector),",
        "source,",
    ),
    Fault(
        "the set-up is not stable",
        "cursor.rs",
        "drive.stabilise(drive.completed_before(at).collect(), &mut self.stable);",
        "let _ = drive;",
    ),
    Fault("crashes in the set-up are looked at", "cursor.rs", "durable: false,", "durable: true,"),
    Fault(
        "a replay goes by the order of submission",
        "drive.rs",
        "Box::new(self.completed.values().map(|&event| (event, &self.in_flight[&event])))",
        "Box::new(writes.filter(|(_, write)| write.completed.is_some()))",
    ),
    Fault(
        "a replay has what never completed",
        "drive.rs",
        "Box::new(self.completed.values().map(|&event| (event, &self.in_flight[&event])))",
        "Box::new(\n"
        "                (self.completed.values().map(|&event| (event, &self.in_flight[&event])))\n"
        "                    .chain(writes.filter(|(_, write)| write.completed.is_none())),\n"
        "            )",
    ),
    Fault(
        "what a replay makes stable does not hide what was submitted later",
        "drive.rs",
        "if last { source } else { (*known).max(source) }",
        "if last && source > *known { source } else { (*known).max(source) }",
    ),
    Fault(
        "an ordered drive makes stable a write and not those before it",
        "drive.rs",
        "Some(last) => self.in_flight.range(..=last)",
        "Some(last) => self.in_flight.range(last..=last)",
    ),
    Fault(
        "an ordered drive waits until a flush is done",
        "drive.rs",
        "Order::Submission => Box::new(writes),",
        "Order::Submission => Box::new(writes.filter(|(event, _)| self.completed_before(*event).next().is_none())),",
    ),
    Fault(
        "a PREFLUSH write on an ordered drive has stages",
        "cursor.rs",
        "self.model.order() == Order::Free && self.model.honours_flush()",
        "self.model.order() != Order::Completion && self.model.honours_flush()",
    ),
    Fault(
        "an ordered drive may keep any of its pieces",
        "cursor.rs",
        "            Order::Free => {\n",
        "            Order::Free | Order::Submission => {\n",
    ),
    Fault(
        "prefixes count as keep or lose",
        "component.rs",
        "BigUint::from(self.pieces) + 1u32",
        "BigUint::one() << self.pieces",
    ),
    Fault(
        "a flush is one of the first disk",
        "cursor.rs",
        "OpenRequest { event: at, disk: disk as usize, flush: true, fua: false }",
        "OpenRequest { event: at, disk: 0 * disk as usize, flush: true, fua: false }",
        "disks",
    ),
    Fault(
        "a write is one to the first disk",
        "cursor.rs",
        "let disk = self.recording.disks().of(sector);",
        "let disk = 0 * self.recording.disks().of(sector);",
        "disks",
    ),
    Fault(
        "disks go from stage to stage together",
        "cursor.rs",
        "self.stages[..disk].fill(0);",
        "self.stages[..disk].fill(stage);",
        "disks",
    ),
    Fault(
        "what is kept in order on one disk is kept on all",
        "cursor.rs",
        "let first = pieces.len();",
        "let first = 0;",
        "disks",
    ),
    Fault(
        "a sector at the end of a disk is on the next one",
        "disks.rs",
        "self.ends.partition_point(|&end| end <= sector)",
        "self.ends.partition_point(|&end| end <= sector + 8)",
        "disks",
    ),
]
