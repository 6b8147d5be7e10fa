"""What was found out about files that have not changed since: the digest of one, or the libraries that a program needs.

A command asks this of some five hundred files before it starts a guest. The answers are kept in the cache, so that the
files are read again only when they have changed: another inode, size, or time of a change.

The answer about a file that changed in the last seconds is not kept. The kernel's clock for these times is coarse, so
another change at once may leave them as they are.
"""

import atexit
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from postcrash.harness.files.output import replacing
from postcrash.harness.files.places import cache_folder

FileStates = list[list[int]]
"""Device, inode, size, and times of the last change (ns) of each file."""
ANSWERS_MAX = 8192
"""The oldest answers are forgotten if there are more."""
_SETTLED_NS = 2_000_000_000


class KnownFiles:
    """The answers that are kept in the file `place`. Whatever else is in it is ignored."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._answers = _read(place)
        self._new: dict[str, tuple[FileStates, str]] = {}

    def ask(self, question: str, files: tuple[Path, ...], find_out: Callable[[], str]) -> str:
        """The answer to a question about files. If it is not known of the files as they are, it is found out.

        Raises OSError if one of the files is not there.
        """
        key = "\0".join((question, *map(str, files)))
        began = time.time_ns()
        state = [_state(file) for file in files]
        known = self._answers.get(key)
        if known is not None and known[0] == state:
            return known[1]
        answer = find_out()
        self._answers[key] = (state, answer)
        if all(max(times) < began - _SETTLED_NS for _, _, _, *times in state):
            self._new[key] = (state, answer)
        return answer

    def save(self) -> None:
        """Keep what is new, with what other processes have kept meanwhile. Files that are gone are forgotten."""
        new, self._new = self._new, {}
        if not new:
            return
        known = {key: each for key, each in (_read(self._place) | new).items() if _are_there(key)}
        kept = dict(list(known.items())[-ANSWERS_MAX:])
        with suppress(OSError), replacing(self._place) as file:  # if a disk is full, the answers are found out again
            file.write(json.dumps(kept).encode())


def known_files() -> KnownFiles:
    """The answers in this user's cache. What is new is kept when the program ends."""
    return _kept(cache_folder())


@lru_cache(maxsize=4)
def _kept(cache: Path) -> KnownFiles:
    known = KnownFiles(cache / "known-files.json")
    atexit.register(known.save)
    return known


def _state(file: Path) -> list[int]:
    now = file.stat()
    return [now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns]


def _are_there(key: str) -> bool:
    return all(os.path.exists(file) for file in key.split("\0")[1:])


def _read(place: Path) -> dict[str, tuple[FileStates, str]]:
    try:
        told: Any = json.loads(place.read_bytes())
        return {str(key): (state, answer) for key, (state, answer) in told.items() if isinstance(answer, str)}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}
