"""The process in which a reader gets its inputs. It may hang, be killed or take all its memory."""

import faulthandler
import os
import traceback
from collections.abc import Callable
from pathlib import Path

from .target import FuzzTarget


def start(folder: Path, work: Callable[[], None]) -> int:
    """Do `work` in a copy of this process, whose standard error goes to the file `errors` of the folder.

    Returns the status of the copy, as of `os.waitpid`.
    """
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    faulthandler.disable()  # pytest has set it up to write to its own standard error
    with (folder / "errors").open("w", encoding="utf-8") as errors:
        os.dup2(errors.fileno(), 2)
        try:
            work()
        except BaseException:
            traceback.print_exc(file=errors)
            errors.flush()
            os._exit(1)
    os._exit(0)


def seeds_of(target: FuzzTarget, folder: Path) -> list[bytes]:
    """The target's seeds. Each must be sound."""
    place = folder / "seeds"
    place.mkdir()
    return target.seeds(place)
