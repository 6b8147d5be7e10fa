"""What the bar on a terminal says."""

import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from postcrash.harness.cli import progress
from postcrash.harness.cli.progress import TerminalProgress


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What a terminal of 120 columns is sent."""
    sent = io.StringIO()
    console = Console(file=sent, force_terminal=True, width=120, color_system=None)
    monkeypatch.setattr(progress, "notes", lambda: console)
    return sent


def run(workloads: int | None) -> None:
    plan: Any = SimpleNamespace(kernel="UML 6.1", target=SimpleNamespace(name="btrfs"))
    examination: Any = SimpleNamespace(covered=10**20)
    with TerminalProgress(workloads) as shown:
        shown.recoveries(40)
        shown.finished(plan, examination)
        shown.skipped()


def test_it_has_states_a_rate_and_the_time_that_is_left(screen: io.StringIO) -> None:
    run(4)
    (last,) = [line for line in screen.getvalue().splitlines() if " 2/4 workloads" in line]
    assert last.count("UML 6.1 btrfs") == 1
    assert "2/4 workloads, about 10^20 states, 40 recoveries/s" in last
    assert last.rstrip().endswith("left")


@pytest.mark.parametrize(("workloads", "left"), [(None, True), (1, False)])
def test_one_workload_has_no_time_that_is_left(screen: io.StringIO, workloads: int | None, left: bool) -> None:
    run(workloads)
    assert ("left" in screen.getvalue()) is left
