"""The command says in one line what it lacks, and shows what it has measured."""

import os
import subprocess
import sys
from pathlib import Path

from side_by_side.results import Results
from side_by_side.settings import ASYNCHRONOUS

COMMAND = Path(__file__).resolve().parents[3] / "bench" / "xsync.py"


def run(*arguments: str | Path, path: str = os.environ["PATH"]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, COMMAND, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"PATH": path})


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    done = run("--only", "web", path=str(tmp_path))
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert ("apache2, ip, wrk missing" if os.geteuid() == 0 else "needs root") in done.stderr


def test_what_was_measured_is_shown_again(tmp_path: Path) -> None:
    results = Results({"CPU": "2 of some"})
    results.add(ASYNCHRONOUS.name, {"work, s": 2.5})
    results.write(tmp_path / "figures.json")
    shown = run("--read", tmp_path / "figures.json").stdout
    assert "CPU: 2 of some" in shown and "| work, s | 2.5 | – |" in shown
    assert "not measured" in shown
