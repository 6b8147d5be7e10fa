"""PostMark of Debian: small files that are created, appended to, read and deleted by one process."""

from pathlib import Path

from side_by_side.site import Site
from side_by_side.workload import Figures

SECONDS = "PostMark, s"
OWN_SECONDS = "PostMark, s by its own clock"
CPU_SECONDS = "PostMark, CPU s"
_CLOCK = "date +%s%N"


class PostMark:
    """`files` files of 1 to 10 KB and as many transactions. At the end everything is deleted."""

    name = "postmark"

    def __init__(self, files: int) -> None:
        self._files = files

    def set_up(self, folder: Path) -> None:
        """Its commands are a file."""
        lines = [f"set number {self._files}", f"set transactions {self._files}", "set size 1000 10000"]
        (folder / "commands").write_text("\n".join([*lines, "set location .", "run", "quit", ""]))

    def measure(self, site: Site) -> Figures:
        """Seconds until its end is seen, those of its own clock, as in the paper, and those of its processes."""
        run = site.run("sh", "-ec", f"{_CLOCK}; postmark commands; {_CLOCK}")
        begin, *_, end = run.output.split()
        return {SECONDS: run.seconds, OWN_SECONDS: (int(end) - int(begin)) / 1e9, CPU_SECONDS: run.cpu_s}
