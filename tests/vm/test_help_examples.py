"""The examples of `--help`, run: what they need is there, and they end as commands that understood what was asked."""

import json
import shutil
from pathlib import Path

import pytest

from postcrash.model import ExitCode

from ..help_examples import contexts, examples_of, words_of
from .command import postcrash

ROOT = Path(__file__).parents[2]
NOT_RUN = {
    "postcrash characterize": "the table; `make table` and tests/vm/test_table.py make it",
    "postcrash characterize --kernel 5.10,6.1,6.12,7.2 --fs all": "an hour, and kernels that must be fetched",
    "postcrash characterize --properties all --target ext4-current --contract ext4.json": "minutes",
    "postcrash corpus corpus/fstests --budget 300,20s": "half an hour",
    "postcrash corpus my-bugs --target xfs,xfs-wsync --kernel 6.1,7.2 --fsck --markdown bugs.md": "needs kernels",
    "postcrash doctor --engine qemu --json -": "needs a kernel for QEMU",
    "postcrash hunt --ops 2 --target btrfs --shard 1/24 --time 1h": "an hour",
    "postcrash hunt --ops 3 --target xfs --workload-limit 1000 --seed 7 --json -": "minutes",
    "postcrash hunt --random --target f2fs --time 1h": "an hour",
    "postcrash import-strace strace.out --root /srv/data --before copy-of-data -o my.ops": "needs a trace",
    "postcrash import-xfstests local.config --section ext4_1k": "needs a configuration of the user's",
    "postcrash check examples/rename-replace.ops --target ./xfstests-ext4-1k.toml": "needs the one before",
    "postcrash trace --root data -o insert.ops -- sqlite3 data/my.db": "needs a database of the user's",
    "postcrash check insert.ops --target ext4-current": "needs the one before",
    "postcrash kernels fetch": "needs the network",
    "postcrash kernels list --suite": "needs the network",
    "postcrash kernels e2fsck": "needs the network",
    "postcrash kernels add arch/x86": "needs a kernel of the user's",
    "postcrash kernels add ./linux": "needs a kernel of the user's",
    "postcrash kernels remove": "needs a kernel of the user's",
    "postcrash bisect-run": "tests/vm/test_bisect_run.py",
    "postcrash import log.img before.img": "needs a log of the user's; tests/vm/test_recorders_agree.py",
    "postcrash needs leveldb-1.23 --set workload=switch": "minutes",
    "postcrash needs 'sqlite-3.40": "minutes",
    "postcrash needs lmdb-0.9": "minutes",
    "postcrash gate": "tests/vm/test_gate.py",
    "postcrash init": "tests/vm/test_gate.py",
    "postcrash merge": "tests/vm/test_gate.py",
    "postcrash diff": "tests/unit/reports/gate/test_difference.py",
    "postcrash synchrony sqlite-3.40": "minutes",
}
"""Beginnings of examples that are not run here, and why."""


def _runs(example: str) -> bool:
    return not any(example == start or example.startswith(f"{start} ") or start in example for start in NOT_RUN)


@pytest.mark.full
def test_examples_run(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "tests/generic").mkdir(parents=True)
    command = ("check", "examples/rename-replace.ops", "--target", "ext4-original", "--json", "-")
    told = json.loads(postcrash(tmp_path, *command).stdout)
    finding = told["findings"][0]["id"]
    recording = next((tmp_path / ".postcrash/recordings").iterdir()).stem
    failed = {}
    every = [each for context in contexts() for each in examples_of(context) if _runs(each)]
    assert len(every) > 15
    for example in dict.fromkeys(every):
        words = [word.replace("f-1a2b3c4d5e6f7a8b", finding) for word in words_of(example)]
        words = [word.replace("r-1a2b3c4d5e6f7a8b", recording) for word in words]
        done = postcrash(tmp_path, *words)
        if done.returncode not in (ExitCode.HOLDS, ExitCode.VIOLATED, ExitCode.UNDECIDED):
            failed[example] = done.stderr[-500:]
    assert failed == {}
