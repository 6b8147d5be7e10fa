"""The faults that are planted in what a copy of crashgen/core does if flushes order and do not persist."""

from .fault import Fault

BARRIER_FAULTS = [
    Fault(
        "a barrier orders nothing",
        "device/barrier.rs",
        "fn flush_orders(&self) -> bool {\n        true",
        "fn flush_orders(&self) -> bool {\n        false",
    ),
    Fault(
        "a barrier persists",
        "device/barrier.rs",
        "fn honours_flush(&self) -> bool {\n        false",
        "fn honours_flush(&self) -> bool {\n        true",
    ),
    Fault(
        "FUA persists on a drive with barriers",
        "device/barrier.rs",
        "fn honours_fua(&self) -> bool {\n        false",
        "fn honours_fua(&self) -> bool {\n        true",
    ),
    Fault(
        "what is submitted before a flush completes is behind it",
        "barriers.rs",
        "Event::Flush { id, disk } => {\n",
        "Event::Flush { id, disk } => {\n                last[disk as usize] = at;\n",
    ),
    Fault(
        "what completes before a flush does is in front of it",
        "barriers.rs",
        "last[disk] = flush.max(last[disk]);",
        "last[disk] = at.max(flush);",
    ),
    Fault(
        "a write is behind the flush that completed last only",
        "barriers.rs",
        "last[disk] = flush.max(last[disk]);",
        "last[disk] = flush;",
    ),
    Fault(
        "a PREFLUSH write is not behind its flush",
        "barriers.rs",
        "of[at] = at;",
        "of[at] = last[disks.of(sector)];",
    ),
    Fault(
        "a PREFLUSH write is in front of what is submitted before it completes",
        "barriers.rs",
        "of[at] = at;",
        "of[at] = at;\n                last[disks.of(sector)] = at;",
    ),
    Fault(
        "the flush of a PREFLUSH write orders nothing but its own write",
        "barriers.rs",
        "flushes.insert(id, (disks.of(sector), at));\n                of[at] = at;",
        "let _ = (id, sector);\n                of[at] = at;",
    ),
    Fault(
        "a discard is behind no flush",
        "barriers.rs",
        "Event::Write { sector, .. } | Event::Zero { sector, .. } => of[at]",
        "Event::Zero { .. } => {}\n            Event::Write { sector, .. } => of[at]",
    ),
    Fault(
        "a stage that may grow is handed out for all its instants",
        "barriers.rs",
        "self.earliest[event] >= barrier",
        "event > 0 && barrier > 0",
    ),
    Fault(
        "the states of an old stage are judged at early instants only",
        "cursor.rs",
        "Some(barriers.instants_from(self.at).to_vec())",
        "Some(barriers.instants_from(self.at)[..self.instants.len()].to_vec())",
    ),
    Fault(
        "a stage of all its instants is handed out again",
        "cursor.rs",
        "        drive.stabilise(drive.completed_before(self.settled).collect(), &mut self.stable);\n",
        "",
    ),
    Fault(
        "the last stage is handed out again",
        "cursor.rs",
        "None => self.handed_out = usize::MAX,",
        "None => {}",
        "brute_force",
    ),
    Fault(
        "a state is counted in two stages",
        "cursor.rs",
        "|kept| BigUint::one() << free(kept)",
        "|kept| BigUint::ZERO << free(kept)",
    ),
    Fault(
        "what a stage never keeps is not told",
        "cursor.rs",
        "drive.absent(stage)).collect();",
        "drive.absent(stage).take(0)).collect();",
    ),
    Fault(
        "an overlap that loses what the next stage keeps is counted there",
        "component.rs",
        "known.values_mut().for_each(|lost| lost.weight_next = BigUint::ZERO);",
        "free += 0;",
    ),
    Fault(
        "an overlap that keeps what the next stage keeps is counted twice",
        "component.rs",
        "(&one << number, &one << free)",
        "(&one << number, BigUint::ZERO << free)",
    ),
    Fault(
        "a piece that the next stage need not keep must be kept there",
        "component.rs",
        "version == 0 || self.kept_next == 0",
        "version == 0",
    ),
    Fault(
        "a lost write that changes nothing makes no state of this stage",
        "interval.rs",
        "&(all >> in_components) != next {",
        "all == next {",
    ),
]
