"""The user's stock of kernels: fetched from Debian or added from a file, each in a folder of its own in the cache.

NAME/kernel         a bzImage, or a user-mode Linux
NAME/modules/       what `make modules_install` puts into lib/modules/VERSION, with depmod's lists; if it has modules
NAME/config         its configuration, if it is known
NAME/kernel.json    {"version", "origin"}
"""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from postcrash.harness.errors import InfrastructureError, UsageError
from postcrash.harness.guests.kernels.config import config_of, missing_options
from postcrash.harness.guests.kernels.copies import kernel_copy
from postcrash.harness.guests.kernels.kernel import (
    INSTALLED,
    UML_MODULES,
    Kernel,
    find_kernel,
    image_version,
    kernel_at,
    uml_version,
)
from postcrash.harness.guests.kernels.modules import ON_DEMAND, PROGRAM_MODULES, Modules

ENGINES = ("auto", "uml", "qemu")
KEPT_MODULES = (
    *("extra", "updates", "kernel/drivers/block", "kernel/drivers/md", "kernel/drivers/virtio"),
    *("kernel/fs", "kernel/kernel"),
)
"""Folders whose modules a guest may need: modules built outside of the kernel, and a tenth of the kernel's own.

kernel/kernel has configs.ko.
"""
LIBRARIES = ("ld-linux-x86-64.so.2", "libc.so.6")
"""Debian's user-mode Linux needs only the C library. The loader comes first in this list."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]*")
_SERIES = re.compile(r"[0-9]{1,3}(\.[0-9]{1,5}){1,2}")
_HOST_MODULES = Path("/lib/modules")


@dataclass(frozen=True, slots=True)
class StockedKernel:
    """A kernel of the stock. `origin` says where the kernel comes from."""

    name: str
    version: str
    origin: str
    folder: Path

    @property
    def path(self) -> Path:
        """The kernel itself."""
        return self.folder / "kernel"

    @property
    def modules(self) -> Path | None:
        """The folder of its modules, if it has any."""
        folder = self.folder / "modules"
        return folder if folder.is_dir() else None

    @property
    def engine(self) -> str:
        """What runs it: `qemu` or `uml`."""
        return engine_for(self.path)

    def kernel(self, cache: Path) -> Kernel:
        """The kernel with what runs it. Raises as `kernel_at`.

        It is a copy, so that a kernel that takes its name meanwhile does not run in its place.
        """
        copy = kernel_copy(self.path, cache)
        return replace(kernel_at(copy, self.modules, cache), given=self.path, name=self.name)

    def config(self) -> str | None:
        """Its configuration, from a file or from the kernel itself. None if it is not known."""
        return config_of(self.path, self.modules)


@dataclass(frozen=True, slots=True)
class KernelParts:
    """What a kernel is made of, before it is in the stock. `libraries`: the C library that a user-mode Linux needs."""

    kernel: Path
    modules: Path | None
    config: Path | None
    origin: str
    libraries: Path | None = None

    @property
    def is_image(self) -> bool:
        """Whether the kernel is a bzImage, and not a user-mode Linux."""
        return engine_for(self.kernel) == "qemu"


class Stock:
    """The kernels in `folder`."""

    def __init__(self, cache: Path) -> None:
        self._folder = cache / "kernels"

    def all(self) -> list[StockedKernel]:
        """Every kernel, by version."""
        found = [self._read(file.parent) for file in self._folder.glob("*/kernel.json")]
        return sorted(found, key=lambda kernel: (_version_key(kernel.version), kernel.name))

    def images(self) -> list[StockedKernel]:
        """The kernels for QEMU, by version."""
        return [kernel for kernel in self.all() if kernel.engine == "qemu"]

    def named(self, name: str) -> StockedKernel | None:
        """The kernel of that name, if there is one."""
        return next((kernel for kernel in self.all() if kernel.name == name), None)

    def add(self, name: str, parts: KernelParts, *, replaces: bool = False) -> StockedKernel:
        """Copy a kernel into the stock. If it `replaces`, it takes the place of the one that has its name.

        Raises UsageError if the file is no kernel, or if the name is taken.
        """
        if not _NAME.fullmatch(name):
            raise UsageError(f"a kernel cannot be called {name!r}: letters, digits and . + _ - are allowed")
        if name == INSTALLED:
            raise UsageError(f"a kernel cannot be called {name!r}: that is the one that the package installed")
        if self.named(name) and not replaces:
            raise UsageError(
                f"a kernel is called {name!r} already: --replace puts the new one in its place, "
                "or choose another name with --name"
            )
        version = version_of(parts.kernel)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".new-", dir=self._folder) as made:
                folder = Path(made) / "kernel"
                _copy(parts, folder)
                if parts.libraries is not None:
                    run_with(folder / "kernel", self._folder.resolve() / name / "lib")
                (folder / "kernel.json").write_text(json.dumps({"version": version, "origin": parts.origin}))
                self._take_away(name, Path(made))
                folder.rename(self._folder / name)
        except OSError as error:
            raise InfrastructureError(f"kernel {name}: {error}") from error
        return self._read(self._folder / name)

    def remove(self, name: str) -> None:
        """Remove the kernel of that name, even a damaged one. Raises UsageError if there is none."""
        names = sorted(folder.name for folder in self._folder.glob("[!.]*/"))
        if name not in names:
            raise UsageError(f"no kernel is called {name!r} (postcrash kernels list: {', '.join(names) or 'none'})")
        try:
            with tempfile.TemporaryDirectory(prefix=".old-", dir=self._folder) as aside:
                self._take_away(name, Path(aside))
        except OSError as error:
            raise InfrastructureError(f"kernel {name}: {error}") from error

    def _take_away(self, name: str, aside: Path) -> None:
        """Move the kernel of that name, if there is one, to the folder `aside`, which is removed soon. OSError."""
        with suppress(FileNotFoundError):
            (self._folder / name).rename(aside / "old")

    def _read(self, folder: Path) -> StockedKernel:
        try:
            about = json.loads((folder / "kernel.json").read_text())
            return StockedKernel(folder.name, str(about["version"]), str(about["origin"]), folder)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InfrastructureError(
                f"{folder} is damaged: run  postcrash kernels remove {folder.name}  and fetch or add it again"
            ) from error


def _copy(parts: KernelParts, folder: Path) -> None:
    folder.mkdir()
    shutil.copy(parts.kernel, folder / "kernel")
    if parts.config is not None:
        shutil.copy(parts.config, folder / "config")
    if parts.modules is not None:
        lists = [path for path in parts.modules.glob("modules.*") if path.is_file()]
        for file in [*lists, *_kept(Modules(parts.modules))]:
            place = folder / "modules" / file.relative_to(parts.modules)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place)
    if parts.libraries is not None:
        (folder / "lib").mkdir()
        for library in LIBRARIES:
            shutil.copy(parts.libraries / library, folder / "lib")


def _kept(modules: Modules) -> list[Path]:
    files = [*modules.within(*KEPT_MODULES), *modules.needed_by(*PROGRAM_MODULES, *ON_DEMAND)]
    return list(dict.fromkeys(files))


def run_with(program: Path, libraries: Path) -> None:
    """Make `program` use the C library in `libraries`.

    Calling the loader would not be enough, because the program runs itself again.
    """
    loader = str(libraries / LIBRARIES[0])
    command = ["patchelf", "--set-interpreter", loader, "--set-rpath", str(libraries), str(program)]
    try:
        subprocess.run(command, capture_output=True, text=True, check=True)
    except FileNotFoundError as error:
        raise InfrastructureError("patchelf is not installed: run  apt-get install patchelf") from error
    except subprocess.CalledProcessError as error:
        raise InfrastructureError(f"patchelf cannot change {program.name}: {error.stderr.strip()}") from error


def choose_kernel(engine: str, name: str | None, cache: Path) -> Kernel:
    """The kernel called `name` in the stock, or a copy of the kernel in the file `name`, which stays as it is now.

    Without a name it is the one that `engine` has here. `engine` is one of ENGINES; `auto` is the engine that the
    kernel needs. A version such as `6.12` stands for the first of `kernels_of`. Raises UsageError, InfrastructureError.
    """
    if name is None:
        return _unnamed(engine, cache)
    if _is_series(name, cache):
        return next(kernels_of(engine, name, cache))
    stocked = Stock(cache).named(name)
    # The path must be absolute: a name without a folder would be looked for in PATH when it is run.
    path = stocked.path if stocked else Path(name).absolute()
    if not path.is_file():
        known = ", ".join(kernel.name for kernel in Stock(cache).all()) or "none"
        raise UsageError(f"no kernel is called {name!r}, and it is no file (postcrash kernels list: {known})")
    if engine not in ("auto", engine_for(path)):
        raise UsageError(f"--engine {engine} cannot run {name}: it needs --engine {engine_for(path)}")
    if stocked is not None:
        return stocked.kernel(cache)
    version_of(path)  # an error names the user's file, not its copy
    return replace(kernel_of_copy(kernel_copy(path, cache), cache), given=path, name=path.name)


def kernel_of_copy(copy: Path, cache: Path) -> Kernel:
    """The kernel in the file `copy`, with the modules of its version that are installed. Raises as `kernel_at`."""
    return kernel_at(copy, _installed_modules(version_of(copy)), cache)


def kernels_of(engine: str, name: str | None, cache: Path) -> Iterator[Kernel]:
    """The kernels that `name` stands for, best first: all kernels of a version such as `6.12`, or the one so named.

    User-mode Linux comes before images, because QEMU is far slower. Newer kernels come before older ones. Raises as
    `choose_kernel` does.
    """
    if name is None or not _is_series(name, cache):
        yield choose_kernel(engine, name, cache)
        return
    wanted = re.compile(rf"{re.escape(name)}(?![0-9])")
    kinds = [kind for kind in ("uml", "qemu") if engine in ("auto", kind)]
    newest_first = [kernel for kernel in reversed(Stock(cache).all()) if wanted.match(kernel.version)]
    stocked = [kernel for kind in kinds for kernel in newest_first if kernel.engine == kind]
    installed = _installed_uml() if "uml" in kinds else None
    if installed is not None and wanted.match(installed.version):
        yield installed
    elif not stocked:
        known = ", ".join(kernel.name for kernel in Stock(cache).all()) or "none"
        raise UsageError(
            f"no kernel of version {name} is here for --engine {engine} (postcrash kernels list: {known}); "
            "Debian's suites have others: postcrash kernels list --suite sid"
        )
    for kernel in stocked:
        yield kernel.kernel(cache)


def _installed_uml() -> Kernel | None:
    with suppress(InfrastructureError):
        return find_kernel()
    return None


def _is_series(name: str, cache: Path) -> bool:
    """Whether `name` is a version, and not the name of a kernel or of a file."""
    return bool(_SERIES.fullmatch(name)) and not Stock(cache).named(name) and not Path(name).is_file()


def missing_in(kernel: StockedKernel) -> list[str] | None:
    """The options that the kernel's configuration lacks. None if the configuration is not known."""
    config = kernel.config()
    return None if config is None else missing_options(config, kernel.engine)


def _installed_modules(version: str) -> Path | None:
    """The modules of that version that are installed on this machine."""
    folders = (parent / version for parent in (_HOST_MODULES, UML_MODULES))
    return next((folder for folder in folders if folder.is_dir()), None)


def _unnamed(engine: str, cache: Path) -> Kernel:
    images = Stock(cache).images()
    if engine == "uml" or (engine == "auto" and not images):
        return find_kernel()
    if engine == "auto":
        with suppress(InfrastructureError):
            return find_kernel()
    if not images:
        raise InfrastructureError("there is no kernel for QEMU: run  postcrash kernels fetch")
    return images[-1].kernel(cache)


def engine_for(path: Path) -> str:
    """What runs the kernel in the file `path`."""
    return "uml" if image_version(path) is None else "qemu"


def version_of(path: Path) -> str:
    """The version of the kernel in the file `path`. Raises UsageError if it holds none."""
    try:
        return image_version(path) or uml_version(path)
    except InfrastructureError as error:
        raise UsageError(f"{path} is neither a kernel image (bzImage) nor a user-mode Linux: {error}") from error


def _version_key(version: str) -> list[tuple[int, str]]:
    return [(int(number or 0), text) for number, text in re.findall(r"(\d+)|(\D+)", version)]
