"""Faults planted in a copy of crashgen/core: its tests must fail for each of them.

A fault whose old text no longer stands in the source fails too: then it has to be planted anew. Only the test program
that is to notice a fault is built and run, in cargo's quick profile, so that each takes a few seconds.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CRATE = Path("crashgen/core")
TIMEOUT_S = 300
# Random logs for each test of brute_force.rs; every fault that it is to notice shows within far fewer.
RANDOM_LOGS = 300


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
        "self.in_flight.iter().filter(|w| w.completed).map(|w| w.id).collect()",
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
        "(fua && w.fua && w.id == id)",
        "(fua && (w.completed || w.id == id) && self.in_flight.iter().any(|f| f.fua && f.id == id))",
    ),
    Fault("PREFLUSH does nothing", "interval.rs", "if preflush {", "if false && preflush {"),
    Fault(
        "a PREFLUSH write does not wait for its flush",
        "interval.rs",
        ".filter(|write| !covered.contains(&write.id)).filter(started);",
        ".filter(|write| !covered.contains(&write.id)).filter(|write| started(write) || true);",
    ),
    Fault(
        "a PREFLUSH write starts only when it completes",
        "interval.rs",
        "stages.push(covered.to_vec());",
        "stages[0].clear();",
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
        "*known = (*known).max(piece.source.sector(i));",
        "*known = piece.source.sector(i);",
    ),
    Fault(
        "writes stand in the order of their completion",
        "interval.rs",
        """        if let Some(write) = self.in_flight.iter_mut().find(|w| w.id == id) {
            write.completed = true;
        }
""",
        """        if let Some(at) = self.in_flight.iter().position(|w| w.id == id) {
            let mut write = self.in_flight.remove(at);
            write.completed = true;
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
    Fault("a state counts twice", "interval.rs", "count << free", "count << (free + 1)"),
    Fault("a component counts as one piece", "interval.rs", "free -= component.pieces as usize;", "free -= 1;"),
    Fault(
        "the contents of a later version are never shown",
        "view.rs",
        "component.versions[choose(index) as usize]",
        "component.versions[choose(index).min(1) as usize]",
    ),
    Fault("equal contents count once", "component.rs", "known.weight += version.weight;", ""),
    Fault(
        "equal contents stay apart",
        "component.rs",
        "let same = self.known[at].values().copied().find(|&known| self.bytes(at, known) == bytes);",
        "let same = self.known[at].values().copied().find(|&known| known == source && bytes.is_empty());",
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
        "a drive without barriers honours flushes",
        "device.rs",
        "fn honours_flush(&self) -> bool {\n        false",
        "fn honours_flush(&self) -> bool {\n        true",
    ),
    Fault(
        "a drive without barriers honours FUA",
        "device.rs",
        "fn honours_fua(&self) -> bool {\n        false",
        "fn honours_fua(&self) -> bool {\n        true",
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
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
        return done.returncode == 0, done.stdout


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
    assert "test result: FAILED" in output, output
