"""Hunting on one kernel, stage by stage, until something is found that the stock kernel does not show."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.examination.exploration import BOTH_DISKS
from postcrash.harness.hunting.causes import cause_of
from postcrash.model import ExitCode, parse_workload
from postcrash.reports.store.records import Finding
from postcrash.reports.store.store import Store

POSTCRASH = Path(sys.executable).with_name("postcrash")
POLL_S = 0.1
STOP_TIMEOUT_S = 60


@dataclass(frozen=True)
class Stage:
    """A hunt: its name in the table, and the options of `postcrash hunt`."""

    name: str
    hunt: tuple[str, ...]


STAGES = (
    Stage("full", ("--ops", "1", "--grammar", "full")),
    Stage("ace, 300 of two", ("--ops", "2", "--workload-limit", "300")),
    Stage("full, 300 with fsck", ("--ops", "1", "--grammar", "full", "--fsck", "--workload-limit", "300")),
    Stage("ace, 100 with crash in recovery", ("--ops", "1", "--depth", "2", "--workload-limit", "100")),
)
"""In this order. Every hunt is at the default level, and on both disks."""
STAGE_LIMITS = ("--budget", "200", "--time", "3m")
"""What bounds each hunt: nilfs2 and f2fs would need hours, of which most goes into a few workloads' many states."""
STOCK_BUDGET = "2000,60s"
"""What the stock kernel has for a workload: ten times what the hunt had."""
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
    """What a stage came to: the first finding that counts, and what was run until then. `groups`: causes in words."""

    stage: str
    found: MutantFinding | None
    workloads: int
    seconds: float
    verdict: str
    groups: tuple[str, ...] = ()


Counts = Callable[[Finding], bool]


def run_stage(
    kernel: Path, target: str, stage: Stage, folder: Path, guests: int | None, counts: Counts
) -> StageOutcome:
    """Hunt on `kernel` until a finding of which `counts` is true, or to the end. The store is in `folder`.

    `workloads` and `seconds` are those until the finding came into the store, which is up to two seconds after it was
    made. Raises InfrastructureError if the hunt ends early for any other reason.
    """
    store = Store(folder)
    result = folder / "hunt.json"
    command: list[str | Path] = [
        POSTCRASH,
        "--store",
        folder,
        "hunt",
        "--target",
        target,
        "--kernel",
        kernel,
        "--no-minimize",
        "--fresh",
    ]
    command += [*stage.hunt, *STAGE_LIMITS, "--json", result, *(("--guests", str(guests)) if guests else ())]
    started = time.monotonic()
    seen: set[str] = set()
    with (folder / "hunt.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            while True:
                ended = process.poll() is not None
                seconds = round(time.monotonic() - started, 1)
                new = [finding for finding in store.findings() if finding.id not in seen]
                workloads = -(-sum(1 for _ in store.runs()) // len(BOTH_DISKS)) if new else 0
                for finding in new:
                    seen.add(finding.id)
                    if counts(finding):
                        shown = MutantFinding(finding.checker, finding.message, _text(finding))
                        return StageOutcome(stage.name, shown, workloads, seconds, "violated")
                if ended:
                    break
                time.sleep(POLL_S)
        finally:
            _stop(process)
            store.close()
    if process.returncode not in (ExitCode.HOLDS, ExitCode.VIOLATED, ExitCode.UNDECIDED):
        said = (folder / "hunt.log").read_text(errors="replace").strip().splitlines()[-5:]
        raise InfrastructureError(f"{' '.join(map(str, command))} fails with {process.returncode}: {' '.join(said)}")
    told = json.loads(result.read_text())
    groups = tuple(f"{group['checker']}: {group['message']}" for group in told["groups"])
    return StageOutcome(stage.name, None, told["workloads"]["run"], told["seconds"], told["verdict"], groups)


class StockKernel:
    """Tells whether a finding shows on the stock kernel too, by running its workload there."""

    def __init__(self, kernel: Path, folder: Path) -> None:
        self._kernel, self._folder = kernel, folder
        self._known: set[object] = set()

    def shows(self, finding: Finding, target: str) -> bool:
        """Whether the same judge objects to the same workload on the stock kernel, on either disk.

        Each disk has one recording, so a False is no proof.
        """
        cause = (target, cause_of(finding))
        if cause not in self._known:
            if not any(finding.checker in self._objects(finding, target, disk) for disk in DISK_OPTIONS):
                return False
            self._known.add(cause)
        return True

    def _objects(self, finding: Finding, target: str, disk: tuple[str, ...]) -> set[str]:
        """The judges that object to the finding's workload."""
        self._folder.mkdir(parents=True, exist_ok=True)
        workload = self._folder / "workload.ops"
        workload.write_text(_text(finding))
        command: list[str | Path] = [POSTCRASH, "--store", self._folder / "store", "check", workload]
        command += ["--target", target, "--kernel", self._kernel, "--expect", "practice"]
        command += ["--budget", STOCK_BUDGET, *disk, "--json", "-"]
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if ran.returncode not in (ExitCode.HOLDS, ExitCode.VIOLATED, ExitCode.UNDECIDED):
            said = ran.stderr.strip().splitlines()[-1:]
            raise InfrastructureError(f"{' '.join(map(str, command))} fails with {ran.returncode}: {' '.join(said)}")
        told = json.loads(ran.stdout)
        objecting = {name for name, judge in told["judges"].items() if judge["verdict"] == "violated"}
        return objecting | {each["checker"] for each in told["findings"]}


def _text(finding: Finding) -> str:
    return parse_workload(finding.workload_text, finding.workload_name).without_tail().to_text()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a hunt as Ctrl-C does, so that its guests end too."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
