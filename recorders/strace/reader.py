"""Reads the lines of strace's output as calls.

It reads the forms `PID TIME CALL(ARGUMENTS) = RESULT`, `CALL(ARGUMENTS <unfinished ...>` with `<... CALL resumed>REST`
later, signals (`--- … ---`) and ends of threads (`+++ … +++`). The process id and the time stamp may be missing.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from postcrash.recorders.strace.arguments import ArgumentsError, split

FILE_BYTES_MAX = 512 << 20
LINES_MAX = 2_000_000
LINE_BYTES_MAX = 64 << 20
THREADS_MAX = 4096
"""How many threads may be inside calls at one time, and how many processes there may be at one time."""

_PREFIX = re.compile(r" *(?:\[pid +([0-9]{1,9})\] +|([0-9]{1,9}) +)?(?:[0-9]+(?:\.[0-9]+|:[0-9:.]+) +)?")
_NAME = re.compile(r"([a-z_][a-z0-9_]{0,63})\(")
_RESUMED = re.compile(r"<\.\.\. ([a-z_][a-z0-9_]{0,63}) resumed>")
_RESULT = re.compile(r" *= (?:(-?[0-9]{1,20}|0x[0-9a-f]{1,16})(?:<|\s|$)|\?)")
_UNFINISHED = "<unfinished ...>"


class StraceError(ValueError):
    """The file is not strace's output, or it is too large. The text is `FILE:LINE: …`."""


@dataclass(slots=True)
class TraceLine:
    """What one line says.

    word       entered: the call has started, and returns (if it does) in a later line; returned; ended: the thread has
    line       from 1
    thread     its number, 0 if strace printed none
    arguments  the text behind the opening bracket
    result     what was returned; None for a call that failed or never returns
    overlaps   it was entered in an earlier line
    """

    word: Literal["entered", "returned", "ended"]
    line: int
    thread: int
    name: str = ""
    arguments: str = ""
    result: int | None = None
    overlaps: bool = False

    def split(self) -> list[str]:
        """The arguments one by one. Raises `ArgumentsError`."""
        return split(self.arguments, 0)[0]


def read_calls(file: Path) -> Iterator[TraceLine]:
    """The calls of a trace, in the order of the lines. Raises `StraceError` and `OSError`."""
    entered: dict[int, tuple[str, str]] = {}
    with file.open("rb") as stream:
        total = 0
        for line in range(1, LINES_MAX + 2):
            content = stream.readline(LINE_BYTES_MAX + 1)
            total += len(content)
            if not content:
                return
            if line > LINES_MAX:
                raise StraceError(f"{file}:{line}: more than {LINES_MAX} lines")
            if len(content) > LINE_BYTES_MAX:
                raise StraceError(f"{file}:{line}: a line of more than {LINE_BYTES_MAX} bytes")
            if total > FILE_BYTES_MAX:
                raise StraceError(f"{file}:{line}: more than {FILE_BYTES_MAX} bytes")
            try:
                call = _call(content.decode("latin-1").rstrip("\n"), line, entered)
            except ArgumentsError as error:
                raise StraceError(f"{file}:{line}: expected {error}") from None
            if call is not None:
                yield call


def _call(text: str, line: int, entered: dict[int, tuple[str, str]]) -> TraceLine | None:
    prefix = _PREFIX.match(text)
    assert prefix is not None
    thread = int(prefix[1] or prefix[2] or 0)
    at = prefix.end()
    if text.startswith(("---", "strace: "), at) or at == len(text):
        return None
    if text.startswith("+++", at):
        entered.pop(thread, None)
        return TraceLine("ended", line, thread)
    if resumed := _RESUMED.match(text, at):
        name, start = entered.pop(thread, ("", ""))
        if name != resumed[1]:
            raise ArgumentsError(f"a call of thread {thread} that can be resumed, not {resumed[1]}")
        rest = start + text[resumed.end() :]
        if len(rest) > LINE_BYTES_MAX:
            raise ArgumentsError(f"a call of at most {LINE_BYTES_MAX} bytes")
        return _returned(rest, line, thread, name, overlaps=True)
    called = _NAME.match(text, at)
    if called is None:
        raise ArgumentsError(f"a system call, found {text[at : at + 40]!r}")
    if text.endswith(_UNFINISHED):
        if len(entered) == THREADS_MAX:
            raise ArgumentsError(f"at most {THREADS_MAX} threads in calls at one time")
        start = text[called.end() : -len(_UNFINISHED)].rstrip(" ")
        entered[thread] = called[1], start
        return TraceLine("entered", line, thread, called[1], start)
    return _returned(text[called.end() :], line, thread, called[1], overlaps=False)


def _returned(text: str, line: int, thread: int, name: str, *, overlaps: bool) -> TraceLine:
    _, end = split(text, 0)
    result = _RESULT.match(text, end)
    if result is None:
        raise ArgumentsError("` = ` and a result behind the call")
    value = None if result[1] is None else int(result[1], 16 if "x" in result[1] else 10)
    failed = value is None or value < 0
    return TraceLine(
        "returned",
        line,
        thread=thread,
        name=name,
        arguments=text[:end],
        result=None if failed else value,
        overlaps=overlaps,
    )
