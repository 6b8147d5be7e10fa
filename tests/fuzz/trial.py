"""Gives a reader one input after the other, and ends the process at the first answer that breaks the promise.

The promise: a sound value, or an error of a documented class with one printable line, within bounded time and memory.
"""

import os
import resource
import signal
from pathlib import Path

from postcrash.model.numbers import allow_large_numbers

from .target import FuzzTarget

MEMORY_MAX = 1 << 30
"""The most address space, in bytes, that a process takes for its inputs."""
TEXT_MAX = 4000
"""The longest message of an error, in characters."""
FAULT_FILE = "fault"
FAULT_CODE = 99
_INPUTS = "inputs"


class Trial:
    """A target and the folder with its input. After a fault, the input is there, and the fault's text beside it."""

    def __init__(self, target: FuzzTarget, folder: Path) -> None:
        self._target = target
        self._folder = folder
        self._input = input_of(target, folder)
        self._input.parent.mkdir(exist_ok=True)

    def limit_memory(self) -> None:
        """Bound what the process takes from now on."""
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + MEMORY_MAX
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def try_one(self, content: bytes) -> None:
        """Have the input read. A fault ends the process with `FAULT_CODE`."""
        self._input.write_bytes(self._target.repair(content))
        signal.setitimer(signal.ITIMER_PROF, self._target.cpu_seconds)  # SIGPROF ends the process, whatever it does
        fault = objection(self._target, self._input)
        signal.setitimer(signal.ITIMER_PROF, 0)
        if fault is not None:
            (self._folder / FAULT_FILE).write_text(fault, encoding="utf-8", errors="backslashreplace")
            os._exit(FAULT_CODE)


def input_of(target: FuzzTarget, folder: Path) -> Path:
    """The file that a trial in `folder` reads."""
    return folder / _INPUTS / target.file


def objection(target: FuzzTarget, file: Path) -> str | None:
    """What is wrong with the reader's answer; None if nothing is."""
    allow_large_numbers()  # as every command does
    try:
        target.read(file)
    except target.errors as error:
        text = str(error)
        if not text or len(text) > TEXT_MAX:
            return f"a message of {len(text)} characters: {type(error).__name__}: {text[:TEXT_MAX]!r}"
        if not text.isprintable():
            return f"a message that is not one printable line: {type(error).__name__}: {text!r}"
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        return f"{type(error).__name__}: {str(error)[:TEXT_MAX]} ({_place(error)})"
    return None


def _place(error: BaseException) -> str:
    """Where it was raised: the innermost three places, outermost first."""
    places = []
    trace = error.__traceback__
    while trace is not None:
        places.append(f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return " > ".join(places[-3:])
