"""Compares the flushes of two runs, one by one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from postcrash._core import Recording
from postcrash.apps.protocol import Protocol, Step
from postcrash.recorders.system_calls import FLUSHES
from postcrash.store.program_calls import calls_before

_NOT_MADE = ", left out"
"""Ends the note of a call that the guest did not make."""
_CALL = re.compile(r'([a-z]+)\((?:"((?:[^"\\]|\\.)*)")?')
_GONE = " (deleted)"
_NO_CRASH = 2**62


@dataclass(frozen=True, slots=True)
class Flush:
    """A flush: its call, and the names of what it makes durable; none if that is everything.

    text       the call as people see it
    succeeded  it returned, and was no error
    left_out   the guest did not make it
    """

    call: str
    names: frozenset[str]
    text: str
    succeeded: bool = True
    left_out: bool = False


def flushes_in(recording: Path) -> list[Flush]:
    """All flushes that programs began in a recording, in this order. Their numbers in a guest count from 1."""
    found = []
    for call in calls_before(Recording(recording), _NO_CRASH):
        match = _CALL.match(call.text)
        if match is None or match[1] not in FLUSHES or (match[1] == "msync" and match[2] is None):
            continue
        names = frozenset([match[2].removesuffix(_GONE)]) if match[2] and match[1] != "syncfs" else frozenset[str]()
        is_left_out = call.text.endswith(_NOT_MADE)
        found.append(Flush(match[1], names, call.text.removesuffix(_NOT_MADE), call.result == 0, is_left_out))
    return found


def flushes_of(protocol: Protocol) -> list[tuple[Step, Flush]]:
    """The flushes of a traced run that can be left out. They all succeeded."""
    steps = (step for step in protocol.steps if step.call in FLUSHES and (step.everything or step.durable))
    return [(step, Flush(step.call, _names(step), _text(step))) for step in steps]


def _text(step: Step) -> str:
    return f"{step.call} of {step.about}" if step.about else step.call


def _names(step: Step) -> frozenset[str]:
    return frozenset() if step.everything else frozenset(step.about.split(", "))


def flush_difference(expected: Sequence[Flush], found: Sequence[Flush]) -> str:
    """How the flushes of two runs differ, in words. Empty if they are the same.

    A file that has a new name in each run, such as a random one, is known by where it stands.
    """
    known = frozenset[str]().union(*(each.names for each in expected))
    there = frozenset[str]().union(*(each.names for each in found))
    standing: dict[frozenset[str], frozenset[str]] = {}
    for number, (one, other) in enumerate(zip(expected, found, strict=False), 1):
        is_new = not (one.names & there) and not (other.names & known)
        is_same = bool(one.names & other.names) or one.names == other.names
        if is_new and one.names and other.names:
            is_same = standing.setdefault(one.names, other.names) == other.names
        if one.call != other.call or not is_same:
            return f"flush {number} is {other.text}, and not {one.text}"
    if len(expected) != len(found):
        return f"it makes {len(found)} flushes, and not {len(expected)}"
    return ""
