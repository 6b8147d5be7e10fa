"""Applications that are built from source, once: a package, if there is one, is fetched by its name, and checked.

What a build makes stays in a folder. The name of the folder has a digest of the package, of the build's command and of
the files that the command names, so that a change of one of them has it made anew. It is there whole or not at all.
"""

import hashlib
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from postcrash.apps.application import Application, Package

Fetch = Callable[[Package, Path], Path]
"""Fetches a package into an empty folder, and says where it is there. Raises BuildError."""
_NAMED_FILE = re.compile(r"\{here\}/([\w.+-]+)")
_LOG_LINES = 10
_DIGITS = 16


class BuildError(RuntimeError):
    """An application cannot be built; the text says why."""


@dataclass(frozen=True)
class Building:
    """How an application that has a build gets its `built` folder.

    cache  the folder in which all that is built stays
    """

    application: Application
    cache: Path

    @property
    def place(self) -> Path:
        """Where the built files are, or will be."""
        return (self.cache / "built" / f"{self.application.name}-{self._digest()}").resolve()

    def make(self, say: Callable[[str], None], fetch: Fetch | None = None) -> None:
        """Build, if it has not been done yet. `say` shows a line to a user who waits. Raises BuildError."""
        place = self.place
        if place.is_dir():
            return
        source = self.application.source
        doing = "building its driver" if source is None else f"fetching {source.package} and building it"
        say(f"{self.application.name}: {doing}, the first time a minute or two")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".new-", dir=place.parent) as scratch:
                for name in ("fetched", "unpacked", "built"):
                    (Path(scratch) / name).mkdir()
                if source is not None:
                    package = (fetch or fetched)(source, Path(scratch) / "fetched")
                    self._check(package, source)
                    _run(["tar", "-xf", str(package), "-C", f"{scratch}/unpacked"], Path(scratch))
                self._build(Path(scratch))
                _put(Path(scratch) / "built", place)
        except OSError as error:
            raise BuildError(f"{place}: {error.strerror}") from error

    def _check(self, package: Path, source: Package) -> None:
        found = hashlib.sha256(package.read_bytes()).hexdigest()
        if found != source.sha256:
            raise BuildError(
                f"{self.application.name}: {source.package} is not the package that its file names: "
                f"expected SHA-256 {source.sha256}, found {found}"
            )

    def _build(self, scratch: Path) -> None:
        """Run the command in the package's only folder. What it says is kept if it fails."""
        inside = list((scratch / "unpacked").iterdir())
        folder = inside[0] if len(inside) == 1 and inside[0].is_dir() else scratch / "unpacked"
        command = self.application.build_command(scratch / "built")
        log = scratch / "log"
        with log.open("wb") as output:
            status = subprocess.run(
                ["sh", "-c", command],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                check=False,
            ).returncode
        if status != 0:
            kept = log.rename(f"{self.place}.log")
            last = "\n".join(kept.read_text(errors="replace").splitlines()[-_LOG_LINES:])
            raise BuildError(f"{self.application.name}: its build fails with status {status} (log: {kept}):\n{last}")

    def _digest(self) -> str:
        """Digest of all that determines the build, except for the compiler."""
        command, folder = self.application.build, self.application.folder
        files = {}
        if folder is not None:
            for name in sorted(set(_NAMED_FILE.findall(command))):
                file = folder / name
                files[name] = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
        source = self.application.source
        package = ["", ""] if source is None else [source.package, source.sha256]
        known = [*package, command, files]
        return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:_DIGITS]


def fetched(source: Package, folder: Path) -> Path:
    """The package, from the registry that npm or pip uses. See `Fetch`."""
    if source.npm:
        npm = shutil.which("npm")
        if npm is None:
            raise BuildError(f"{source.package} is a package of npm, which is not installed: run  apt-get install npm")
        _run([npm, "pack", "--loglevel=error", "--ignore-scripts", source.npm], folder)
    else:
        # pip asks the package for its metadata, which runs it, so pip has to check its digest first.
        wanted = folder.parent / "wanted.txt"
        wanted.write_text(f"{source.pypi} --hash=sha256:{source.sha256}\n")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
        _run([*pip, "--no-deps", "--no-binary", ":all:", "--requirement", str(wanted)], folder)
    (package,) = folder.iterdir()
    return package


def _put(made: Path, place: Path) -> None:
    """Move the folder to its place, unless another process was faster."""
    try:
        made.rename(place)
    except OSError:
        if not place.is_dir():
            raise


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode != 0:
        last = "\n".join((done.stderr or done.stdout).splitlines()[-_LOG_LINES:])
        raise BuildError(f"{shlex.join(command)} fails with status {done.returncode}:\n{last}")
