"""Imports a trace of strace as a workload: every call that returned, in the order of the returns."""

import os
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from postcrash.model import Workload, parse_workload
from postcrash.model.workload import SEPARATOR
from postcrash.recorders.strace import contents, descriptors, names
from postcrash.recorders.strace.arguments import ArgumentsError, descriptor, string
from postcrash.recorders.strace.folder import NameTree, NotMappedError
from postcrash.recorders.strace.initial import set_up
from postcrash.recorders.strace.reader import THREADS_MAX, StraceError, TraceLine, read_calls
from postcrash.recorders.strace.state import CallSource, Context, Handler, ImportState, NotMapped, Process

HANDLERS: Mapping[str, Handler] = {**names.HANDLERS, **contents.HANDLERS, **descriptors.HANDLERS}
"""The calls that are understood, by name."""

HARMLESS = re.compile(
    "f?access(at2?)?|[fl]?stat(64|fs|x)?|(new)?fstatat(64)?|readlink(at)?|getdents(64)?|getcwd|pread(64|v2?)|p?poll|select"
    "|pselect6|epoll_(ctl|p?wait2?)|flock|fadvise64|readahead|[fl]?(get|list)xattr|inotify_(add|rm)_watch|fanotify_mark"
    "|name_to_handle_at|m(advise|incore|unlock|lock2?)|tee|vmsplice"
)
"""Calls that leave files and directories as they are."""
_HARMLESS_IOCTL = re.compile("TCGETS|FION(READ|BIO)|FS_IOC_(GET|FSGET|FIEMAP)|FIGETBSZ|FIBMAP")
_PATH_FIRST = re.compile("l?chown|chmod|utimes?|mknod")
_RINGS = frozenset({"io_uring_setup", "io_setup"})


@dataclass(frozen=True)
class ImportedTrace:
    """A trace as a workload.

    workload    the set-up makes what the folder held before the program ran
    sources     for each of `workload.ops`, the call that it comes from
    not_mapped  what the workload leaves out, in the order of the trace
    overlaps    how many of `workload.ops` come from calls during which other threads ran; the guest runs one at a time
    """

    workload: Workload
    sources: tuple[CallSource, ...]
    not_mapped: tuple[NotMapped, ...]
    overlaps: int

    def to_text(self) -> str:
        """The workload in the `.ops` language, each operation with the line of the trace that it comes from."""
        setup = [*map(str, self.workload.setup), SEPARATOR] if self.workload.setup else []
        pairs = zip(self.workload.ops, self.sources, strict=True)
        lines = [f"{operation}  # line {source.line}: {source.call}" for operation, source in pairs]
        return "".join(f"{line}\n" for line in [*setup, *lines])


def prepare(root: Path, before: Path | None = None) -> ImportState:
    """Get ready for one trace of a program that works in the folder `root`. The path is as the program sees it.

    `before` is a folder with what `root` held before the program ran (None: nothing). Raises `OSError`.
    """
    run = ImportState(NameTree(tuple(dict.fromkeys((os.path.abspath(root), os.path.realpath(root))))))
    if before is not None:
        set_up(run, before)
    run.recording = True
    return run


def import_strace(file: Path, run: ImportState, name: str, directory: str = "") -> ImportedTrace:
    """Import the calls in `file` that concern the folder of `run` as a workload. `run` can be used once.

    `directory` is the absolute path of the directory that the program was started in ("": not known). Raises
    `StraceError` if the file is not strace's output or has no such call, and `OSError`.
    """
    reading = _Reading(file, run, directory)
    for call in read_calls(file):
        reading.take(call)
    reading.finish()
    if not run.ops:
        left_out = f" ({run.not_mapped[0]})" if run.not_mapped else ""
        raise StraceError(f"{file}: no call in the folder {run.folder.absolute('')} can be mapped{left_out}")
    text = "".join(f"{line}\n" for line in [*run.setup, *([SEPARATOR] if run.setup else []), *run.ops])
    return ImportedTrace(parse_workload(text, name), tuple(run.sources), tuple(run.not_mapped), reading.overlaps)


class _Reading:
    """Goes through the calls of a trace, keeping track of threads."""

    def __init__(self, file: Path, run: ImportState, directory: str) -> None:
        self._file = file
        self._run = run
        self._directory = directory
        self._births = _births(file)
        self._threads = run.threads
        self._entered: dict[int, TraceLine] = {}
        self.overlaps = 0

    def take(self, call: TraceLine) -> None:
        """Carry out what a line says."""
        process = self._thread(call)
        if call.word == "ended":
            self._end(call.thread)
            del self._threads[call.thread]
            self._release(call)
        elif call.word == "entered":
            process.enter(call)
            self._entered[call.thread] = call
            if call.name == "close":
                self._act(descriptors.close, call, process)
        else:
            self._entered.pop(call.thread, None)
            self._return(call, process)
            process.entered = None
            if call.name in descriptors.CLOSING:
                self._release(call)

    def finish(self) -> None:
        """Report the calls that never returned."""
        for thread in list(self._entered):
            self._end(thread)

    def _release(self, call: TraceLine) -> None:
        try:
            self._run.release(CallSource(call.line, call.name or "exit"))
        except NotMappedError as error:
            self._run.leave_out(call.line, call.name or "exit", str(error))

    def _end(self, thread: int) -> None:
        call = self._entered.pop(thread, None)
        if call is None or call.name not in HANDLERS:
            return
        known = self._threads[thread].entered or {}
        if call.name in names.HANDLERS or any(known.values()):
            self._run.leave_out(call.line, call.name, "it never returned")

    def _thread(self, call: TraceLine) -> Process:
        if call.thread not in self._threads:
            if len(self._threads) == THREADS_MAX:
                raise StraceError(f"{self._file}:{call.line}: more than {THREADS_MAX} threads at one time")
            self._threads[call.thread] = self._born(call.thread)
        return self._threads[call.thread]

    def _born(self, thread: int) -> Process:
        births = self._births.get(thread)
        if births:
            _, parent, shared = births.popleft()
            if parent in self._threads:
                return self._threads[parent].child(shared)
        return Process(directory=[self._directory])

    def _return(self, call: TraceLine, process: Process) -> None:
        if call.name in descriptors.CLONES:
            births = self._births.get(call.result or 0)
            if births and births[0][0] == call.line and call.result not in self._threads:
                self._thread(TraceLine("returned", call.line, call.result or 0))
            return
        if call.name == "close":
            if not call.overlaps:
                self._act(descriptors.close, call, process)
            return
        if call.result is None or HARMLESS.fullmatch(call.name):
            return
        before = len(self._run.ops)
        self._act(HANDLERS.get(call.name, _unknown), call, process)
        self.overlaps += (len(self._run.ops) - before) * call.overlaps

    def _act(self, handler: Handler, call: TraceLine, process: Process) -> None:
        try:
            arguments = _arguments(call)
            handler(Context(self._run, call, process, arguments))
        except NotMappedError as error:
            self._run.leave_out(call.line, call.name, str(error))
        except ArgumentsError as error:
            raise StraceError(f"{self._file}:{call.line}: expected {error} in {call.name}") from None


def _arguments(call: TraceLine) -> list[str]:
    if call.word == "entered":
        return [part.strip() for part in call.arguments.split(",")]
    return call.split()


def _births(file: Path) -> dict[int, deque[tuple[int, int, frozenset[str]]]]:
    """For each thread that another one started: the line where the call returned, the other, and what both share."""
    births: dict[int, deque[tuple[int, int, frozenset[str]]]] = {}
    for call in read_calls(file):
        if call.word == "returned" and call.name in descriptors.CLONES and call.result:
            shared = descriptors.shared_by(call.arguments)
            births.setdefault(call.result, deque()).append((call.line, call.thread, shared))
    return births


def _unknown(context: Context) -> None:
    """Report a call that is not known if it concerns the folder."""
    name = context.call.name
    if name in _RINGS:
        context.leave_out("what goes through a ring, which strace does not see")
    if name == "ioctl" and _HARMLESS_IOCTL.match(context.argument(1)):
        return
    for index, argument in enumerate(context.arguments):
        named = descriptor(argument)
        opened = named is not None and context.description(index) is not None
        if opened or _is_path_inside(context, index):
            raise NotMappedError("workloads have nothing like it")


def _is_path_inside(context: Context, index: int) -> bool:
    argument = context.arguments[index]
    if not argument.startswith('"'):
        return False
    directory = index - 1 if index and descriptor(context.arguments[index - 1]) else None
    relative = directory is not None or (index == 0 and _PATH_FIRST.fullmatch(context.call.name) is not None)
    absolute = string(argument)[0].startswith(b"/")
    return (relative or absolute) and context.place(directory, index, follow=True) is not None
