"""The guest's root: a small read-only folder with the agent as init, kernel modules and the targets' programs.

The guest sees nothing else of the host. This matters because the guest may be working on a hostile image.
"""

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.files.digest import content_digest
from postcrash.harness.guests.binaries import find_binary
from postcrash.harness.guests.engine import Uml
from postcrash.harness.guests.initramfs import initramfs
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.harness.guests.kernels.modules import ON_DEMAND, PROGRAM_MODULES, Modules, module_name, uncompressed
from postcrash.harness.guests.program_files import Content, target_files
from postcrash.targets import TARGETS, Target

AGENT = Path("init")
"""The agent's place in a root folder."""
_MODULES = Path("modules")
_BOOT_MODULES: tuple[str, ...] = ("virtio_pci", "virtio_blk")
_MAPPINGS = ("log-writes", "mirror", "flakey")
_CHARACTER_SET, _CODE_PAGE = re.compile(r"(?:^|,)(iocharset|nls|codepage)=([\w-]+)"), "cp"
"""Options of vfat, exfat, ntfs3, jfs and others that name a character set, whose module the kernel asks for."""


def guest_root(kernel: Kernel, cache: Path, targets: Sequence[Target] = TARGETS) -> Path:
    """The root folder for `kernel` and `targets`. It is made in `cache` if it is not there."""
    files: dict[Path, Content] = {AGENT: find_binary("postcrash-agent"), **module_files(kernel, targets)}
    for target in targets:
        files |= target_files(target)
    return cached_root(files, cache)


def cached_root(files: Mapping[Path, Content], cache: Path) -> Path:
    """A root folder with `files` and empty folders to mount on. It is made in `cache` if it is not there."""
    folder = cache / "guest-root" / _digest(files)
    if not folder.is_dir():
        _make(folder, files)
    return folder


def packed(root: Path) -> Path:
    """The root folder as an initramfs. The archive stands beside the folder."""
    archive = root.with_suffix(".cpio")
    try:
        if not archive.is_file():
            with tempfile.NamedTemporaryFile(prefix=".root-", dir=archive.parent, delete=False) as made:
                made.write(initramfs(root))
            Path(made.name).rename(archive)
    except OSError as error:
        raise InfrastructureError(f"guest root {archive}: {error.strerror or error}") from error
    return archive


def has_program(root: Path, program: str) -> bool:
    """Whether the guest has `program`, which it has by its absolute path."""
    return os.path.isabs(program) and (root / Path(program).relative_to("/")).is_file()


def module_files(kernel: Kernel, targets: Sequence[Target]) -> dict[Path, Content]:
    """Modules of `kernel` that guests may need, with lists: those of the boot, and by what the agent or kernel asks."""
    if kernel.modules is None:
        return {}
    modules = Modules(kernel.modules)
    # Only user-mode Linux runs programs.
    programs = _there(modules, PROGRAM_MODULES) if isinstance(kernel.engine, Uml) else ()
    needs = {"boot": _BOOT_MODULES, "programs": tuple(programs)}
    needs |= {kind: (f"dm_{kind.replace('-', '_')}",) for kind in _MAPPINGS}
    for target in targets:
        needs[target.fstype] = (*needs.get(target.fstype, (f"fs-{target.fstype}",)), *target.modules)
    needs |= {name: (name,) for name in _there(modules, (*ON_DEMAND, *sorted(_character_sets(targets))))}
    files: dict[Path, Content] = {}
    for need, names in needs.items():
        places = {_MODULES / f"{module_name(file.name)}.ko": file for file in modules.needed_by(*names)}
        files |= places
        files[_MODULES / need] = "".join(f"/{place}\n" for place in places).encode()
    return files


def _character_sets(targets: Iterable[Target]) -> set[str]:
    """The modules of the character sets that mount options name."""
    return {
        f"nls_{_CODE_PAGE if match[1] == 'codepage' else ''}{match[2]}"
        for target in targets
        for match in _CHARACTER_SET.finditer(target.options)
    }


def _there(modules: Modules, names: Iterable[str]) -> Iterator[str]:
    """Those whose files are there. A stock keeps only what guests may need."""
    for name in names:
        if all(file.is_file() for file in modules.needed_by(name)):
            yield name


def _digest(files: Mapping[Path, Content]) -> str:
    held = (f"{place}\0{_content_digest(files[place])}\n" for place in sorted(files))
    return hashlib.sha256("".join(held).encode()).hexdigest()[:16]


def _content_digest(content: Content) -> str:
    return content_digest(content) if isinstance(content, Path) else hashlib.sha256(content).hexdigest()


def _bytes_of(content: Content, place: Path) -> bytes:
    """What the file at `place` holds. The kernel takes modules only if they are not compressed."""
    if isinstance(content, bytes):
        return content
    return uncompressed(content) if place.parent == _MODULES else content.read_bytes()


def _make(folder: Path, files: Mapping[Path, Content]) -> None:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".root-", dir=folder.parent) as made:
            root = Path(made) / "root"
            for empty in ("dev", "proc", "sys", "tmp", "mnt"):
                (root / empty).mkdir(parents=True)
            for place, content in files.items():
                (root / place).parent.mkdir(parents=True, exist_ok=True)
                (root / place).write_bytes(_bytes_of(content, place))
                (root / place).chmod(0o755)
            if not folder.is_dir():
                root.rename(folder)
    except OSError as error:
        if not folder.is_dir():
            raise InfrastructureError(f"guest root {folder}: {error.strerror or error}") from error
