"""The faults that are planted in cursor.rs of a copy of crashgen/core. They concern what is stable and the instants."""

from .fault import Fault

CURSOR_FAULTS = [
    Fault(
        "an interval is handed out after the event that ends it",
        "cursor.rs",
        """            if self.stage.is_some() || self.is_handed_out(event) {
                if let Some(interval) = self.next_stage() {
                    return Some(interval);
                }
            }
            self.leave_stage();
            self.apply(event?);
            self.at += 1;
""",
        """            let edge = self.is_handed_out(event);
            self.leave_stage();
            self.apply(event?);
            self.at += 1;
            if edge {
                return self.next_stage();
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
        "cursor.rs",
        "self.completed.range(..event).map(|(_, &write)| write)",
        "self.in_flight.range(..event).map(|(&write, _)| write)",
    ),
    Fault(
        "a flush covers what completes before it does",
        "cursor.rs",
        "self.completed_before(flush.map_or(0, |request| request.event)).chain(own)",
        "self.completed_before(flush.map_or(0, |_| self.at)).chain(own)",
    ),
    Fault(
        "a flush does nothing",
        "cursor.rs",
        "OpenRequest { event: at, flush: true, fua: false }",
        "OpenRequest { event: at, flush: false, fua: false }",
    ),
    Fault(
        "a flush counts once it is submitted",
        "cursor.rs",
        "self.under_way.insert(id, OpenRequest { event: at, flush: true, fua: false });",
        "let _ = id;\n                self.stabilise(self.completed_before(at).collect());",
    ),
    Fault("FUA does nothing", "cursor.rs", "request.fua && self.model", "false && request.fua && self.model"),
    Fault(
        "FUA is a barrier",
        "cursor.rs",
        "flush.map_or(0, |request| request.event)",
        "flush.or(fua).map_or(0, |request| request.event)",
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
        "self.stable.extend(self.before_stage.drain());",
        "self.before_stage.clear();",
        "brute_force",
    ),
    Fault(
        "stable content runs backwards",
        "cursor.rs",
        "if last { source } else { (*known).max(source) }",
        "if last || source > Source::BASE { source } else { *known }",
    ),
    Fault(
        "writes stand in the order of their completion",
        "cursor.rs",
        """        if let Some(write) = self.in_flight.get_mut(&request.event) {
            write.completed = Some(self.at);
            self.completed.insert(self.at, request.event);
        }
""",
        """        if let Some(mut write) = self.in_flight.remove(&request.event) {
            write.completed = Some(self.at);
            self.completed.insert(self.at, self.at);
            self.in_flight.insert(self.at, write);
        }
""",
    ),
    Fault(
        "a write is cut from its start, not at blocks",
        "cursor.rs",
        "((at / unit + 1) * unit).min(sectors.end)",
        "(at + unit).min(sectors.end)",
    ),
    Fault("a write is one piece", "cursor.rs", "((at / unit + 1) * unit).min(sectors.end)", "unit.max(sectors.end)"),
    Fault(
        "each piece of a write carries the write's first bytes",
        "cursor.rs",
        "source: source.sector(part.start - sector),",
        "source,",
    ),
    Fault(
        "the set-up is not stable",
        "cursor.rs",
        "self.stabilise(self.completed_before(at).collect());",
        "",
    ),
    Fault("crashes in the set-up are looked at", "cursor.rs", "durable: false,", "durable: true,"),
    Fault(
        "a replay goes by the order of submission",
        "cursor.rs",
        "Box::new(self.completed.values().map(|&event| (event, &self.in_flight[&event])))",
        "Box::new(writes.filter(|(_, write)| write.completed.is_some()))",
    ),
    Fault(
        "a replay has what never completed",
        "cursor.rs",
        "Box::new(self.completed.values().map(|&event| (event, &self.in_flight[&event])))",
        "Box::new(\n"
        "                (self.completed.values().map(|&event| (event, &self.in_flight[&event])))\n"
        "                    .chain(writes.filter(|(_, write)| write.completed.is_none())),\n"
        "            )",
    ),
    Fault(
        "what a replay makes stable does not hide what was submitted later",
        "cursor.rs",
        "if last { source } else { (*known).max(source) }",
        "if last && source > *known { source } else { (*known).max(source) }",
    ),
    Fault(
        "an ordered drive makes stable a write and not those before it",
        "cursor.rs",
        "Some(last) => self.in_flight.range(..=last)",
        "Some(last) => self.in_flight.range(last..=last)",
    ),
    Fault(
        "an ordered drive waits for the flush of a PREFLUSH write",
        "cursor.rs",
        "Order::Submission => Box::new(writes),",
        "Order::Submission => Box::new(writes.filter(|(event, _)| {\n"
        "                let waits = self.under_way.values().any(|request| request.event == *event && request.flush);\n"
        "                !waits || self.completed_before(*event).next().is_none()\n"
        "            })),",
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
        "cursor.rs",
        "BigUint::from(pieces.len() + 1)",
        "BigUint::one() << pieces.len()",
    ),
]
