"""Linux's source, as Debian's package has it, and the kernel that is built from it with all mutants and remedies in it.

The source with its object files is kept in the cache. A changed source file has its stock text beside it.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

import click

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.guests.kernels.config import config_of
from postcrash.harness.guests.kernels.kernel import find_kernel

from .change import ChosenChange, changed

NAME = "linux-source-6.1"
ARCHIVE = Path("/usr/src", f"{NAME}.tar.xz")
PACKAGES: dict[str, Path | str] = {
    NAME: ARCHIVE,
    "make": "make",
    "gcc": "gcc",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
}
"""Debian's packages that a kernel is built with, each with a file or a program of it."""
_FRAGMENT = Path(__file__).with_name("kernel.config")
_SAVED = ".stock"
_LOG_LINES = 20
# Two builds of one source and version are the same.
_SAME_EVERY_TIME = {
    "KBUILD_BUILD_TIMESTAMP": "1970-01-01",
    "KBUILD_BUILD_USER": "postcrash",
    "KBUILD_BUILD_HOST": "postcrash",
}


def say(text: str) -> None:
    """A line of progress, on standard error."""
    click.echo(text, err=True)


def require_packages() -> None:
    """Install what is missing of `PACKAGES`, as root. Raises InfrastructureError that says what to install."""
    missing = [name for name, probe in PACKAGES.items() if not _is_there(probe)]
    if not missing:
        return
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *missing]
    say(f"installing {', '.join(missing)}")
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise InfrastructureError(f"a kernel cannot be built without {', '.join(missing)}: run  {' '.join(command)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    ran = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if ran.returncode:
        raise InfrastructureError(f"{' '.join(command)} fails: {ran.stderr.strip()[-500:]}")


def _is_there(probe: Path | str) -> bool:
    return probe.exists() if isinstance(probe, Path) else shutil.which(probe) is not None


class SourceTree:
    """The source tree in `folder`. Of two processes one waits while the other builds."""

    def __init__(self, folder: Path, jobs: int) -> None:
        self._folder, self._jobs = folder, jobs
        self._tree = folder / NAME

    def kernel(self, changes: Iterable[ChosenChange], version: str = "1") -> bytes:
        """The file of the kernel with all changes in it, none of them made. Raises InfrastructureError and MutantError.

        `version` is that of the build, which a kernel tells: two versions of the same source are two files.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._unpack()
            self._write(changed(changes, self._text))
            self._configure()
            say("building")
            self._make("linux", version)
            return (self._tree / "linux").read_bytes()

    def digest(self) -> str:
        """Names the stock source with its configuration."""
        return hashlib.sha256(f"{self._stamp()}\0{self._config}".encode()).hexdigest()

    def _text(self, file: str) -> str:
        """The stock text of a source file."""
        place = self._tree / file
        saved = place.with_name(place.name + _SAVED)
        try:
            if not saved.exists():
                shutil.copy2(place, saved)
            return saved.read_text()
        except OSError as error:
            raise InfrastructureError(f"{error.filename}: {error.strerror}") from error

    def _write(self, files: dict[str, str]) -> None:
        """Make these files changed, and no others. What is so already is left alone: make goes by time stamps."""
        for saved in [*self._tree.glob(f"fs/*/**/*{_SAVED}")]:
            place = saved.with_name(saved.name.removesuffix(_SAVED))
            if str(place.relative_to(self._tree)) not in files:
                place.write_text(saved.read_text())
                saved.unlink()
        for file, text in files.items():
            place = self._tree / file
            if place.read_text() != text:
                place.write_text(text)

    def _unpack(self) -> None:
        stamp = self._folder / f"{NAME}.stamp"
        if stamp.is_file() and stamp.read_text() == self._stamp():
            return
        say(f"unpacking {ARCHIVE}")
        shutil.rmtree(self._tree, ignore_errors=True)
        ran = subprocess.run(["tar", "-xf", ARCHIVE, "-C", self._folder], capture_output=True, text=True)
        if ran.returncode:
            raise InfrastructureError(f"{ARCHIVE} cannot be unpacked: {ran.stderr.strip()[-500:]}")
        stamp.write_text(self._stamp())

    def _stamp(self) -> str:
        """Names the package's build."""
        archive = ARCHIVE.stat()
        return f"{archive.st_size} {archive.st_mtime_ns}\n"

    def _configure(self) -> None:
        config = self._tree / ".config"
        stamp = self._folder / "config.stamp"
        if config.is_file() and stamp.is_file() and stamp.read_text() == self._config:
            return
        config.write_text(self._config)
        self._make("olddefconfig")
        lost = lost_options(_FRAGMENT.read_text(), config.read_text())
        if lost:
            raise InfrastructureError(f"{NAME} does not take {', '.join(lost)} of {_FRAGMENT}")
        stamp.write_text(self._config)

    @cached_property
    def _config(self) -> str:
        """What is asked for: what Debian's user-mode Linux has built in, and the fragment."""
        kernel = find_kernel()
        debian = config_of(kernel.path, kernel.modules)
        if debian is None:
            raise InfrastructureError(f"{kernel.path} does not say how it was configured")
        return merged(debian, _FRAGMENT.read_text())

    def _make(self, what: str, version: str = "1") -> None:
        command = ["make", "ARCH=um", f"-j{self._jobs}", what]
        environment = {**os.environ, **_SAME_EVERY_TIME, "KBUILD_BUILD_VERSION": version}
        ran = subprocess.run(
            command, cwd=self._tree, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        if ran.returncode:
            said = "\n".join(ran.stderr.splitlines()[-_LOG_LINES:])
            raise InfrastructureError(f"{' '.join(command)} fails in {self._tree}:\n{said}")


def merged(config: str, fragment: str) -> str:
    """A configuration: what `config` has built in, but for options of `fragment`, and `fragment`. No modules."""
    own = set(_option_names(fragment))
    kept = [
        line
        for line in config.splitlines()
        if line.startswith("CONFIG_") and not line.endswith("=m") and line.partition("=")[0] not in own
    ]
    # Of a choice only one option can be set, and the fragment names it.
    kept = [line for line in kept if not line.startswith("CONFIG_DEBUG_INFO")]
    return "\n".join([*kept, *fragment.splitlines(), ""])


def lost_options(fragment: str, config: str) -> list[str]:
    """Options that `fragment` sets and `config` does not."""
    there = set(config.splitlines())
    return [line for line in fragment.splitlines() if line.startswith("CONFIG_") and line not in there]


def _option_names(fragment: str) -> list[str]:
    return re.findall(r"^(?:# )?(CONFIG_\w+)(?:=| is not set)", fragment, re.MULTILINE)
