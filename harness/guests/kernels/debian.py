"""Kernels from Debian's archive. apt finds, downloads and verifies packages; they are unpacked, never installed.

Each suite has an apt configuration of its own in the cache, with the mirror that this machine uses. The system's own
apt state is not touched, so a suite newer than the system's does no harm.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from postcrash.harness.errors import InfrastructureError, UsageError
from postcrash.harness.files.scratch import scratch
from postcrash.harness.guests.kernels.kernel import uml_version
from postcrash.harness.guests.kernels.stock import LIBRARIES, KernelParts, run_with
from postcrash.targets import program_path

IMAGE = "linux-image-amd64"
UML = "user-mode-linux"
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_SUITE = re.compile(r"[a-z][a-z0-9-]*")
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9.+-]*")
_IMAGES = re.compile(r"linux-image-\d[\w.+~-]*-amd64")
_PART = re.compile(r"linux-(image|base|binary|modules)-\d[\w.+~-]*-amd64")
_TIMEOUT_S = 900


class Suite:
    """One suite of Debian. Raises UsageError for an impossible name, and InfrastructureError if apt fails."""

    def __init__(self, name: str, cache: Path) -> None:
        if not _SUITE.fullmatch(name):
            raise UsageError(f"no suite of Debian is called {name!r}: one is `stable` or `trixie-backports`")
        if not _KEYRING.is_file():
            raise InfrastructureError(f"there is no {_KEYRING}: run  apt-get install debian-archive-keyring")
        self.name = name
        self._folder = (cache / "apt" / name).resolve()
        self._configure()
        self._apt("apt-get", "update", "-qq")

    def packages(self) -> list[dict[str, str]]:
        """The kernels of the suite, each with `name` and `version`."""
        names = [name for name in self._apt("apt-cache", "pkgnames", "linux-image-").split() if _IMAGES.fullmatch(name)]
        table = self._apt("apt-cache", "madison", *sorted(names), UML)
        rows = [[cell.strip() for cell in row.split("|")] for row in table.splitlines()]
        return [{"name": row[0], "version": row[1]} for row in rows if len(row) == 3 and row[2].endswith("Packages")]

    def origin(self, package: str) -> str:
        """The package with the kernel itself that `unpacked` would fetch for `package` now, and its version."""
        image = _with_kernel(self._needed(package), package)
        newest, *_ = self._apt("apt-cache", "madison", image).splitlines()
        return f"{image} {newest.split('|')[1].strip()}"

    @contextmanager
    def unpacked(self, package: str) -> Iterator[KernelParts]:
        """The kernel of `package`, in a temporary folder."""
        packages = self._needed(package)
        with scratch() as folder:
            root = folder / "root"
            versions = {each: self._unpack(each, root) for each in packages}
            image = _with_kernel(packages, package)
            parts = _parts(root, f"{image} {versions[image]} ({self.name})")
            yield parts if parts.is_image else self._with_libraries(parts, root)

    @contextmanager
    def with_needed(self, package: str) -> Iterator[Path]:
        """`package` and all packages that it depends on, unpacked into a temporary folder."""
        packages = self._apt("apt-cache", "depends", "--recurse", "--important", package).splitlines()
        with scratch() as folder:
            root = folder / "root"
            for each in filter(_PACKAGE.fullmatch, packages):
                self._unpack(each, root)
            yield root

    def _unpack(self, package: str, root: Path) -> str:
        """Unpack the package into `root` and return its version."""
        with tempfile.TemporaryDirectory(dir=root.parent) as fetched:
            self._apt("apt-get", "download", "-qq", package, folder=fetched)
            (archive,) = Path(fetched).glob("*.deb")
            _run(["dpkg-deb", "-x", str(archive), str(root)])
            return _run(["dpkg-deb", "-f", str(archive), "Version"]).strip()

    def _with_libraries(self, parts: KernelParts, root: Path) -> KernelParts:
        """A user-mode Linux. It gets the C library of its own suite if this machine's library is too old for it."""
        with suppress(InfrastructureError):
            uml_version(parts.kernel)
            return parts
        self._unpack("libc6", root)
        (libraries,) = {loader.resolve().parent for loader in root.rglob(f"x86_64-linux-gnu/{LIBRARIES[0]}")}
        run_with(parts.kernel, libraries)
        return replace(parts, libraries=libraries)

    def _needed(self, package: str) -> list[str]:
        """The package, and the packages with a kernel's parts: `linux-image-amd64` is empty and depends on a real one.

        Newer suites have the image and the modules in separate packages.
        """
        if not _PACKAGE.fullmatch(package):
            raise UsageError(f"no package of Debian can be called {package!r}")
        if not self._apt("apt-cache", "madison", package).strip():
            raise UsageError(f"{self.name} has no package {package!r}: see  postcrash kernels list --suite {self.name}")
        needed = [package]
        for each in needed:
            depends = self._apt("apt-cache", "depends", "--important", each).split()
            needed += [name for name in depends if _PART.fullmatch(name) and name not in needed]
        return needed

    def _configure(self) -> None:
        try:
            for folder in ("lists/partial", "cache/archives/partial", "nothing"):
                (self._folder / folder).mkdir(parents=True, exist_ok=True)
            (self._folder / "status").touch()
            source = f"deb [arch=amd64 signed-by={_KEYRING}] {_mirror()} {self.name} main\n"
            (self._folder / "sources.list").write_text(source)
            (self._folder / "apt.conf").write_text(self._settings())
        except OSError as error:
            raise InfrastructureError(f"{self._folder}: {error.strerror}") from error

    def _settings(self) -> str:
        at = self._folder
        return f'''
APT::Architecture "amd64";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Dir::Cache "{at}/cache";
Dir::Etc::Preferences "{at}/nothing/preferences";
Dir::Etc::PreferencesParts "{at}/nothing";
Dir::Etc::SourceList "{at}/sources.list";
Dir::Etc::SourceParts "{at}/nothing";
Dir::State::Lists "{at}/lists";
Dir::State::status "{at}/status";
'''

    def _apt(self, *command: str, folder: str | None = None) -> str:
        return _run(list(command), folder, {"APT_CONFIG": str(self._folder / "apt.conf")})


def _with_kernel(packages: list[str], package: str) -> str:
    """Of the packages that `package` needs, the one with the kernel itself."""
    return next((each for each in reversed(packages) if each.startswith("linux-image-")), package)


def installed_package(file: Path) -> str:
    """The installed package that has the file, with its version. Empty if none is known."""
    with suppress(InfrastructureError):
        package = _run(["dpkg-query", "-S", str(file)]).partition(":")[0]
        return _run(["dpkg-query", "-W", "-f", "${Package} ${Version}", package])
    return ""


def _mirror() -> str:
    """The mirror of Debian's archive that this machine's apt uses."""
    targets = _run(["apt-get", "indextargets", "--format", "$(LABEL)|$(SITE)", "Created-By: Packages"]).splitlines()
    mirrors = [target.partition("|")[2] for target in targets if target.startswith("Debian|")]
    if not mirrors:
        raise InfrastructureError(
            "apt knows no mirror of Debian's archive: is one in its sources, was apt-get update run?"
        )
    return mirrors[0]


def _parts(root: Path, origin: str) -> KernelParts:
    """The parts of a kernel, where Debian's packages put them."""

    def first(*patterns: str) -> Path | None:
        return next((path for pattern in patterns for path in root.glob(pattern)), None)

    kernel = first("boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz", "usr/bin/linux.uml", "usr/bin/linux")
    if kernel is None:
        raise UsageError(f"{origin} holds no kernel")
    modules = first("lib/modules/*", "usr/lib/modules/*", "usr/lib/uml/modules/*")
    if modules is not None and not (modules / "modules.dep").is_file():
        _run(["depmod", "-b", str(modules.parents[2]), modules.name])
    return KernelParts(kernel, modules, first("boot/config-*", "usr/lib/modules/*/config"), origin)


def _run(command: list[str], folder: str | None = None, environment: dict[str, str] | None = None) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | {"LC_ALL": "C", "PATH": program_path()} | (environment or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError as error:
        hint = ": run  apt-get install kmod" if command[0] == "depmod" else ""
        raise InfrastructureError(f"{command[0]} is not installed{hint}") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise InfrastructureError(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        errors = " ".join(done.stderr.split())
        raise InfrastructureError(f"{' '.join(command[:2])} failed: {errors or done.returncode}")
    return done.stdout
