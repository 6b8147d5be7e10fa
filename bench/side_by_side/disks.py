"""Disks: loop devices on files, one on the disk at hand and one in memory, with a new ext4 for each measurement."""

import contextlib
import os
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

JOURNAL_MIB = 400
"""As in the paper."""
DISK_MIB = 1200
_CHUNK = bytes(1 << 20)
_FLUSHES = 100
_FREE_S = 60


def run(*command: str | Path) -> str:
    """Standard output of a command. Raises CalledProcessError."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


@contextmanager
def loop_device(folder: Path) -> Iterator[Path]:
    """A loop device on a new file in `folder`. The file has all its blocks, so that a flush changes no metadata."""
    image = folder / "disk"
    try:
        with image.open("wb") as file:
            for _ in range(DISK_MIB):
                file.write(_CHUNK)
            os.fsync(file.fileno())
        device = Path(run("losetup", "--find", "--show", image))
        try:
            yield device
        finally:
            run("losetup", "--detach", device)
    finally:
        image.unlink(missing_ok=True)


def _attempts() -> Iterator[None]:
    """Ten a second, for a while."""
    deadline = time.monotonic() + _FREE_S
    while time.monotonic() < deadline:
        yield
        time.sleep(0.1)


def wait_until_free(device: Path) -> None:
    """Return when nobody has mounted it: a mount namespace that was made meanwhile may keep it for a moment."""
    for _ in _attempts():
        with contextlib.suppress(OSError):
            os.close(os.open(device, os.O_RDWR | os.O_EXCL))
            return


def make_ext4(device: Path) -> None:
    """A new file system, with everything written that the kernel would otherwise write in the background."""
    wait_until_free(device)
    run("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0", "-J", f"size={JOURNAL_MIB}", device)


@contextmanager
def mounted(device: Path, point: Path, options: str) -> Iterator[None]:
    """The file system of `device` at `point`."""
    run("mount", "-o", options, device, point)
    try:
        yield
    finally:
        _unmount(point)


def _unmount(point: Path) -> None:
    """A process that was killed may keep the file system busy for a moment."""
    for _ in _attempts():
        if subprocess.run(["umount", point], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return
    run("umount", point)


def synced_s(folder: Path) -> float:
    """Make everything durable in the file system of `folder`. Returns the seconds that this took."""
    started = time.monotonic()
    run("sync", "--file-system", folder)
    return time.monotonic() - started


def flush_ms(folder: Path) -> float:
    """Milliseconds that it takes to make an append of 4 KiB durable in `folder`: the median of many."""
    spent = []
    with (folder / "flushed").open("wb", buffering=0) as file:
        for _ in range(_FLUSHES):
            file.write(_CHUNK[:4096])
            started = time.monotonic()
            os.fsync(file.fileno())
            spent.append(time.monotonic() - started)
    return statistics.median(spent) * 1000
