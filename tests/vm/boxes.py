"""Boxes of xsync in a guest: how tests start them, and what they say."""

import atexit
import shlex
import shutil
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from postcrash.harness.files.places import cache_folder
from postcrash.harness.files.scratch import ScratchFolder
from postcrash.harness.guests.binaries import find_binary
from postcrash.harness.guests.machine import Machine
from postcrash.model import Workload
from postcrash.model.operation import RUN, SAYS, Operation
from postcrash.targets import base_image, target_named


@lru_cache(maxsize=1)
def _programs() -> Path:
    folder = ScratchFolder(Path("/var/tmp"))
    atexit.register(folder.remove)
    folder.path.chmod(0o755)
    return folder.path


def built(name: str) -> Path:
    """A copy of a program of ours that boxes see, and whose name a shell need not quote.

    The checkout itself may be in /tmp, of which a box has its own, or in a folder whose name has blanks.
    """
    program = _programs() / name
    if not program.exists():
        shutil.copy(find_binary(name), program)
    return program


ATTEMPTS = Path(__file__).with_name("xsync_attempts.py")
XSYNC = f"{built('xsync')} run --fs /mnt --"
"""Runs the command that follows in a box with the test disk."""
SECONDS = 60
UP = "until grep -qs up /tmp/up; do sleep 0.1; done"
"""Waits for a process that says so in /tmp/up."""
SLEEPING = "sh -c 'echo up; exec sleep 8' >/tmp/up"
"""A command that stays in its box, and says when it is there."""

InGuest = Callable[..., list[str]]


def said_by(machine: Machine, folder: Path, script: str, target: str = "ext4-journal") -> list[str]:
    """What a shell script says on both streams, by line. It runs outside of any box, as root; `folder` is for files."""
    chosen = target_named(target)
    base = base_image(chosen, cache_folder() / "bases")
    file = folder / "script"
    # Nobody may be in the file system when it is given to a box.
    file.write_text(f"exec 2>&1; cd /; xs='{XSYNC}'; cp {shlex.quote(str(ATTEMPTS))} /mnt/attempts.py\n{script}\n")
    workload = Workload("xsync", (), (Operation(RUN, value=f"cd /; exec sh {file}", seconds=SECONDS),))
    ran = machine.record(base.path, chosen.mount, workload, folder / "recording.pcr", {})
    return [operation.value for operation in ran.operations if operation.word == SAYS]
