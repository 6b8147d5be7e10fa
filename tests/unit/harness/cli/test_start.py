"""An installation that is not whole ends the program with its reason and with the exit code of a failure of ours."""

import subprocess
import sys
from pathlib import Path

import pytest

from postcrash.harness.cli import start
from postcrash.model import ExitCode

RUN = "from postcrash.harness.cli.start import main; main()"


def run(before: str, *arguments: str, stderr: int | None = subprocess.PIPE) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", f"import sys; {before}; {RUN}", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=stderr, text=True, check=False)


def test_its_exit_codes_are_those_of_the_command_line() -> None:
    assert (start.INTERRUPTED, start.INFRASTRUCTURE) == (ExitCode.INTERRUPTED, ExitCode.INFRASTRUCTURE)


@pytest.mark.parametrize("module", ["click", "postcrash._core", "postcrash.model"])
def test_a_module_that_is_missing_is_told_and_is_no_violation(module: str) -> None:
    ran = run(f"sys.modules[{module!r}] = None", "--version")
    assert ran.returncode == ExitCode.INFRASTRUCTURE
    first, second = ran.stderr.splitlines()
    assert first.startswith("postcrash: it is not installed as a whole: ") and module in first
    assert "make setup" in second


def test_a_module_that_exits_is_no_violation() -> None:
    exits = "type('Exits', (types.ModuleType,), {'__getattr__': lambda module, name: sys.exit(1)})"
    ran = run(f"import types; sys.modules['click'] = {exits}('click')", "--version")
    assert ran.returncode == ExitCode.INFRASTRUCTURE


def test_nobody_can_be_told() -> None:
    with Path("/dev/full").open("w") as full:
        ran = run("sys.modules['click'] = None", "--version", stderr=full.fileno())
    assert ran.returncode == ExitCode.INFRASTRUCTURE


def test_a_whole_installation_runs() -> None:
    ran = run("pass", "--version")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("postcrash, version ")
