"""What a shell completes, asked as bash asks it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def completed(folder: Path, *words: str) -> list[str]:
    """What bash is offered for the last of `words`: each with its kind, such as `plain,btrfs`."""
    program = Path(sys.executable).with_name("postcrash")
    line = " ".join(["postcrash", *words])
    environment = {
        **os.environ,
        **{"_POSTCRASH_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words))},
        "POSTCRASH_CACHE": str(folder / "cache"),
    }
    done = subprocess.run([program], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["bis"], ["plain,bisect-run"]),
        (["check", "a.ops", "--target", "ext4-j"], ["plain,ext4-journal"]),
        (["characterize", "--target", "btrfs,xfs-w"], ["plain,btrfs,xfs-wsync"]),
        (["characterize", "--target", "xfs-sm"], ["plain,xfs-small-log"]),
        (["characterize", "--target", "./mine"], ["file,./mine"]),
        (["characterize", "--property", "hotd"], ["plain,hotdep13"]),
        (["audit", "lmdb"], ["plain,lmdb-0.9"]),
        (["check", "--kernel", "my-"], ["plain,my-kernel"]),
        (["gate", "--part", "s"], ["plain,small"]),
        (["explain", "la"], ["plain,last"]),
        (["repro", "find"], ["file,find"]),
        (["gate", "--part", "nothing"], []),
    ],
)
def test_names_are_completed(words: list[str], wanted: list[str], tmp_path: Path) -> None:
    kernel = tmp_path / "cache/kernels/my-kernel"
    kernel.mkdir(parents=True)
    (kernel / "kernel.json").write_text(json.dumps({"version": "6.1.1", "origin": "a test"}))
    (tmp_path / "postcrash.toml").write_text("[parts.small]\nhunt = 1\n[parts.table]\n")
    assert completed(tmp_path, *words) == wanted


@pytest.mark.parametrize("text", [None, "[parts", "parts = 3", b"\xff"])
def test_a_gate_that_cannot_be_read_has_no_parts_to_complete(text: str | bytes | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "postcrash.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert completed(tmp_path, "gate", "--part", "s") == []


def test_bash_takes_the_script(tmp_path: Path) -> None:
    environment = {**os.environ, "_POSTCRASH_COMPLETE": "bash_source"}
    program = Path(sys.executable).with_name("postcrash")
    done = subprocess.run([program], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    checked = subprocess.run(["bash", "-n"], input=done.stdout, capture_output=True, text=True, check=False)
    assert "complete" in done.stdout and checked.returncode == 0
