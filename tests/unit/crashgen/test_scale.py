"""Memory: however long a recording is, its pages and those of the base image do not stay in memory."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from postcrash._core import write_recording
from postcrash.model.units import SECTOR_BYTES

pytestmark = pytest.mark.slow

BASE_BYTES = 1 << 30
WRITE_BYTES = 512
WRITES = (10_000, 100_000)
COUNTED = """
import sys
from postcrash._core import Recording, count_states
intervals, states = count_states(Recording(sys.argv[1]), sys.argv[2], sys.argv[3])
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(intervals, states.bit_length(), int(status["VmHWM"].split()[0]) * 1024)
"""


def counted(recording: Path, base: Path, model: str) -> tuple[int, int, int]:
    """Crash intervals, bits of the number of crash states, and the peak memory of a process that counts them."""
    command = [sys.executable, "-c", COUNTED, str(recording), str(base), model]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    intervals, bits, peak = map(int, shown.split())
    return intervals, bits, peak


def sparse(path: Path, size: int) -> Path:
    """A file of `size` zeros that takes no space."""
    with path.open("wb") as file:
        file.truncate(size)
    return path


def test_pages_of_the_base_image_are_given_back(tmp_path: Path) -> None:
    base, recording = sparse(tmp_path / "base", BASE_BYTES), tmp_path / "log.pcr"
    sectors = BASE_BYTES // SECTOR_BYTES
    write_recording(recording, sectors, "{}", [("durable",), ("zero", 0, 0, sectors, False)])
    for model in ("cache", "cache:65536"):
        intervals, _, peak = counted(recording, base, model)
        assert intervals == 1
        assert peak < BASE_BYTES / 2


def test_a_write_in_flight_takes_little_more_than_its_place(tmp_path: Path) -> None:
    base, recording = sparse(tmp_path / "base", WRITES[1] * WRITE_BYTES), tmp_path / "log.pcr"
    for model, limit in (("cache", 4), ("ordered", 6)):
        peaks = []
        for writes in WRITES:
            events: list[tuple[Any, ...]] = [("write", i, i, b"%512d" % i, False, False) for i in range(writes)]
            write_recording(recording, WRITES[1], "{}", [("durable",), *events])
            intervals, bits, peak = counted(recording, base, model)
            assert (intervals, bits) == (1, writes + 1 if model == "cache" else (writes + 1).bit_length())
            peaks.append(peak)
        assert peaks[1] - peaks[0] < limit * WRITE_BYTES * (WRITES[1] - WRITES[0]), model
