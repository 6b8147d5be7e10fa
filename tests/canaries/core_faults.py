"""The faults that are planted in a copy of crashgen/core, file by file: what stands in the source, and what instead."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    why: str
    file: str
    old: str
    new: str
    noticed_by: str = "litmus"


FAULTS = [
    Fault(
        "an interval is handed out after the event that ends it",
        "interval.rs",
        """            if self.durable && self.made_stable(&events[self.at]).next().is_some() {
                if let Some(interval) = self.next_stage() {
                    return Some(interval);
                }
            }
            self.leave_stage();
            self.apply(&events[self.at]);
            self.at += 1;
""",
        """            let edge = self.durable && self.made_stable(&events[self.at]).next().is_some();
            self.leave_stage();
            self.apply(&events[self.at]);
            self.at += 1;
            if edge {
                return self.next_stage();
            }
""",
    ),
    Fault(
        "a flush covers all that was submitted",
        "interval.rs",
        "self.completed.range(..event).map(|(_, &write)| write)",
        "self.in_flight.range(..event).map(|(&write, _)| write)",
    ),
    Fault(
        "a flush covers what completes before it does",
        "interval.rs",
        "self.completed_before(flush.map_or(0, |request| request.event)).chain(own)",
        "self.completed_before(flush.map_or(0, |_| self.at)).chain(own)",
    ),
    Fault(
        "a flush does nothing",
        "interval.rs",
        "Request { event: at, flush: true, fua: false }",
        "Request { event: at, flush: false, fua: false }",
    ),
    Fault(
        "a flush counts once it is submitted",
        "interval.rs",
        "self.under_way.insert(id, Request { event: at, flush: true, fua: false });",
        "let _ = id;\n                self.stabilise(self.completed_before(at).collect());",
    ),
    Fault("FUA does nothing", "interval.rs", "request.fua && self.model", "false && request.fua && self.model"),
    Fault(
        "FUA is a barrier",
        "interval.rs",
        "flush.map_or(0, |request| request.event)",
        "flush.or(fua).map_or(0, |request| request.event)",
    ),
    Fault("the flush of a PREFLUSH write makes nothing stable", "interval.rs", "flush: preflush,", "flush: false,"),
    Fault(
        "a PREFLUSH write does not wait for its flush",
        "interval.rs",
        "None if event > stage && self.waiting",
        "None if false && event > stage && self.waiting",
    ),
    Fault(
        "a PREFLUSH write starts only when it completes",
        "interval.rs",
        "self.waiting.range(last..).copied().find(more)?",
        "self.waiting.range(last..).copied().find(more).filter(|_| false)?",
    ),
    Fault(
        "a discard does nothing",
        "interval.rs",
        "self.submit(sector, sectors, Source::zeroed(order));",
        "let _ = (sector, sectors, Source::zeroed(order));",
    ),
    Fault(
        "a discard is stable at once",
        "interval.rs",
        "self.submit(sector, sectors, Source::zeroed(order));",
        "self.submit(sector, sectors, Source::zeroed(order));\n                self.stabilise(vec![at]);",
    ),
    Fault(
        "the earliest write shows, not the latest",
        "component.rs",
        "written.iter().for_each(|&(at, source)| sources[at] = source);",
        "written.iter().filter(|w| sources[w.0] == stable[w.0]).copied().collect::<Vec<_>>()\n"
        "                    .into_iter().for_each(|(at, source)| sources[at] = source);",
        "brute_force",
    ),
    Fault(
        "a write hides what it does not cover",
        "component.rs",
        "if written.len() == stable.len() {",
        "if !written.is_empty() {",
        "brute_force",
    ),
    Fault(
        "a content that hides all counts once",
        "component.rs",
        "Shown { weight: BigUint::one() << number,",
        "Shown { weight: BigUint::one(),",
    ),
    Fault(
        "a write of what stands there counts as two contents",
        "component.rs",
        "&& content.settled(stable, sector).is_none_or(",
        "|| content.settled(stable, sector).is_none_or(",
    ),
    Fault(
        "a lone write shows over a newer one that is stable",
        "component.rs",
        "0 => stable.max(source.sector(sector - self.sector)),",
        "0 => source.sector(sector - self.sector),",
        "brute_force",
    ),
    Fault(
        "a content forgets that what came after it is lost",
        "component.rs",
        "piece >= self.until || self.lost.bit(piece)",
        "self.lost.bit(piece)",
        "brute_force",
    ),
    Fault(
        "a content forgets what was lost before it",
        "component.rs",
        "lost: &self.lost | between,",
        "lost: self.lost.clone(),",
        "brute_force",
    ),
    Fault(
        "what is stable in a stage stays so",
        "interval.rs",
        "self.stable.extend(self.before_stage.drain());",
        "self.before_stage.clear();",
        "brute_force",
    ),
    Fault(
        "the first sector of a component is not in it",
        "interval.rs",
        "partition_point(|component| component.sector <= sector)",
        "partition_point(|component| component.sector < sector)",
    ),
    Fault(
        "the counts of versions are added",
        "interval.rs",
        "BigUint::from(versions).pow(count)",
        "BigUint::from(versions * count as usize)",
    ),
    Fault(
        "an older write shows over a stable one",
        "component.rs",
        "filter(|&(at, _, source)| source > stable[at])",
        "filter(|&(at, _, source)| source >= stable[at].min(source))",
        "brute_force",
    ),
    Fault(
        "stable content runs backwards",
        "interval.rs",
        "if last { source } else { (*known).max(source) }",
        "if last || source > Source::BASE { source } else { *known }",
    ),
    Fault(
        "writes stand in the order of their completion",
        "interval.rs",
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
        "interval.rs",
        "((at / unit + 1) * unit).min(sectors.end)",
        "(at + unit).min(sectors.end)",
    ),
    Fault("a write is one piece", "interval.rs", "((at / unit + 1) * unit).min(sectors.end)", "unit.max(sectors.end)"),
    Fault(
        "each piece of a write carries the write's first bytes",
        "interval.rs",
        "source: source.sector(part.start - sector),",
        "source,",
    ),
    Fault(
        "the set-up is not stable",
        "interval.rs",
        "self.stabilise(self.completed_before(at).collect());",
        "",
    ),
    Fault("crashes in the set-up are looked at", "interval.rs", "durable: false,", "durable: true,"),
    Fault(
        "a state counts twice",
        "interval.rs",
        "count * (&self.states / chosen)",
        "count * (&self.states / chosen) * 2u32",
    ),
    Fault("a component counts as one piece", "interval.rs", "chosen *= component.states();", "chosen *= 2u32;"),
    Fault(
        "the contents of a later version are never shown",
        "view.rs",
        "component.source(choose(index), s, &self.content)",
        "component.source(choose(index).min(1), s, &self.content)",
    ),
    Fault(
        "equal contents count once",
        "component.rs",
        "std::mem::take(&mut known.weight) + &shown.weight;",
        "known.weight.clone();",
    ),
    Fault(
        "equal contents stay apart",
        "component.rs",
        "find(|&known| self.content.settled(known, sector) == Some(bytes));",
        "find(|&known| self.content.settled(known, sector).is_none());",
    ),
    Fault(
        "a component ends where its last write ends",
        "component.rs",
        "reach = reach.max(pieces[index as usize].end());",
        "reach = pieces[index as usize].end();",
        "brute_force",
    ),
    Fault(
        "a content is explained by more losses than it needs",
        "component.rs",
        "if shown.losses(pieces) < known.losses(pieces) {",
        "if shown.losses(pieces) > known.losses(pieces) {",
        "brute_force",
    ),
    Fault(
        "a drive without barriers honours flushes",
        "device/lying.rs",
        "fn honours_flush(&self) -> bool {\n        false",
        "fn honours_flush(&self) -> bool {\n        true",
    ),
    Fault(
        "a drive without barriers honours FUA",
        "device/lying.rs",
        "fn honours_fua(&self) -> bool {\n        false",
        "fn honours_fua(&self) -> bool {\n        true",
    ),
    Fault(
        "torn writes tear at blocks",
        "device/mod.rs",
        '"torn" => Box::new(Cache { unit_sectors: 1 }),',
        '"torn" => Box::new(Cache { unit_sectors }),',
    ),
    Fault(
        "the atomic unit of a model's name counts for nothing",
        "device/mod.rs",
        "(bytes.is_power_of_two() && sectors > 0).then_some(sectors)",
        "(bytes.is_power_of_two() && sectors > 0).then_some(BLOCK_SECTORS)",
    ),
    Fault("a replay cuts entries at blocks", "device/prefix.rs", "u64::MAX", "8"),
    Fault(
        "an ordered drive persists in the order of completion",
        "device/ordered.rs",
        "Order::Submission\n",
        "Order::Completion\n",
    ),
    Fault(
        "a replay goes by the order of submission",
        "interval.rs",
        "Box::new(self.completed.values().map(|&event| (event, &self.in_flight[&event])))",
        "Box::new(writes.filter(|(_, write)| write.completed.is_some()))",
    ),
    Fault(
        "a replay has what never completed",
        "interval.rs",
        "Box::new(self.completed.values().map(|&event| (event, &self.in_flight[&event])))",
        "Box::new(\n"
        "                (self.completed.values().map(|&event| (event, &self.in_flight[&event])))\n"
        "                    .chain(writes.filter(|(_, write)| write.completed.is_none())),\n"
        "            )",
    ),
    Fault(
        "what a replay makes stable does not hide what was submitted later",
        "interval.rs",
        "if last { source } else { (*known).max(source) }",
        "if last && source > *known { source } else { (*known).max(source) }",
    ),
    Fault(
        "an ordered drive makes stable a write and not those before it",
        "interval.rs",
        "Some(last) => self.in_flight.range(..=last)",
        "Some(last) => self.in_flight.range(last..=last)",
    ),
    Fault(
        "an ordered drive waits for the flush of a PREFLUSH write",
        "interval.rs",
        "Order::Submission => Box::new(writes),",
        "Order::Submission => Box::new(writes.filter(|(event, _)| {\n"
        "                let waits = self.under_way.values().any(|request| request.event == *event && request.flush);\n"
        "                !waits || self.completed_before(*event).next().is_none()\n"
        "            })),",
    ),
    Fault(
        "a PREFLUSH write on an ordered drive has stages",
        "interval.rs",
        "self.model.order() == Order::Free && self.model.honours_flush()",
        "self.model.order() != Order::Completion && self.model.honours_flush()",
    ),
    Fault(
        "an ordered drive may keep any of its pieces",
        "interval.rs",
        "            Order::Free => {\n",
        "            Order::Free | Order::Submission => {\n",
    ),
    Fault(
        "prefixes count as keep or lose",
        "interval.rs",
        "BigUint::from(pieces.len() + 1)",
        "BigUint::one() << pieces.len()",
    ),
    Fault("equal prefixes count once", "history.rs", "self.history.versions[disk].count += 1;", ""),
    Fault(
        "prefixes with another one in between stay apart",
        "history.rs",
        "find(|&disk| self.is_same(",
        "find(|&disk| disk + 1 == self.history.versions.len() && self.is_same(",
    ),
    Fault(
        "a prefix shows the piece behind it",
        "history.rs",
        "(change.sector, change.kept) <= (sector, kept)",
        "(change.sector, change.kept) <= (sector, kept + 1)",
    ),
    Fault("the empty prefix is left out", "history.rs", "for kept in 0..=self", "for kept in 1..=self"),
    Fault(
        "the first version is the shortest prefix",
        "history.rs",
        "std::cmp::Reverse(disk.kept)",
        "disk.kept",
        "brute_force",
    ),
    Fault(
        "a prefix loses what it keeps",
        "component.rs",
        "(history.versions[version as usize].kept..self.pieces).collect()",
        "(0..history.versions[version as usize].kept).collect()",
        "brute_force",
    ),
    Fault(
        "a write that is lost whole counts as torn",
        "interval.rs",
        "filter(|(all, lost)| lost < all)",
        "filter(|(all, lost)| lost <= all)",
        "brute_force",
    ),
    Fault(
        "the version with nothing kept is that of the last piece",
        "component.rs",
        "position(&versions, |version| version.sources == nothing);",
        "versions.len() as u32 - 1;",
        "brute_force",
    ),
    Fault(
        "the shortest prefix keeps a piece",
        "history.rs",
        "let nothing = history.versions[0].kept;",
        "let nothing = history.versions[1 % history.versions.len()].kept;",
        "brute_force",
    ),
    Fault(
        "the walk leaves out each last version",
        "walk.rs",
        "let versions = 0..options.weights.len() as u32;",
        "let versions = 0..(options.weights.len() as u32 - 1);",
        "walk",
    ),
    Fault(
        "the walk counts what is done beside a way as covered",
        "walk.rs",
        "if nearest[0] == FAR {",
        "if nearest[0] >= 1 {",
        "walk",
    ),
    Fault(
        "a component read again is decided again",
        "walk.rs",
        "            return known;\n        }\n        let options = options();",
        "            assert!(known < u32::MAX);\n        }\n        let options = options();",
        "walk",
    ),
    Fault(
        "what an execution chose is kept for the next",
        "walk.rs",
        "        self.chosen.clear();\n",
        "",
        "walk",
    ),
    Fault(
        "the walk stops one deviation short of its bound",
        "walk.rs",
        "self.nearest(0, reference) <= bound",
        "self.nearest(0, reference) < bound",
        "walk",
    ),
    Fault(
        "the walk goes one deviation beyond its bound",
        "walk.rs",
        "self.nearest(0, reference) <= bound",
        "self.nearest(0, reference) <= bound.max(1)",
        "walk",
    ),
    Fault("one deviation too many is claimed", "walk.rs", ".checked_sub(1)", ".checked_sub(0)", "walk"),
    Fault(
        "the walk goes by one reference only",
        "explore.rs",
        "[0, self.nothing_kept][reference]",
        "[0, self.nothing_kept][reference / 2]",
        "walk",
    ),
    Fault(
        "a sample that is covered is run and counted again",
        "walk.rs",
        "        self.slots[self.end] == Slot::Open\n    }",
        "        aim == Aim::Random || self.slots[self.end] == Slot::Open\n    }",
        "walk",
    ),
    Fault(
        "a sample too many is drawn",
        "walk.rs",
        "self.samples < self.samples_max",
        "self.samples <= self.samples_max",
        "walk",
    ),
    Fault(
        "a sample is another state each time that it is asked",
        "walk.rs",
        "Aim::Random => drawn(self.seed, self.samples, component, options),",
        "Aim::Random => drawn(self.seed, self.samples + self.path.len() as u64, component, options),",
        "walk",
    ),
    Fault(
        "samples follow contents, not crash states",
        "walk.rs",
        "below(&options.weights.iter().sum(), &mut random)",
        "options.weights[..random.usize(0..options.weights.len())].iter().sum::<BigUint>()",
        "walk",
    ),
    Fault(
        "the first crash states are drawn more often",
        "walk.rs",
        "if drawn < *bound {\n            return drawn;",
        "if bits > 0 {\n            return drawn % bound;",
        "walk",
    ),
    Fault(
        "a damaged recording opens",
        "recording.rs",
        "if self.digest(body).as_slice() != &self.bytes[body..] {",
        "if body == 0 {",
        "recording",
    ),
    Fault(
        "a request's id may be used again",
        "recording.rs",
        "if self.requests.contains_key(&id) {",
        "if self.requests.get(&id) == Some(&true) {",
        "recording",
    ),
    Fault(
        "a write may end outside the disk",
        "recording.rs",
        "Some(end) if sectors > 0 && end <= disk_sectors => Ok(()),",
        "Some(_) if sectors > 0 && sector <= disk_sectors => Ok(()),",
        "recording",
    ),
    Fault("the memo looks at first bytes only", "memo.rs", "blake3::hash(bytes)", "blake3::hash(&bytes[..1])", "memo"),
    Fault(
        "the memo takes what was not read for what was read",
        "memo.rs",
        "contents.remove(place).map_or(Edge::Unread(at), |content| Edge::Content(at, content))",
        "match contents.remove(place) {\n                _ => Edge::Unread(at),\n            }",
        "memo",
    ),
    Fault("the memo mixes requests up", "memo.rs", "*self.roots.get(request)?", "*self.roots.values().next()?", "memo"),
    Fault("the memo decides too much", "memo.rs", "disk.awaited(place).then_some(place)", "Some(place)", "memo"),
]
