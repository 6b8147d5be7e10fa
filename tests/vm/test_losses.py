"""A gate under which the disk fills up, the store goes or the clock jumps: nothing that was finished is lost."""

import datetime
import shutil
import sqlite3
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from postcrash.model import ExitCode
from postcrash.store.store import DATABASE

from .command import leftovers
from .test_cli import finished_runs
from .test_kills import Campaign, verdicts

pytestmark = pytest.mark.full  # Half a minute each.

GATE = """
targets = ["ext4-original"]
hold = ["P5"]
confirm = 0
[parts.table]
properties = ["P5"]
[parts.small]
hunt = 1
limit = 120
"""
Verdicts = list[tuple[object, ...]]
STORE = ".postcrash"
RUNS = 3
"""So many results are in the store when something happens."""
START_SECONDS = 120.0
HOURS_SECONDS = 30 * 3600
CLOCK = """
#include <stdint.h>
#include <stdlib.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset;

__attribute__((constructor)) static void start(void) {
    int file = open(getenv("POSTCRASH_TEST_CLOCK"), O_RDONLY);
    offset = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int code = syscall(SYS_clock_gettime, clock, now);
    if (code == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) && offset != MAP_FAILED)
        now->tv_sec += *offset;
    return code;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec told;
    clock_gettime(CLOCK_REALTIME, &told);
    *now = (struct timeval){told.tv_sec, told.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *place) {
    struct timespec told;
    clock_gettime(CLOCK_REALTIME, &told);
    if (place) *place = told.tv_sec;
    return told.tv_sec;
}
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    """The verdicts of the gate when nothing happens to it."""
    campaign = Campaign(tmp_path_factory.mktemp("calm"), GATE)
    with campaign.running() as process:
        assert process.wait() == ExitCode.VIOLATED
    return verdicts(campaign.result())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for a store and a cache, and for little more."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


def run_disturbed(campaign: Campaign, folder: Path, disturb: Callable[[], object]) -> tuple[int, str]:
    """Run the gate, and disturb it once some results are in its store. Its exit code, and what it said."""
    output, database = folder / "output", folder / STORE / DATABASE
    with campaign.running() as process:
        deadline = time.monotonic() + START_SECONDS
        while process.poll() is None and time.monotonic() < deadline and runs_in(database) < RUNS:
            time.sleep(0.02)
        assert process.poll() is None, output.read_text()
        disturb()
        code = process.wait()
    assert campaign.gone(), campaign.processes()
    return code, output.read_text()


def runs_in(database: Path) -> int:
    """How many results there are. A store that is being made has none."""
    with suppress(sqlite3.Error):
        return finished_runs(database)
    return 0


def run_again(campaign: Campaign, folder: Path) -> Verdicts:
    with campaign.running() as process:
        assert process.wait() == ExitCode.VIOLATED, (folder / "output").read_text()
    assert leftovers(folder) == []
    return verdicts(campaign.result())


def fill(folder: Path) -> None:
    """Leave no room on the file system of `folder`."""
    with (folder / "filler").open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))


def overwrite(database: Path) -> None:
    """Write over the first pages."""
    with database.open("r+b") as file:
        file.write(b"x" * 12_288)


def one_line_of(said: str) -> str:
    (line,) = said.splitlines()
    return line


def test_a_disk_that_fills_up(small_disk: Path, undisturbed: Verdicts) -> None:
    campaign = Campaign(small_disk, GATE, POSTCRASH_CACHE=str(small_disk / "cache"))
    (small_disk / "output").symlink_to(small_disk.parent / "output")
    code, said = run_disturbed(campaign, small_disk, lambda: fill(small_disk))
    assert code == ExitCode.INFRASTRUCTURE
    assert "no space left on the disk; what was there before is unharmed" in one_line_of(said)
    kept = finished_runs(small_disk / STORE / DATABASE)
    assert kept >= RUNS
    (small_disk / "filler").unlink()
    assert run_again(campaign, small_disk) == undisturbed
    assert finished_runs(small_disk / STORE / DATABASE) > kept


def test_a_store_that_is_pulled_out(tmp_path: Path, undisturbed: Verdicts) -> None:
    """Nothing is written to where it was, and it can be put back."""
    campaign, store, away = Campaign(tmp_path, GATE), tmp_path / STORE, tmp_path / "away"
    code, said = run_disturbed(campaign, tmp_path, lambda: store.rename(away))
    assert (code, store.exists()) == (ExitCode.INFRASTRUCTURE, False)
    assert f"{DATABASE}: it was moved or removed" in one_line_of(said)
    assert finished_runs(away / DATABASE) >= RUNS
    away.rename(store)
    assert run_again(campaign, tmp_path) == undisturbed


def test_a_store_that_is_removed(tmp_path: Path, undisturbed: Verdicts) -> None:
    campaign = Campaign(tmp_path, GATE)
    code, said = run_disturbed(campaign, tmp_path, lambda: shutil.rmtree(tmp_path / STORE))
    assert code == ExitCode.INFRASTRUCTURE
    assert f"{DATABASE}: " in one_line_of(said)
    assert run_again(campaign, tmp_path) == undisturbed


def test_a_store_that_is_damaged(tmp_path: Path, undisturbed: Verdicts) -> None:
    """It is refused from then on, and never made anew: somebody may still get something out of it."""
    campaign, database = Campaign(tmp_path, GATE), tmp_path / STORE / DATABASE
    code, said = run_disturbed(campaign, tmp_path, lambda: overwrite(database))
    assert code == ExitCode.INFRASTRUCTURE
    assert f"{DATABASE}: damaged" in one_line_of(said)
    (tmp_path / "output").unlink()
    with campaign.running() as process:
        assert process.wait() == ExitCode.INFRASTRUCTURE
    assert f"{DATABASE}: damaged" in one_line_of((tmp_path / "output").read_text())
    shutil.rmtree(tmp_path / STORE)
    assert run_again(campaign, tmp_path) == undisturbed


def test_a_clock_that_jumps(tmp_path: Path, undisturbed: Verdicts) -> None:
    """Hours forth and back, twice a second, in all processes. CLOCK_MONOTONIC does not jump, as on a real machine."""
    library, source, clock = (tmp_path / name for name in ("clock.so", "clock.c", "clock"))
    source.write_text(CLOCK)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    clock.write_bytes(bytes(8))
    campaign = Campaign(tmp_path, GATE, LD_PRELOAD=str(library), POSTCRASH_TEST_CLOCK=str(clock))
    jumps = 0
    with campaign.running() as process, clock.open("r+b", buffering=0) as offset:
        while process.poll() is None:
            jumps += 1
            offset.seek(0)
            offset.write(struct.pack("=q", HOURS_SECONDS * (-1) ** jumps))
            time.sleep(0.5)
    assert process.returncode == ExitCode.VIOLATED, (tmp_path / "output").read_text()
    assert jumps > 4
    assert verdicts(campaign.result()) == undisturbed
    assert campaign.gone(), campaign.processes()
    assert abs(started(campaign) - time.time()) > HOURS_SECONDS / 2, "the clock did not jump"


def started(campaign: Campaign) -> float:
    """When the gate says that it started, in seconds since 1970."""
    return datetime.datetime.fromisoformat(str(campaign.result()["started"])).timestamp()
