"""Faults planted in a copy of crashgen/core: its tests must fail for each of them.

A fault whose old text no longer stands in the source fails too: then it has to be planted anew. Only the test program
that is to notice a fault is built and run, in cargo's quick profile, so that each takes a few seconds.
"""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CRATE = Path("crashgen/core")
# Building and running one test program takes a few seconds; a fault may make it run for ever.
TIMEOUT_S = 90
# Random logs for each test of brute_force.rs; every fault that it is to notice shows within far fewer.
RANDOM_LOGS = 300
RUNS_FOR_EVER = "the test program does not end"


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
        """            if self.durable && !self.made_stable(&events[self.at]).is_empty() {
                if let Some(interval) = self.next_stage() {
                    return Some(interval);
                }
            }
            self.apply(&events[self.at]);
            self.at += 1;
            self.stages_done = 0;
""",
        """            let edge = self.durable && !self.made_stable(&events[self.at]).is_empty();
            self.apply(&events[self.at]);
            self.at += 1;
            self.stages_done = 0;
            if edge {
                return self.next_stage();
            }
""",
    ),
    Fault(
        "a flush covers all that was submitted",
        "interval.rs",
        "self.in_flight.iter().filter(|w| w.completed.is_some()).map(|w| w.id).collect()",
        "self.in_flight.iter().map(|w| w.id).collect()",
    ),
    Fault(
        "a flush covers what completes before it does",
        "interval.rs",
        "let covered = self.covered(id);\n        let fua",
        "let covered = if self.covered(id).is_empty() { Vec::new() } else { self.completed() };\n        let fua",
    ),
    Fault(
        "a flush does nothing",
        "interval.rs",
        "Event::Flush { id } => {\n                self.flushes.insert(id, self.completed());",
        "Event::Flush { .. } => {",
    ),
    Fault(
        "a flush counts once it is submitted",
        "interval.rs",
        "Event::Flush { id } => {\n                self.flushes.insert(id, self.completed());",
        "Event::Flush { .. } => {\n                let ids = self.completed();\n                self.stabilise(&ids);",
    ),
    Fault("FUA does nothing", "interval.rs", "(fua && w.fua && w.id == id)", "(false && fua && w.fua && w.id == id)"),
    Fault(
        "FUA is a barrier",
        "interval.rs",
        "let stable = |w: &&InFlight| (fua && w.fua && w.id == id)",
        "let fua = fua && self.in_flight.iter().any(|w| w.fua && w.id == id);\n"
        "        let stable = |w: &&InFlight| (fua && (w.completed.is_some() || w.id == id))",
    ),
    Fault("PREFLUSH does nothing", "interval.rs", "if preflush {", "if false && preflush {"),
    Fault(
        "a PREFLUSH write does not wait for its flush",
        "interval.rs",
        "!covered.contains(&write.id) && started(write)",
        "!covered.contains(&write.id) && (started(write) || true)",
    ),
    Fault(
        "a PREFLUSH write starts only when it completes",
        "interval.rs",
        "stages.push(covered.to_vec());",
        "let _ = covered;",
    ),
    Fault(
        "a discard does nothing",
        "interval.rs",
        "self.submit(id, sector, sectors, Source::zeroed(order), false);",
        "let _ = (id, sector, sectors, Source::zeroed(order));",
    ),
    Fault(
        "a discard is stable at once",
        "interval.rs",
        "self.submit(id, sector, sectors, Source::zeroed(order), false);",
        "self.submit(id, sector, sectors, Source::zeroed(order), false);\n                self.stabilise(&[id]);",
    ),
    Fault(
        "the earliest write shows, not the latest",
        "interval.rs",
        "if source > stable[at] {",
        "if source > stable[at] && sources[at] <= stable[at] {",
    ),
    Fault(
        "an older write shows over a stable one",
        "interval.rs",
        "if source > stable[at] {",
        "if source >= Source::BASE {",
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
        """        if let Some(write) = self.in_flight.iter_mut().find(|w| w.id == id) {
            write.completed = Some(self.at);
        }
""",
        """        if let Some(at) = self.in_flight.iter().position(|w| w.id == id) {
            let mut write = self.in_flight.remove(at);
            write.completed = Some(self.at);
            self.in_flight.push(write);
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
        "let ids = self.completed();\n                self.stabilise(&ids);",
        "",
    ),
    Fault("crashes in the set-up are looked at", "interval.rs", "durable: false,", "durable: true,"),
    Fault("a state counts twice", "interval.rs", "        count * free\n", "        count * free * 2u32\n"),
    Fault("a component counts as one piece", "interval.rs", "free /= &component.states;", "free /= 2u32;"),
    Fault(
        "the contents of a later version are never shown",
        "view.rs",
        "component.source(choose(index), s)",
        "component.source(choose(index).min(1), s)",
    ),
    Fault("equal contents count once", "component.rs", "known.weight += version.weight;", ""),
    Fault(
        "equal contents stay apart",
        "component.rs",
        "find(|&known| self.bytes(sector, known) == bytes);",
        "find(|&known| self.bytes(sector, known).is_empty());",
    ),
    Fault(
        "a component ends where its last write ends",
        "component.rs",
        "reach = reach.max(piece.end());",
        "reach = piece.end();",
        "brute_force",
    ),
    Fault(
        "a content is explained by more losses than it needs",
        "component.rs",
        "if version.lost.len() < known.lost.len() {",
        "if version.lost.len() > known.lost.len() {",
        "brute_force",
    ),
    Fault(
        "a write that is lost whole counts as torn",
        "interval.rs",
        "(1..*all).contains(lost)",
        "(1..=*all).contains(lost)",
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
        "writes.sort_by_key(|write| write.completed);",
        "",
    ),
    Fault(
        "a replay has what never completed",
        "interval.rs",
        "writes.retain(|write| write.completed.is_some());",
        "writes.sort_by_key(|write| write.completed.is_none());",
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
        "ordered || ids.contains(&write.id)",
        "ids.contains(&write.id)",
    ),
    Fault(
        "an ordered drive waits for the flush of a PREFLUSH write",
        "interval.rs",
        "filter(|write| ordered || open(write))",
        "filter(|write| open(write))",
    ),
    Fault(
        "a PREFLUSH write on an ordered drive has stages",
        "interval.rs",
        "if self.model.order() != Order::Free {\n            return stages;",
        "if self.model.order() == Order::Completion {\n            return stages;",
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
        "vec![Ok(in_order(&pieces, &content))], BigUint::from(pieces.len() + 1)",
        "vec![Ok(in_order(&pieces, &content))], BigUint::one() << pieces.len()",
    ),
    Fault("equal prefixes count once", "history.rs", "self.disks[disk].count += 1;", ""),
    Fault(
        "prefixes with another one in between stay apart",
        "history.rs",
        "find(|&disk| self.is_same(",
        "find(|&disk| disk + 1 == self.disks.len() && self.is_same(",
    ),
    Fault(
        "a prefix shows the piece behind it",
        "history.rs",
        "partition_point(|change| change.0 <= kept)",
        "partition_point(|change| change.0 <= kept + 1)",
    ),
    Fault("the empty prefix is left out", "history.rs", "    builder.count(0);\n", ""),
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
        "(*kept..self.pieces).collect()",
        "(0..*kept).collect()",
        "brute_force",
    ),
    Fault(
        "the walk leaves out each last version",
        "explore.rs",
        "if last.version < last.versions {",
        "if last.version + 1 < last.versions {",
        "brute_force",
    ),
    Fault(
        "the walk ends at the first decision that is done",
        "explore.rs",
        "            self.path.pop();\n",
        "            return false;\n",
        "brute_force",
    ),
    Fault(
        "the walk starts again from the top",
        "explore.rs",
        "            self.path.pop();\n",
        "            self.path.clear();\n",
        "brute_force",
    ),
    Fault(
        "a component read again is decided again",
        "explore.rs",
        "            return known;\n        }\n        self.path.push(",
        "            assert!(known < versions);\n        }\n        self.path.push(",
        "brute_force",
    ),
    Fault(
        "a damaged recording opens",
        "recording.rs",
        "if Sha256::digest(&self.bytes[..body]).as_slice() != &self.bytes[body..] {",
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
]


@dataclass(frozen=True)
class Copy:
    """A workspace of its own that holds nothing but a copy of the crate."""

    folder: Path

    def source(self, file: str) -> Path:
        return self.folder / CRATE / "src" / file

    def test(self, program: str) -> tuple[bool, str]:
        """Whether the tests of `program` pass; what cargo said. A crate that does not build passes nothing."""
        command = ["bash", "-c", f'source "{ROOT}/tools/lib.sh" && use_cargo && exec "$@"', "bash"]
        command += ["cargo", "test", "--offline", "--quiet", "--test", program]
        environment = {
            **os.environ,
            "CARGO_TARGET_DIR": str(self.folder / "target"),
            "PROPTEST_CASES": str(RANDOM_LOGS),
            "PROPTEST_MAX_SHRINK_ITERS": "0",
            "RUST_BACKTRACE": "0",
        }
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=TIMEOUT_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return False, f"{process.communicate()[0]}\n{RUNS_FOR_EVER}"
        return process.returncode == 0, output


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    folder = tmp_path_factory.mktemp("core")
    shutil.copytree(ROOT / CRATE, folder / CRATE)
    shutil.copy(ROOT / "Cargo.lock", folder)
    manifest = (ROOT / "Cargo.toml").read_text()
    members, count = re.subn(r"^members = .*$", f'members = ["{CRATE}"]', manifest, flags=re.MULTILINE)
    assert count == 1
    (folder / "Cargo.toml").write_text(members + "\n[profile.dev]\ndebug = 0\nincremental = true\n")
    yield Copy(folder)
    shutil.rmtree(folder)


@pytest.mark.parametrize("program", sorted({fault.noticed_by for fault in FAULTS}))
def test_without_a_fault_the_tests_pass(copy: Copy, program: str) -> None:
    passed, output = copy.test(program)
    assert passed, output


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.why)
def test_the_fault_is_noticed(copy: Copy, fault: Fault) -> None:
    source = copy.source(fault.file)
    original = source.read_text()
    assert original.count(fault.old) == 1, f"{fault.file} must hold the old text once, to plant a fault in its place"
    source.write_text(original.replace(fault.old, fault.new))
    try:
        passed, output = copy.test(fault.noticed_by)
    finally:
        source.write_text(original)
    assert not passed, f"{fault.noticed_by}.rs does not notice that {fault.why}"
    assert "test result: FAILED" in output or output.endswith(RUNS_FOR_EVER), output
