"""Faults planted in a copy of the crash disk: with real guests, brute force and `certify` must notice each of them."""

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from postcrash.harness.budget import Budget
from postcrash.harness.errors import HarnessError
from postcrash.harness.examination.certificate import Certificate
from postcrash.harness.examination.certify import certify
from postcrash.harness.guests.machine import Machine, MachineSettings

from ..planting import cargo, environment, make_workspace
from .conftest import RecordedWorkload, intervals_of, overwriting, recording_in

CRATES = ("model/wire", "crashgen/core", "recorders/crashdisk")
OVERWRITE = (
    overwriting()
    .fdatasync("A")  # this interval differs from the next one in plain data only
    .write("A", 8192, 4096)
    .fsync("A")
    .creat("B")
    .sync()
    .build("overwrite")
)
SAMPLES = 60


@dataclass(frozen=True)
class Fault:
    why: str
    file: str
    old: str
    new: str


FAULTS = [
    Fault(
        "a read that decides is missing from the footprint",
        "disk/mod.rs",
        "                None => explorer.choose(component, &|| space.options(component)),\n",
        "                None if component % 2 == 1 => explorer.chosen(component).unwrap_or(0),\n"
        "                None => explorer.choose(component, &|| space.options(component)),\n",
    ),
    Fault(
        "an open block of a file counts as settled",
        "disk/contents.rs",
        "if contents.iter().all(|content| content == &contents[0]) {",
        "if !contents.is_empty() {",
    ),
    Fault(
        "the versions of an open block are mixed up",
        "disk/contents.rs",
        "        for version in 0..self.space.options(component).weights.len() as u32 {",
        "        for version in (0..self.space.options(component).weights.len() as u32).rev() {",
    ),
    Fault(
        "an outcome counts its first execution only", "jobs/explore.rs", "known.states += states;", "let _ = states;"
    ),
    Fault(
        "different outcomes are joined",
        "jobs/explore.rs",
        "Ok(bytes) => Sha256::digest(bytes).to_vec(),",
        "Ok(bytes) => Sha256::digest([bytes.len() as u8 & 1]).to_vec(),",
    ),
    Fault(
        "an execution is kept with the choices of the one before",
        "jobs/explore.rs",
        "        self.executions.push((choices.clone(), number));",
        "        let before = self.executions.last().map_or(choices.clone(), |last| last.0.clone());\n"
        "        self.executions.push((before, number));",
    ),
    Fault(
        "what is remembered leaves out some of what was read",
        "disk/memo.rs",
        "if self.known.insert(place) {",
        "if self.reads.len() < 8 && self.known.insert(place) {",
    ),
    Fault(
        "files whose contents are looked up are remembered with the contents of the first state",
        "disk/memo.rs",
        "        Some(resolved(space, &answer.written, state.explorer, &answer.report))\n",
        "        static FIRST: std::sync::Mutex<Vec<(Vec<u8>, Vec<u8>)>> = std::sync::Mutex::new(Vec::new());\n"
        '        let mut first = FIRST.lock().expect("unpoisoned");\n'
        "        if let Some(known) = first.iter().find(|known| known.0 == answer.report) {\n"
        "            return Some(known.1.clone());\n"
        "        }\n"
        "        let shown = resolved(space, &answer.written, state.explorer, &answer.report);\n"
        "        first.push((answer.report.clone(), shown.clone()));\n"
        "        Some(shown)\n",
    ),
]


@dataclass(frozen=True)
class Copy:
    """A workspace of its own, with a copy of the crash disk and of the crates that it needs."""

    folder: Path

    def source(self, file: str) -> Path:
        return self.folder / "recorders/crashdisk/src" / file

    def build(self) -> Path:
        command = cargo("build", "--package", "crashdisk")
        subprocess.run(command, cwd=self.folder, env=environment(self.folder), check=True, timeout=600)
        return self.folder / "target/release/crashdisk"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    folder = tmp_path_factory.mktemp("crashdisk")
    make_workspace(folder, CRATES, CRATES, opt_level=1)
    yield Copy(folder)
    shutil.rmtree(folder)


def outcomes(machine: Machine, recorded: RecordedWorkload, brute_force: bool) -> list[Counter[str]]:
    """Crash states by observation, for each crash interval. The kernel reads every file."""
    events = machine.explore(recorded.source, recorded.recover(), Budget(20_000, 300), brute_force=brute_force)
    return [
        Counter({json.dumps(o.observation, sort_keys=True): o.states for o in interval.outcomes})
        for interval in sorted(intervals_of(list(events)), key=lambda interval: interval.index)
    ]


def differences(found: list[Counter[str]], truth: list[Counter[str]]) -> str:
    """For each crash interval that differs, the number of states, and the observations that only one of them has."""
    told = [f"{len(found)} and {len(truth)} intervals"] if len(found) != len(truth) else []
    for number, (own, other) in enumerate(zip(found, truth, strict=False)):
        if own != other:
            more, less = (dict((one - two).most_common(2)) for one, two in ((own, other), (other, own)))
            told.append(f"interval {number}, {own.total()} and {other.total()} states: {more} in place of {less}")
    return "; ".join(told)


def objection(program: Path, settings: MachineSettings, recorded: RecordedWorkload, truth: list[Counter[str]]) -> str:
    """An objection to a crash disk. Empty if there is none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("postcrash.harness.guests.machine.find_binary", lambda _: program)
        try:
            with Machine(settings) as machine:
                found = outcomes(machine, recorded, brute_force=False)
                if found != truth:
                    return f"it does not find what brute force finds: {differences(found, truth)}"
                recover = recorded.target.recovery(walk=True, fsck=False)
                events = list(machine.explore(recorded.source, recover, Budget(20_000, 300)))
                certificates = [Certificate.of(report, recover) for report in intervals_of(events)]
                trials = list(certify(machine, recorded.source, certificates, SAMPLES, seed=1, is_whole=True))
                return "" if all(trial.confirmed for trial in trials) else "a prediction is wrong"
        except (HarnessError, AssertionError, IndexError, KeyError, ValueError) as error:
            return f"it fails: {error!r}"


@pytest.fixture(scope="module")
def recorded(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> RecordedWorkload:
    return recording_in(tmp_path_factory.mktemp("planted"), machine)("ext4-current", OVERWRITE)


@pytest.fixture(scope="module")
def by_brute_force(machine: Machine, recorded: RecordedWorkload) -> list[Counter[str]]:
    return outcomes(machine, recorded, brute_force=True)


@pytest.mark.parametrize("fault", [None, *FAULTS], ids=lambda fault: fault.why if fault else "no fault")
def test_a_planted_fault_is_noticed(
    settings: MachineSettings,
    recorded: RecordedWorkload,
    by_brute_force: list[Counter[str]],
    copy: Copy,
    fault: Fault | None,
) -> None:
    if fault is None:
        assert objection(copy.build(), settings, recorded, by_brute_force) == ""
        return
    source = copy.source(fault.file)
    original = source.read_text()
    assert original.count(fault.old) == 1, f"{fault.file} must hold the old text once, to plant a fault in its place"
    source.write_text(original.replace(fault.old, fault.new))
    try:
        assert objection(copy.build(), settings, recorded, by_brute_force), f"nobody notices that {fault.why}"
    finally:
        source.write_text(original)
