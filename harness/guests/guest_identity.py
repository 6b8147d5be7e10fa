"""Digests of guests. Two guests with the same name may differ, and give different results."""

import hashlib
from functools import lru_cache
from pathlib import Path

from postcrash.harness.files.digest import content_digest
from postcrash.harness.guests.engine import Engine, Qemu
from postcrash.harness.guests.guest_root import AGENT
from postcrash.harness.guests.kernels.kernel import Kernel


def guest_digest(kernel: Kernel, root: Path) -> str:
    """SHA-256 over the content of the kernel, of what runs it, and of the folder `root` with modules and programs.

    The agent is left out, so that a finding keeps its id when only our own code has changed. `tool_digest` covers our
    code, including the agent. Raises InfrastructureError if a file cannot be read.
    """
    parts = (content_digest(kernel.path), _engine(kernel.engine), _root_digest(root))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _engine(engine: Engine) -> str:
    """The engine, without the settings that only say how long a boot may take or where a log goes."""
    program = content_digest(engine.program) if isinstance(engine, Qemu) else ""
    return f"{engine.label}, {engine.memory_mib} MiB {program}"


@lru_cache(maxsize=64)
def _root_digest(root: Path) -> str:
    """A root folder never changes once it is there, because its name is a digest of its contents."""
    files = sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file())
    parts = [f"{file}\0{content_digest(root / file)}" for file in files if file != AGENT]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
