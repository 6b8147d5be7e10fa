"""Caches facts about files until the files change: a file's digest, or the libraries that a program needs.

A command needs them for some five hundred files before it starts a guest. A file is read again only if its inode, size
or change times differ.

Facts about files that changed in the last seconds are not cached: the kernel's clock for change times is coarse, so an
immediate second change may leave the times equal.
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
    """The answers that are cached in the file `place`. Other content of the file is ignored."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._answers = _read(place)
        self._new: dict[str, tuple[FileStates, str]] = {}

    def ask(self, question: str, files: tuple[Path, ...], compute: Callable[[], str]) -> str:
        """Returns the cached answer to a question about files, or computes it if one of them has changed.

        Raises OSError if one of the files does not exist.
        """
        key = "\0".join((question, *map(str, files)))
        began = time.time_ns()
        state = [_state(file) for file in files]
        known = self._answers.get(key)
        if known is not None and known[0] == state:
            return known[1]
        answer = compute()
        self._answers[key] = (state, answer)
        if all(max(times) < began - _SETTLED_NS for _, _, _, *times in state):
            self._new[key] = (state, answer)
        return answer

    def save(self) -> None:
        """Writes new answers to the file, besides those of other processes. Answers about missing files are dropped."""
        new, self._new = self._new, {}
        if not new:
            return
        answers = {key: answer for key, answer in (_read(self._place) | new).items() if _exist(key)}
        with suppress(OSError), replacing(self._place) as file:  # if a disk is full, the answers are computed again
            file.write(json.dumps(dict(list(answers.items())[-ANSWERS_MAX:])).encode())


def known_files() -> KnownFiles:
    """Returns the answers in this user's cache. New ones are saved when the program ends."""
    return _loaded(cache_folder())


@lru_cache(maxsize=4)
def _loaded(cache: Path) -> KnownFiles:
    known = KnownFiles(cache / "known-files.json")
    atexit.register(known.save)
    return known


def _state(file: Path) -> list[int]:
    now = file.stat()
    return [now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns]


def _exist(key: str) -> bool:
    return all(os.path.exists(file) for file in key.split("\0")[1:])


def _read(place: Path) -> dict[str, tuple[FileStates, str]]:
    try:
        document: Any = json.loads(place.read_bytes())
        return {str(key): (state, answer) for key, (state, answer) in document.items() if isinstance(answer, str)}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}
