"""What the files of docs/ci/ run, run here: the shards of a gate in turn, then the verdict, with what they hand on.

The services' own steps are left out: a checkout, a cache, an upload. What is uploaded must be there.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

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
corpus = "own"
hold = ["P5"]
"""
WORKLOADS = {
    "long": "creat a\nappend a 4096\n---\ncreat b\nappend b 8192\nrename b a\n",
    "short": "creat a\nappend a 4096\n---\ncreat b\nappend b 4096\nrename b a\n",
}
"""One for each shard, so that each has a finding to hand on."""
SET_UP = re.compile(r"apt-get|git clone|tools/setup|mkdir -p bundles$")


class Job(NamedTuple):
    """The commands of a job, and the paths that it uploads."""

    commands: list[str]
    uploads: list[str]


def of_github() -> tuple[Job, Job]:
    """The shard and the verdict."""
    jobs = read("github.yml")["jobs"]

    def job(name: str) -> Job:
        steps = jobs[name]["steps"]
        uploads = [step["with"]["path"] for step in steps if "upload-artifact" in step.get("uses", "")]
        commands = [step["run"] for step in steps if "run" in step]
        return Job(commands, [path for text in uploads for path in text.splitlines()])

    return job("shard"), job("verdict")


def of_gitlab() -> tuple[Job, Job]:
    """The same of the other file."""
    jobs = read("gitlab.yml")

    def job(name: str) -> Job:
        return Job(jobs[name]["script"], jobs[name]["artifacts"]["paths"])

    return job("shard"), job("verdict")


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


@pytest.mark.parametrize("jobs", [of_github, of_gitlab], ids=["github", "gitlab"])
def test_the_shards_and_the_verdict_fail_on_a_regression_and_hand_on_what_they_say(
    jobs: Callable[[], tuple[Job, Job]], tmp_path: Path
) -> None:
    program = tmp_path / "postcrash" / ".venv" / "bin" / "postcrash"
    program.parent.mkdir(parents=True)
    program.symlink_to(Path(sys.executable).with_name("postcrash"))
    (tmp_path / "mine.toml").write_text(TARGET)
    (tmp_path / "postcrash.toml").write_text(GATE)
    (tmp_path / "own").mkdir()
    for name, text in WORKLOADS.items():
        (tmp_path / f"own/{name}.ops").write_text(text)
    each_shard, verdict = jobs()
    codes = []
    for shard in range(1, SHARDS + 1):
        codes += [run(command, tmp_path, shard) for command in each_shard.commands if not SET_UP.search(command)]
        missing = [path for path in each_shard.uploads if not [*tmp_path.glob(filled(path, shard).rstrip("/"))]]
        assert missing == [], f"shard {shard} uploads what is not there"
    assert ExitCode.VIOLATED in codes
    (told,) = {run(command, tmp_path, 0) for command in verdict.commands if not SET_UP.search(command)}
    assert told == ExitCode.VIOLATED
    assert [path for path in verdict.uploads if not (tmp_path / path).exists()] == []
    assert "P5" in (tmp_path / "gate.xml").read_text()
