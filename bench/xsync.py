"""What external synchrony costs: workloads on ext4, asynchronous, under xsync, synchronous and in memory, by turns.

    python bench/xsync.py --rounds 3 --json figures.json --plot docs/results/xsync-performance.svg

It needs root, and Debian's postmark, postgresql, apache2-bin, wrk, iproute2, gcc and make. A ratio is to
the asynchronous file system in the same round.
"""

import argparse
import itertools
import os
import platform
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from postcrash.harness.files.places import quick_folder
from side_by_side.delay import Delay
from side_by_side.disks import flush_ms, loop_device, make_ext4, mounted, run, synced_s
from side_by_side.goals import GOALS
from side_by_side.postgresql import PostgreSQL
from side_by_side.postmark import PostMark
from side_by_side.results import Results
from side_by_side.settings import ASYNCHRONOUS, EAGER, SETTINGS, XSYNC, Setting
from side_by_side.site import Site
from side_by_side.source_build import SourceBuild
from side_by_side.sqlite import SQLite
from side_by_side.web import Web
from side_by_side.workload import Figures, Workload

NEEDS = {
    "postmark": ("postmark",),
    "build": ("gcc", "make"),
    "postgresql": ("pgbench",),
    "sqlite": (),
    "web": ("apache2", "wrk", "ip"),
    "delay": ("postmark",),
}
WORKLOADS = tuple(NEEDS)


@dataclass(frozen=True)
class Bench:
    """Two disks, of which one is in memory, and a place where they are mounted."""

    disk: Path
    memory: Path
    point: Path

    def measure(self, workload: Workload, setting: Setting) -> Figures:
        """Run a workload on a new file system. What it leaves is made durable, and measured as well."""
        device = self.memory if setting.in_memory else self.disk
        make_ext4(device)
        with mounted(device, self.point, ASYNCHRONOUS.mount_options):
            self.point.chmod(0o755)
            workload.set_up(self.point)
        run("sync", device)
        with mounted(device, self.point, setting.mount_options):
            figures = workload.measure(Site(self.point, setting))
            return figures | {f"{workload.name}: sync at the end, s": synced_s(self.point)}

    def machine(self) -> dict[str, str]:
        """In words, without names of machines or folders."""
        cpu = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
        found = {
            "CPU": f"{len(os.sched_getaffinity(0))} of {cpu[1] if cpu else platform.machine()}",
            "memory": f"{memory_gib:.0f} GiB",
            "kernel": platform.release(),
        }
        for name, device in (("disk", self.disk), ("RAM disk", self.memory)):
            make_ext4(device)
            with mounted(device, self.point, ASYNCHRONOUS.mount_options):
                found[f"fsync on the {name}"] = f"{flush_ms(self.point):.2f} ms"
        return found


def workloads(options: argparse.Namespace, scratch: Path) -> list[Workload]:
    """Those that are asked for."""
    made: dict[str, Callable[[], Workload]] = {
        "postmark": lambda: PostMark(options.files),
        "build": SourceBuild,
        "postgresql": lambda: PostgreSQL(options.seconds, scratch),
        "sqlite": lambda: SQLite(options.seconds),
        "web": lambda: Web(options.seconds),
        "delay": lambda: Delay(options.files),
    }
    return [made[name]() for name in options.only]


def ensure_possible(chosen: Sequence[str]) -> None:
    """Exit with one line if we are not root, or if programs are missing."""
    missing = {program for name in chosen for program in NEEDS[name] if shutil.which(program) is None}
    if os.geteuid() != 0:
        sys.exit("bench/xsync.py: it makes and mounts file systems, which needs root: use sudo")
    if missing:
        sys.exit(f"bench/xsync.py: {', '.join(sorted(missing))} missing; --help names the packages")


def measured(options: argparse.Namespace, console: Console) -> Results:
    """All rounds. In each other round the settings come in the opposite order."""
    ensure_possible(options.only)
    results = Results()
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="xsync-bench-", dir=options.folder)))
        quick = stack.enter_context(tempfile.TemporaryDirectory(prefix="xsync-bench-", dir=quick_folder()))
        scratch.chmod(0o755)
        point = scratch / "mnt"
        point.mkdir()
        bench = Bench(stack.enter_context(loop_device(scratch)), stack.enter_context(loop_device(Path(quick))), point)
        results.machine = bench.machine()
        chosen = workloads(options, scratch)
        for number, workload in itertools.product(range(options.rounds), chosen):
            for setting in SETTINGS[:: -1 if number % 2 else 1]:
                if setting.name not in options.settings:
                    continue
                if isinstance(workload, Delay) and setting not in (ASYNCHRONOUS, XSYNC, EAGER):
                    continue
                figures = bench.measure(workload, setting)
                results.add(setting.name, figures)
                if options.json:
                    results.write(options.json)
                shown = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
                console.print(f"round {number + 1}, {setting.name}: {shown}", soft_wrap=True, highlight=False)
    return results


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1, help="how often all is measured")
    parser.add_argument("--files", type=int, default=10_000, help="files and transactions of PostMark")
    parser.add_argument("--seconds", type=int, default=10, help="how long each load of a database or server takes")
    parser.add_argument("--only", nargs="+", choices=WORKLOADS, default=WORKLOADS, help="workloads")
    names = [setting.name for setting in SETTINGS]
    parser.add_argument("--settings", nargs="+", choices=names, default=names, help="file systems")
    parser.add_argument("--folder", type=Path, help="where the disk's file is; by default where temporary files are")
    parser.add_argument(
        "--read", type=Path, nargs="+", metavar="FILE", help="show what --json has written, and measure nothing"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to this file")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="a picture: .svg, .png or .pdf")
    return parser.parse_args(arguments)


def main() -> None:
    """Measure, print a table and whether the goals are met, and draw."""
    options, console = parsed(sys.argv[1:]), Console()
    # What was mounted is unmounted when this is ended, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    results = Results.read(options.read) if options.read else measured(options, console)
    for name, value in results.machine.items():
        print(f"{name}: {value}")
    print(results.table([setting.name for setting in SETTINGS]))
    for goal in GOALS:
        print(goal.line(results))
    if options.plot:
        from side_by_side.plots import plot

        plot(results, options.plot)


if __name__ == "__main__":
    main()
