"""Tries whether user-mode Linux boots on this machine, and keeps the consoles of guests that do not."""

import hashlib
import os
import tempfile
import time
from pathlib import Path

from postcrash.harness.errors import BootError, InfrastructureError
from postcrash.harness.files.digest import content_digest
from postcrash.harness.guests.engine import BOOT_ID, uml_library
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.harness.guests.machine import Machine, MachineSettings
from postcrash.store.consoles import Casualty, keep_console


def why_no_boot(kernel: Kernel, root: Path, cache: Path, *, fresh: bool = False) -> str | None:
    """Why user-mode Linux does not boot here: one sentence that names the file with the console. None if it boots.

    Each kernel is tried once between two starts of this machine, unless `fresh`. A kernel that runs out of time is
    tried twice, and tried again at the next call, because this machine may have been busy. Raises InfrastructureError
    if the boot cannot be tried.
    """
    tried = hashlib.sha256(f"{content_digest(kernel.path)} {content_digest(uml_library())}".encode()).hexdigest()[:16]
    answer = cache / "uml" / f"{BOOT_ID.read_text().strip()}-{tried}"
    try:
        if answer.is_file() and not fresh:
            return answer.read_text() or None
        answer.parent.mkdir(parents=True, exist_ok=True)
        answer.unlink(missing_ok=True)
        settings = MachineSettings(kernel.path, root, kernel.engine)
        reason, in_time = _try_boot(settings, cache)
        if not in_time:
            reason, in_time = _try_boot(settings, cache)
        if in_time:
            _write(answer, reason)
        return reason or None
    except OSError as error:
        raise InfrastructureError(f"{answer}: {error.strerror}") from error


def _try_boot(settings: MachineSettings, cache: Path) -> tuple[str, bool]:
    """Why the kernel does not boot (empty if it does), and whether the answer came before the time was over."""
    started = time.monotonic()
    try:
        with Machine(settings):
            return "", True
    except BootError as error:
        in_time = time.monotonic() - started < settings.engine.boot_timeout_s
        return _with_console(str(error), error.evidence, cache), in_time


def _with_console(sentence: str, console: str, cache: Path) -> str:
    """The sentence with the name of the file in `cache` that now has the console. Raises OSError."""
    if not console.strip():
        return f"{sentence} (its console is empty)"
    return f"{sentence} (console: {keep_console(cache, Casualty(sentence, console))})"


def _write(place: Path, text: str) -> None:
    """Write the whole text, or nothing."""
    handle, name = tempfile.mkstemp(dir=place.parent)
    with os.fdopen(handle, "w", errors="replace") as file:
        file.write(text)
    os.rename(name, place)
