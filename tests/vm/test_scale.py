"""The cost of a long recording on real guests. bench/scale.py makes the recordings."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench" / "scale.py"
WRITES = (2_000, 40_000)
WRITE_BYTES = 512
RESIDENT_PER_RECORDED_BYTE = 4
"""This covers each byte of the recording, the byte of the base image below it, and what is known of the write."""


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Figures of a recording with the smaller number of writes, and of one with the larger."""
    return [measured(writes, tmp_path_factory.mktemp("scale") / "figures.json") for writes in WRITES]


def measured(writes: int, out: Path) -> dict[str, Any]:
    many = [str(writes), str(WRITE_BYTES)]
    options = ["--commits", "10", "--spread", *many, "--epoch", *many, "--image-mib", "128", "--json", str(out)]
    subprocess.run([sys.executable, str(BENCH), *options], check=True, timeout=300)
    found: dict[str, Any] = json.loads(out.read_text())
    return found


@pytest.mark.parametrize("shape", ["flushes", "one epoch"])
def test_a_long_recording_is_explored_whole_in_little_memory(figures: list[dict[str, Any]], shape: str) -> None:
    short, long = (found[shape] for found in figures)
    assert short["complete"] and long["complete"]
    assert long["requests"] - short["requests"] == WRITES[1] - WRITES[0]
    recorded = long["recorded_bytes"] - short["recorded_bytes"]
    assert recorded > (WRITES[1] - WRITES[0]) * WRITE_BYTES
    resident = (long["crash_disk_kib"] - short["crash_disk_kib"]) * 1024
    assert resident < RESIDENT_PER_RECORDED_BYTE * recorded


def test_writes_that_no_recovery_reads_cost_no_recovery(figures: list[dict[str, Any]]) -> None:
    short, long = (found["one epoch"] for found in figures)
    assert long["in_flight_max"] >= WRITES[1]
    assert long["intervals"] == short["intervals"]
    # On a busy host a read may be answered that nobody waited for, which costs a recovery.
    assert abs(long["recoveries"] - short["recoveries"]) <= 2
