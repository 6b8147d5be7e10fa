"""A gate whose processes are killed again and again ends with the verdicts of one that nobody disturbed."""

import json
import os
import random
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from postcrash.model import ExitCode

from .command import COMMAND, leftovers

GATE = """
targets = ["ext4-original", "btrfs"]
hold = ["P5"]
confirm = 0
[parts.table]
properties = ["P5", "P1"]
[parts.small]
hunt = 1
limit = 60
[parts.save]
application = "replace-shell"
"""
QUICK = GATE.replace(', "btrfs"', "").replace(', "P1"', "").replace("limit = 60", "limit = 20")
SECONDS = (0.5, 6.0)
"""A kill comes so long after the one before."""
FEW = 10
"""With fewer kills, a run has the gate `QUICK`, and not each of `ROLES` need be among the victims."""
WAIT_SECONDS = 30.0
SEED = 20
ROLES = {
    "postcrash itself": r"postcrash|python[0-9.]*",
    "a crash disk": r"crashdisk",
    "a guest's kernel": r"linux\.uml|qemu-system-.*",
}
"""What must be among the victims of many kills, and the names in /proc/PID/comm that it has there."""


class Campaign:
    """Runs a gate in `folder`. All of its processes have a mark in their environment, by which they are found."""

    def __init__(self, folder: Path, gate: str = GATE, **environment: str) -> None:
        self._folder, self._mark, self._environment = folder, f"POSTCRASH_KILLED={uuid4()}", environment
        (folder / "postcrash.toml").write_text(gate)

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        name, _, value = self._mark.partition("=")
        with (self._folder / "output").open("ab") as output:
            process = subprocess.Popen(
                [*COMMAND, "--quiet", "gate", "--json", "gate.json"],
                cwd=self._folder,
                env={**os.environ, **self._environment, name: value},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
            yield process

    def processes(self) -> dict[int, str]:
        """The processes that there are, by their ids, with their names."""
        found = {}
        for place in Path("/proc").iterdir():
            with suppress(OSError):
                if place.name.isdigit() and self._mark.encode() in (place / "environ").read_bytes():
                    found[int(place.name)] = (place / "comm").read_text().strip()
        return found

    def gone(self) -> bool:
        """Whether no process is left, for which there is some time."""
        deadline = time.monotonic() + WAIT_SECONDS
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.1)
        return not self.processes()

    def result(self) -> dict[str, Any]:
        return dict(json.loads((self._folder / "gate.json").read_text()))


def killed(campaign: Campaign, count: int) -> Counter[str]:
    """Run the campaign until it ends by itself after so many kills. Returns what was killed, by name."""
    chance, victims = random.Random(SEED), Counter[str]()
    while True:
        with campaign.running() as process:
            while process.poll() is None:
                time.sleep(chance.uniform(*SECONDS) if victims.total() < count else 0.2)
                there = candidates(campaign.processes(), victims, count)
                if victims.total() < count and there:
                    pid, name = chance.choice(there)
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                        victims[name] += 1
        if victims.total() >= count and process.returncode in (ExitCode.HOLDS, ExitCode.VIOLATED, ExitCode.UNDECIDED):
            return victims


def candidates(there: dict[int, str], victims: Counter[str], count: int) -> list[tuple[int, str]]:
    """Processes that may be killed, by their ids. Of few kills only one is of a guest's kernel.

    A workload that loses its guest twice has a finding for that, and the search for the smallest workload goes past it.
    """
    spare_guests = count < FEW and by_role(victims)["a guest's kernel"] > 0
    kernel = ROLES["a guest's kernel"]
    return [(pid, name) for pid, name in sorted(there.items()) if not (spare_guests and re.fullmatch(kernel, name))]


def by_role(victims: Counter[str]) -> dict[str, int]:
    """How many of the victims were each of `ROLES`. Others, such as watchers of guests, are none of these."""
    return {
        role: sum(count for name, count in victims.items() if re.fullmatch(names, name))
        for role, names in ROLES.items()
    }


def verdicts(told: dict[str, Any]) -> list[tuple[object, ...]]:
    """What must not depend on kills. Counts of crash states may differ between recordings."""
    failures = ("cause", "workloads", "operations")
    return [
        (
            *(part[name] for name in ("name", "target", "verdict", "workloads", "not_run")),
            *(tuple(failure[name] for name in failures) for failure in part["failures"]),
        )
        for part in told["parts"]
    ]


@pytest.mark.parametrize("count", [3, pytest.param(200, marks=pytest.mark.full)])
def test_kills_change_no_verdict_and_leave_nothing_behind(tmp_path: Path, count: int) -> None:
    calm, disturbed = (tmp_path / name for name in ("calm", "disturbed"))
    calm.mkdir()
    disturbed.mkdir()
    gate = QUICK if count < FEW else GATE
    undisturbed = Campaign(calm, gate)
    with undisturbed.running() as process:
        assert process.wait() == ExitCode.VIOLATED
    campaign = Campaign(disturbed, gate)
    victims = killed(campaign, count)
    print(f"{victims.total()} kills: {by_role(victims)}; by name: {dict(victims)}")
    assert all(by_role(victims).values()) or count < FEW, victims
    assert verdicts(campaign.result()) == verdicts(undisturbed.result()), (disturbed / "output").read_text()
    assert campaign.gone(), campaign.processes()
    assert leftovers(disturbed) == []


@pytest.mark.full
def test_runs_on_one_store_at_the_same_time(tmp_path: Path) -> None:
    """They may do some work twice, and both come to the same verdicts, as a third run from the store does."""
    campaign = Campaign(tmp_path)
    results = []
    with campaign.running() as first, campaign.running() as second:
        codes = [process.wait() for process in (first, second)]
    results.append(verdicts(campaign.result()))
    with campaign.running() as third:
        codes.append(third.wait())
    results.append(verdicts(campaign.result()))
    assert codes == [ExitCode.VIOLATED] * 3, (tmp_path / "output").read_text()
    assert results[0] == results[1]
