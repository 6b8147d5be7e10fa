"""Hunting on one kernel, stage by stage, until something is found that the stock kernel does not show."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.examination.crash_in_recovery import state_below
from postcrash.harness.examination.exploration import BOTH_DISKS
from postcrash.harness.hunting.causes import without_numbers
from postcrash.model import ExitCode, parse_workload
from postcrash.store.records import Finding
from postcrash.store.store import Store

POSTCRASH = Path(sys.executable).with_name("postcrash")
CORPUS = Path(__file__).resolve().parents[2] / "corpus" / "fstests"
VERDICTS = (ExitCode.HOLDS, ExitCode.VIOLATED, ExitCode.UNDECIDED)
"""The exit codes of a command that came to a verdict."""
POLL_S = 0.1
STOP_TIMEOUT_S = 60


@dataclass(frozen=True)
class Stage:
    """A hunt, or a run of the corpus: its name in the table, and the command with its options.

    `{stock}` in an option is the path of the stock kernel, `{corpus}` that of the corpus. After `limit_s` seconds the
    command is stopped.
    """

    name: str
    command: tuple[str, ...]
    limit_s: float = float("inf")

    @property
    def recoveries(self) -> tuple[str, ...]:
        """Those of its options that say how crash states are recovered and that `postcrash check` has too.

        `check` asks fsck without being told.
        """
        given = dict(zip(self.command, (*self.command[1:], ""), strict=True))
        return ("--depth", given["--depth"]) if "--depth" in given else ()


def recoveries_of(stage: Stage, finding: Finding) -> tuple[str, ...]:
    """The options with which `postcrash check` recovers crash states as the stage did when it made the finding."""
    is_within = state_below(finding) is not None
    return stage.recoveries or (("--depth", "2") if is_within else ())


def _hunt(*options: str, time: str = "3m") -> tuple[str, ...]:
    """A hunt. nilfs2 and f2fs would need hours, of which most goes into a few workloads' many states."""
    return ("hunt", "--ops", options[0], "--no-minimize", "--budget", "200", "--time", time, *options[1:])


COMPARISON = Stage("full, compared", _hunt("1", "--grammar", "full", "--expect", "kernel:{stock}"))
"""What a mutant is compared with the stock kernel by. No rule of the default level is asked."""
DEFAULT = Stage("default", ("hunt", "--no-minimize", "--time", "2m"))
"""What a developer runs who has two minutes."""
STAGES = (
    DEFAULT,
    Stage("full", _hunt("1", "--grammar", "full", time="6m")),
    Stage("full, 300 with fsck", _hunt("1", "--grammar", "full", "--fsck", "--workload-limit", "300")),
    Stage("ace, 100 with crash in recovery", _hunt("1", "--depth", "2", "--workload-limit", "100")),
    Stage("corpus", ("corpus", "{corpus}", "--budget", "200"), limit_s=180),
    Stage("ace, 300 of two", _hunt("2", "--workload-limit", "300")),
    COMPARISON,
)
"""In this order, on both disks. All but the last are at the default level."""
REBUILT = Stage("ace, compared", ("hunt", "--ops", "1", "--no-minimize", "--expect", "kernel:{stock}"))
"""What another build of the stock kernel is compared with it by, to the end."""
STOCK_BUDGET = "600,30s"
"""What the stock kernel has for a workload: three times what the hunt had."""
DISK_OPTIONS = tuple(() if held is None else ("--held", str(held)) for held in BOTH_DISKS)
"""The disks of a hunt, as options of `postcrash check`."""


@dataclass(frozen=True)
class MutantFinding:
    """What tells a mutant from the stock kernel."""

    checker: str
    message: str
    workload: str


@dataclass(frozen=True)
class StageOutcome:
    """What a stage came to: the first finding that counts, and what was run until then.

    key     digest of all that it depends on: the kernel, the tool, the stage
    groups  causes in words
    """

    key: str
    stage: str
    found: MutantFinding | None
    workloads: int
    seconds: float
    verdict: str
    groups: tuple[str, ...] = ()


Counts = Callable[[Finding], bool]


@dataclass(frozen=True)
class Trial:
    """A stage to be run: on this kernel and target, with its store in `folder`. `key` names it (`StageOutcome`)."""

    stage: Stage
    kernel: Path
    target: str
    folder: Path
    stock: Path
    key: str
    guests: int | None

    def command(self, result: Path) -> list[str | Path]:
        """The command line, which writes its JSON to `result`."""
        options = [option.format(stock=self.stock, corpus=CORPUS) for option in self.stage.command]
        command: list[str | Path] = [POSTCRASH, "--store", self.folder, *options, "--fresh", "--target", self.target]
        command += ["--kernel", self.kernel, "--json", result]
        return command + (["--guests", str(self.guests)] if self.guests else [])


def run_stage(trial: Trial, counts: Counts) -> StageOutcome:
    """Run it until a finding of which `counts` is true, or to the end.

    `workloads` and `seconds` are those until the finding came into the store, which is up to two seconds after it was
    made. Raises InfrastructureError if the command ends early for any other reason.
    """
    folder, name = trial.folder, trial.stage.name
    store = Store(folder)
    result = folder / "result.json"
    command = trial.command(result)
    started = time.monotonic()
    seen: set[str] = set()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        watch = _Watch(folder, started)
        try:
            while True:
                ended = process.poll() is not None
                seconds = round(time.monotonic() - started, 1)
                new = [finding for finding in store.findings() if finding.id not in seen]
                is_over = seconds > trial.stage.limit_s
                for finding in new:
                    seen.add(finding.id)
                    if counts(finding):
                        seconds, workloads = watch.sighting(finding.id)
                        checker, message = (_without(trial.stock, said) for said in (finding.checker, finding.message))
                        shown = MutantFinding(checker, message, _text(finding))
                        return StageOutcome(
                            trial.key, name, found=shown, workloads=workloads, seconds=seconds, verdict="violated"
                        )
                if ended:
                    break
                if is_over:
                    workloads = _workloads_of(store)
                    return StageOutcome(
                        trial.key, name, found=None, workloads=workloads, seconds=seconds, verdict="undecided"
                    )
                time.sleep(POLL_S)
        finally:
            watch.stop()
            _stop(process)
            store.close()
    if process.returncode not in VERDICTS:
        said = (folder / "log").read_text(errors="replace").strip().splitlines()[-5:]
        raise InfrastructureError(f"{' '.join(map(str, command))} fails with {process.returncode}: {' '.join(said)}")
    return _ended(trial, json.loads(result.read_text()), seconds)


class _Watch(threading.Thread):
    """Notes when each finding came into the store of a hunt, while the stock kernel is asked about earlier ones."""

    def __init__(self, folder: Path, started: float) -> None:
        super().__init__(daemon=True)
        self._store_folder, self._began = folder, started
        self._sightings: dict[str, tuple[float, int]] = {}
        self._is_over = threading.Event()
        self.start()

    def run(self) -> None:
        """Look until `stop` is called."""
        store = Store(self._store_folder)
        while not self._is_over.is_set():
            for finding in store.findings():
                if finding.id not in self._sightings:
                    seconds = round(time.monotonic() - self._began, 1)
                    self._sightings[finding.id] = seconds, _workloads_of(store)
            self._is_over.wait(POLL_S)
        store.close()

    def sighting(self, finding: str) -> tuple[float, int]:
        """After how many seconds the finding came, and how many workloads had been run. Waits until it is noted."""
        while finding not in self._sightings:
            time.sleep(POLL_S)
        return self._sightings[finding]

    def stop(self) -> None:
        """Stop looking."""
        self._is_over.set()
        self.join()


def _ended(trial: Trial, told: dict[str, Any], seconds: float) -> StageOutcome:
    """What the JSON of a hunt or of a corpus comes to, when nothing counted."""
    if "groups" in told:
        run, found = told["workloads"]["run"], [(group["checker"], group["message"]) for group in told["groups"]]
    else:
        (column,) = told["kernels"]
        run = len(column["results"])
        found = [(each["judge"], each["message"]) for result in column["results"] for each in result["objections"]]
    return StageOutcome(
        trial.key,
        trial.stage.name,
        found=None,
        workloads=run,
        seconds=seconds,
        verdict=told["verdict"],
        groups=tuple(f"{judge}: {message}" for judge, message in found),
    )


def _workloads_of(store: Store) -> int:
    """How many workloads were run, if each was run on every disk."""
    return -(-sum(1 for _ in store.runs()) // len(BOTH_DISKS))


Words = tuple[str, str]
"""A judge's name, and what it says without its numbers."""


class StockKernel:
    """Tells whether a finding shows on the stock kernel too, by running its workload there."""

    def __init__(self, kernel: Path, folder: Path) -> None:
        self._kernel, self._folder = kernel, folder
        self._objected: dict[tuple[str, str, tuple[str, ...]], set[Words]] = {}

    def shows(self, finding: Finding, target: str, recoveries: tuple[str, ...]) -> bool:
        """Whether the same judge objects to the same workload, in the same words, on the stock kernel, on either disk.

        `recoveries` are those of the stage that made the finding. Each disk has one recording, so a False is no proof.
        """
        words = (finding.checker, without_numbers(finding.message))
        return any(words in self._known(finding, target, (*recoveries, *disk)) for disk in DISK_OPTIONS)

    def _known(self, finding: Finding, target: str, options: tuple[str, ...]) -> set[Words]:
        asked = (target, _text(finding), options)
        if asked not in self._objected:
            self._objected[asked] = self._objects(finding, target, options)
        return self._objected[asked]

    def _objects(self, finding: Finding, target: str, options: tuple[str, ...]) -> set[Words]:
        """What judges say against the finding's workload."""
        self._folder.mkdir(parents=True, exist_ok=True)
        workload = self._folder / "workload.ops"
        workload.write_text(_text(finding))
        command: list[str | Path] = [POSTCRASH, "--store", self._folder / "store", "check", workload]
        command += ["--target", target, "--kernel", self._kernel, "--expect", "practice"]
        command += ["--budget", STOCK_BUDGET, *options, "--json", "-"]
        found = json_of(command, self._folder)["findings"]
        return {(each["checker"], without_numbers(each["message"])) for each in found}


def json_of(command: Sequence[str | Path], folder: Path) -> dict[str, Any]:
    """What a command that ends in a verdict writes as JSON to its standard output, run in the folder.

    Raises InfrastructureError if it ends otherwise.
    """
    ran = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if ran.returncode not in VERDICTS:
        said = ran.stderr.strip().splitlines()[-1:]
        raise InfrastructureError(f"{' '.join(map(str, command))} fails with {ran.returncode}: {' '.join(said)}")
    told: dict[str, Any] = json.loads(ran.stdout)
    return told


def _without(kernel: Path, said: str) -> str:
    """What was said of the kernel in this place, without the place."""
    return said.replace(str(kernel), kernel.name)


def _text(finding: Finding) -> str:
    return parse_workload(finding.workload_text, finding.workload_name).without_tail().to_text()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a command as Ctrl-C does, so that its guests end too. SIGINT is ignored in the background."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
