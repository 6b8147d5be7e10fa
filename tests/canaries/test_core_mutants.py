"""Faults planted in a copy of crashgen/core: its tests must fail for each of them.

A fault whose old text no longer stands in the source fails too: then it has to be planted anew. Only the test program
that is to notice a fault is built and run, without optimization, so that each takes a few seconds.
"""

import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ..planting import cargo, environment, make_workspace
from .core_faults import FAULTS
from .fault import Fault

CRATE = "crashgen/core"
# What the crate depends on of ours.
WIRE = "model/wire"
# Building and running one test program takes a few seconds; a fault may make it run for ever. The first time, all
# that it depends on is built too.
TIMEOUT_S = 90
FIRST_TIMEOUT_S = 600
# Random logs for each test of brute_force.rs; every fault that it is to notice shows within far fewer. Without a fault
# some of them do: tools/check-rust runs these tests whole, on the optimized code.
RANDOM_LOGS = 300
LOGS_WITHOUT_FAULT = 60
RUNS_FOR_EVER = "the test program does not end"
FAILED = re.compile(r"test \S+( - should panic)? \.\.\. FAILED\n")


@dataclass(frozen=True)
class Copy:
    """A workspace of its own that holds nothing but a copy of the crate and of what it depends on."""

    folder: Path

    def source(self, file: str) -> Path:
        return self.folder / CRATE / "src" / file

    def test(self, program: str, logs: int = RANDOM_LOGS, timeout_s: float = TIMEOUT_S) -> tuple[bool, str]:
        """Whether the tests of `program` pass, and what cargo said up to the first test that does not.

        A crate that does not build passes nothing.
        """
        more = {
            "PROPTEST_CASES": str(logs),
            "PROPTEST_MAX_SHRINK_ITERS": "0",
            "RUST_BACKTRACE": "0",
        }
        with subprocess.Popen(
            cargo("test", "--test", program, quiet=False),
            cwd=self.folder,
            env={**environment(self.folder), **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        ) as process:
            end = threading.Timer(timeout_s, os.killpg, (process.pid, signal.SIGKILL))
            end.start()
            assert process.stdout is not None
            said = []
            for line in process.stdout:
                said.append(line)
                if FAILED.fullmatch(line):
                    os.killpg(process.pid, signal.SIGKILL)
                    break
            end.cancel()
        if process.returncode == -signal.SIGKILL and not FAILED.fullmatch(said[-1]):
            said.append(RUNS_FOR_EVER)
        return process.returncode == 0, "".join(said)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    folder = tmp_path_factory.mktemp("core")
    make_workspace(folder, (CRATE, WIRE), (CRATE,), opt_level=0)
    yield Copy(folder)
    shutil.rmtree(folder)


@pytest.mark.parametrize("program", sorted({fault.noticed_by for fault in FAULTS}))
def test_without_a_fault_the_tests_pass(copy: Copy, program: str) -> None:
    passed, output = copy.test(program, LOGS_WITHOUT_FAULT, FIRST_TIMEOUT_S)
    assert passed, output


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.why)
def test_the_fault_is_noticed(copy: Copy, fault: Fault) -> None:
    source = copy.source(fault.file)
    original = source.read_text()
    assert original.count(fault.old) == 1, f"{fault.file} must hold the old text once, to plant a fault in its place"
    source.write_text(original.replace(fault.old, fault.new))
    try:
        passed, output = copy.test(fault.noticed_by)
    finally:
        source.write_text(original)
    assert not passed, f"{fault.noticed_by}.rs does not notice that {fault.why}"
    *_, last = output.splitlines(keepends=True)
    assert FAILED.fullmatch(last) or last == RUNS_FOR_EVER, output
