//! Finds file contents on the host instead of in the guest.
//!
//! If a file system does not check its data, reading the data changes nothing that the kernel does. So a block of data
//! in flight needs no decision: it is one of several contents. The agent reports where plain data lies, and this module
//! looks up its bytes. Content that no decision has settled becomes a *choice*: `{"start", "end", "component",
//! "versions"}` among the file's segments, with the segments of each version of the component. One recovery then stands
//! for all of these versions.

use std::collections::HashMap;

use postcrash_core::choice::by_component;
use postcrash_core::explore::Explorer;
use postcrash_core::space::Space;
use postcrash_wire::content::{joined, segments_of};
use postcrash_wire::units::SECTOR_BYTES;
use serde_json::{json, Value};

use crate::disk::overlay::Overlay;

/// The agent's `report` with the contents of its files, which lie in `space` and, over it, in `overlay`. A component is
/// decided if contents depend on it in a way that no choice can express.
pub fn resolved(space: Space<'_>, overlay: &Overlay, explorer: &mut dyn Explorer, report: &[u8]) -> Vec<u8> {
    let Ok(observation) = serde_json::from_slice::<Value>(report) else { return report.to_vec() };
    let as_bytes = observation.get("bytes").and_then(Value::as_bool) == Some(true);
    loop {
        let chosen = by_component(&explorer.choices());
        let mut resolved = observation.clone();
        match (Resolver { space, overlay, chosen, as_bytes }).resolve(&mut resolved) {
            Ok(()) => return serde_json::to_vec(&resolved).expect("it was JSON"),
            Err(EntangledComponent(component)) => {
                explorer.choose(component, &|| space.options(component));
            }
        };
    }
}

/// The places of the disk where the contents of a report's files are looked up: first byte and end.
pub fn looked_up(report: &[u8]) -> Vec<(u64, u64)> {
    let observation: Value = serde_json::from_slice(report).unwrap_or_default();
    let tree = observation.get("tree").and_then(Value::as_array).into_iter().flatten();
    let all = tree.filter_map(|entry| entry.get("extents")).flat_map(extents);
    all.map(|(_, physical, length)| (physical, physical.saturating_add(length))).collect()
}

/// Where a file's bytes lie: offset in the file, position on the disk, length.
fn extents(reported: &Value) -> Vec<(u64, u64, u64)> {
    serde_json::from_value(reported.clone()).unwrap_or_default()
}

/// File bytes from one place.
enum FileRun {
    Bytes(Vec<u8>),
    /// Sectors of an undecided component: the first sector on the disk, and how many there are.
    Choice {
        component: u32,
        sector: u64,
        sectors: u64,
    },
}

/// Contents depend on this component together with others, so it must be decided.
struct EntangledComponent(u32);

/// A crash state as a guest left it: what was decided, and what the guest wrote.
struct Resolver<'a> {
    space: Space<'a>,
    overlay: &'a Overlay,
    /// Version of each component that was decided.
    chosen: HashMap<u32, u32>,
    /// Contents are reported byte by byte.
    as_bytes: bool,
}

impl Resolver<'_> {
    /// Put segments in place of the extents of every file of an observation.
    fn resolve(&self, observation: &mut Value) -> Result<(), EntangledComponent> {
        let Some(tree) = observation.get_mut("tree").and_then(Value::as_array_mut) else { return Ok(()) };
        for entry in tree.iter_mut().filter_map(Value::as_object_mut) {
            let size = entry.get("size").and_then(Value::as_u64).unwrap_or(0);
            if let Some(extents) = entry.remove("extents") {
                entry.insert("segments".into(), self.file(&self::extents(&extents), size)?.into());
            }
        }
        Ok(())
    }

    /// Segments and choices of a file of `size` bytes.
    fn file(&self, extents: &[(u64, u64, u64)], size: u64) -> Result<Vec<Value>, EntangledComponent> {
        let mut shown = Vec::new();
        let mut at = 0;
        for run in self.runs(extents, size) {
            let end = match &run {
                FileRun::Bytes(bytes) => size.min(at + bytes.len() as u64),
                FileRun::Choice { sectors, .. } => size.min(at + sectors * SECTOR_BYTES as u64),
            };
            match run {
                FileRun::Bytes(bytes) => append(&mut shown, self.segments(&bytes[..(end - at) as usize], at)),
                FileRun::Choice { component, sector, sectors } => {
                    self.append_choice(&mut shown, component, sector, sectors, at, end)?;
                }
            }
            at = end;
        }
        Ok(shown)
    }

    /// The file's bytes, sector by sector. Sectors from one place are joined.
    fn runs(&self, extents: &[(u64, u64, u64)], size: u64) -> Vec<FileRun> {
        let mut runs: Vec<FileRun> = Vec::new();
        let mut extents = extents.iter().peekable();
        let mut offset = 0;
        while offset < size {
            while extents.peek().is_some_and(|(logical, _, length)| logical + length <= offset) {
                extents.next();
            }
            let sector = match extents.peek() {
                Some((logical, physical, _)) if *logical <= offset => {
                    Some((physical + offset - logical) / SECTOR_BYTES as u64)
                }
                _ => None,
            };
            self.push(&mut runs, sector);
            offset += SECTOR_BYTES as u64;
        }
        runs
    }

    fn push(&self, runs: &mut Vec<FileRun>, sector: Option<u64>) {
        let mut bytes = [0; SECTOR_BYTES];
        let Some(sector) = sector else { return push_bytes(runs, &bytes) };
        let open = self.space.open(sector, &|component| self.chosen.get(&component).copied());
        match (open, runs.last_mut()) {
            _ if self.overlay.has(sector) => self.overlay.read(sector, &mut bytes, &mut |_, _| {}),
            (None, _) => self.space.read(sector, &mut bytes, &mut |component| self.chosen[&component]),
            (Some(now), Some(FileRun::Choice { component, sector: start, sectors }))
                if *component == now && *start + *sectors == sector =>
            {
                *sectors += 1;
                return;
            }
            (Some(component), _) => {
                runs.push(FileRun::Choice { component, sector, sectors: 1 });
                return;
            }
        }
        push_bytes(runs, &bytes);
    }

    fn append_choice(
        &self,
        shown: &mut Vec<Value>,
        component: u32,
        sector: u64,
        sectors: u64,
        at: u64,
        end: u64,
    ) -> Result<(), EntangledComponent> {
        let mut bytes = vec![0; sectors as usize * SECTOR_BYTES];
        let mut contents: Vec<Vec<u8>> = Vec::new();
        for version in 0..self.space.options(component).weights.len() as u32 {
            let chosen = |c: u32| if c == component { Some(version) } else { self.chosen.get(&c).copied() };
            if (sector..sector + sectors).any(|s| self.space.open(s, &chosen).is_some()) {
                return Err(EntangledComponent(component));
            }
            self.space.read(sector, &mut bytes, &mut |c| chosen(c).expect("nothing else is open there"));
            contents.push(bytes[..(end - at) as usize].to_vec());
        }
        if contents.iter().all(|content| content == &contents[0]) {
            append(shown, self.segments(&contents[0], at));
            return Ok(());
        }
        let versions: Vec<Vec<Value>> = contents.iter().map(|content| self.segments(content, at)).collect();
        shown.push(json!({"start": at, "end": end, "component": component, "versions": versions}));
        Ok(())
    }

    /// Segments of `content`, which stands at `offset` of its file.
    fn segments(&self, content: &[u8], offset: u64) -> Vec<Value> {
        segments_of(content, offset, self.as_bytes).into_iter().map(|segment| json!(segment)).collect()
    }
}

fn push_bytes(runs: &mut Vec<FileRun>, bytes: &[u8]) {
    match runs.last_mut() {
        Some(FileRun::Bytes(known)) => known.extend_from_slice(bytes),
        _ => runs.push(FileRun::Bytes(bytes.to_vec())),
    }
}

/// Add segments, the first one joined to the last one there if they have one source together.
fn append(shown: &mut Vec<Value>, more: Vec<Value>) {
    for segment in more {
        let last = shown.last_mut().filter(|last| last.is_array() && segment.is_array());
        let source = last.as_ref().and_then(|last| joined(last[2].as_str()?, segment[2].as_str()?));
        match (last, source) {
            (Some(last), Some(source)) => *last = json!([last[0], segment[1], source]),
            _ => shown.push(segment),
        }
    }
}

/// Replace each choice of the observation by the version that `chosen` names.
pub fn settle(observation: &mut Value, chosen: &HashMap<u32, u32>) {
    let Some(tree) = observation.get_mut("tree").and_then(Value::as_array_mut) else { return };
    for entry in tree.iter_mut() {
        let Some(segments) = entry.get_mut("segments").and_then(Value::as_array_mut) else { continue };
        let mut settled = Vec::new();
        for segment in segments.drain(..) {
            let component = segment.get("component").and_then(Value::as_u64).map(|c| c as u32);
            match component.and_then(|component| chosen.get(&component)) {
                Some(&version) => {
                    let version = segment["versions"][version as usize].as_array().cloned();
                    append(&mut settled, version.unwrap_or_default());
                }
                None => append(&mut settled, vec![segment]),
            }
        }
        *segments = settled;
    }
}
