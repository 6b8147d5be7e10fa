"""What the files of docs/ci/ run, run here: the shards of a gate in turn, then the verdict, with what they hand on.

The services' own steps are left out: a checkout, a cache, an upload. What is uploaded must be there.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from postcrash.model import ExitCode

from .command import ROOT

SHARDS = 2
TARGET = """
name = "mine"
like = "ext4-current"
title = "ext4 that does not write a new file before it replaces another"
options = "noauto_da_alloc"
"""
GATE = """
targets = ["mine.toml"]
disks = "one"

[parts.rename]
properties = ["P4", "P5"]
hold = ["P5"]
"""
SET_UP = re.compile(r"apt-get|git clone|tools/setup|mkdir -p bundles$")


def of_github() -> tuple[list[str], list[str], list[str], list[str]]:
    """The commands of a shard and those of the verdict, and the paths that each of them uploads."""
    jobs = read("github.yml")["jobs"]

    def commands(job: str) -> list[str]:
        return [step["run"] for step in jobs[job]["steps"] if "run" in step]

    def paths(job: str) -> list[str]:
        uploads = [step["with"]["path"] for step in jobs[job]["steps"] if "upload-artifact" in step.get("uses", "")]
        return [path for text in uploads for path in text.splitlines()]

    return commands("shard"), commands("verdict"), paths("shard"), paths("verdict")


def of_gitlab() -> tuple[list[str], list[str], list[str], list[str]]:
    """The same of the other file."""
    jobs = read("gitlab.yml")
    shard, verdict = jobs["shard"], jobs["verdict"]
    return shard["script"], verdict["script"], shard["artifacts"]["paths"], verdict["artifacts"]["paths"]


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load((ROOT / "docs" / "ci" / name).read_text())
    return found


def filled(text: str, shard: int) -> str:
    """With the values that GitHub puts in."""
    text = text.replace("${{ matrix.shard }}", str(shard)).replace("${{ strategy.job-total }}", str(SHARDS))
    assert "${{" not in text, text
    return text


def run(command: str, folder: Path, shard: int) -> int:
    variables = {"CI_NODE_INDEX": str(shard), "CI_NODE_TOTAL": str(SHARDS), "GITHUB_STEP_SUMMARY": "summary.md"}
    ran = subprocess.run(
        ["bash", "-e", "-c", filled(command, shard)],
        cwd=folder,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode in (ExitCode.HOLDS, ExitCode.VIOLATED), ran.stdout + ran.stderr
    return ran.returncode


@pytest.mark.parametrize("commands", [of_github, of_gitlab], ids=["github", "gitlab"])
def test_the_shards_and_the_verdict_fail_on_a_regression_and_hand_on_what_they_say(
    commands: Any, tmp_path: Path
) -> None:
    program = tmp_path / "postcrash" / ".venv" / "bin" / "postcrash"
    program.parent.mkdir(parents=True)
    program.symlink_to(Path(sys.executable).with_name("postcrash"))
    (tmp_path / "mine.toml").write_text(TARGET)
    (tmp_path / "postcrash.toml").write_text(GATE)
    shard_commands, verdict_commands, of_shard, of_verdict = commands()
    codes = []
    for shard in range(1, SHARDS + 1):
        codes += [run(command, tmp_path, shard) for command in shard_commands if not SET_UP.search(command)]
        missing = [path for path in of_shard if not [*tmp_path.glob(filled(path, shard).rstrip("/"))]]
        assert missing == [], f"shard {shard} uploads what is not there"
    assert ExitCode.VIOLATED in codes
    (told,) = {run(command, tmp_path, 0) for command in verdict_commands if not SET_UP.search(command)}
    assert told == ExitCode.VIOLATED
    assert [path for path in of_verdict if not (tmp_path / path).exists()] == []
    assert "P5" in (tmp_path / "gate.xml").read_text()
