"""How long an output waits: from the time that a program says until it is seen.

Without xsync the program makes its write durable before it speaks, and what it says is the time before that.
"""

import shutil
import statistics
import time
from pathlib import Path

from side_by_side.postmark import PostMark
from side_by_side.site import PYTHON, Site
from side_by_side.workload import Figures

OUTPUTS = 300
_LOAD = "(cd postmark; while [ ! -e ../stop ]; do postmark commands >/dev/null; done) &"
_SPEAKER = Path(__file__).with_name("speaker.py")


def names(beside: str) -> tuple[str, str]:
    """The names of median and 99th percentile."""
    return f"output delay {beside}, median ms", f"output delay {beside}, p99 ms"


class Delay:
    """Of a program that writes 4 KiB before each output: alone, and beside PostMark in the same box."""

    name = "delay"

    def __init__(self, files: int) -> None:
        self._postmark = PostMark(files)

    def set_up(self, folder: Path) -> None:
        """The program, and PostMark's commands."""
        shutil.copy(_SPEAKER, folder)
        (folder / "postmark").mkdir()
        self._postmark.set_up(folder / "postmark")

    def measure(self, site: Site) -> Figures:
        """Both delays in milliseconds."""
        speak = f"{PYTHON} {_SPEAKER.name} {OUTPUTS}{' fsync' if site.setting.supervisor is None else ''}"
        busy = f"{_LOAD} {speak}; touch stop; wait"
        return self._delays(site, "alone", speak) | self._delays(site, "beside PostMark", busy)

    def _delays(self, site: Site, beside: str, script: str) -> Figures:
        delays = []
        with site.started("sh", "-c", script) as process:
            assert process.stdout is not None
            for line in process.stdout:
                seen = time.monotonic_ns()
                said = line.removeprefix("said ")
                delays.append((seen - int(said)) / 1e6)
        percentiles = statistics.quantiles(delays, n=100)
        return dict(zip(names(beside), (percentiles[49], percentiles[98]), strict=True))
