"""The guest's root: a small read-only folder with the agent as init, the block driver and the fsck programs.

Nothing else of the host is visible to the guest, which may be busy with a hostile image.
"""

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from postcrash.harness.binaries import BinaryNotFoundError, find_binary
from postcrash.harness.errors import InfrastructureError
from postcrash.harness.kernel import Kernel
from postcrash.targets import TARGETS

_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")


def guest_root(kernel: Kernel, cache: Path) -> Path:
    """The root folder for `kernel`, made in `cache` if it is not there."""
    try:
        agent = find_binary("postcrash-agent")
    except BinaryNotFoundError as error:
        raise InfrastructureError(str(error)) from error
    files = {Path("init"): agent, Path("virtio_blk.ko"): kernel.virtio_blk}
    for program in sorted({target.fsck[0] for target in TARGETS}):
        if Path(program).exists():
            files |= {Path(file).relative_to("/"): Path(file) for file in [program, *_libraries(program)]}
    folder = cache / "guest-root" / _digest(files)
    if not folder.is_dir():
        _make(folder, files)
    return folder


def has_program(root: Path, program: str) -> bool:
    """Whether the guest has `program` (an absolute path)."""
    return (root / Path(program).relative_to("/")).is_file()


def _libraries(program: str) -> Iterable[str]:
    try:
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    except OSError as error:
        raise InfrastructureError(f"ldd cannot be run: {error.strerror}") from error
    return _LIBRARY.findall(listed.stdout)


def _digest(files: dict[Path, Path]) -> str:
    digest = hashlib.sha256()
    for place, file in sorted(files.items()):
        digest.update(f"{place}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _make(folder: Path, files: dict[Path, Path]) -> None:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".root-", dir=folder.parent) as made:
            root = Path(made) / "root"
            for empty in ("dev", "proc", "mnt"):
                (root / empty).mkdir(parents=True)
            for place, file in files.items():
                (root / place).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, root / place)
            if not folder.is_dir():
                root.rename(folder)
    except OSError as error:
        if not folder.is_dir():
            raise InfrastructureError(f"guest root {folder}: {error.strerror or error}") from error
