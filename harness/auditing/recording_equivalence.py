"""Whether two recordings of a program are alike. A program with threads may make its requests in another order."""

import hashlib
from pathlib import Path

from postcrash._core import Recording


def shape_of(recording: Path) -> str:
    """Digest of the requests and marks behind the set-up, in their order. OSError, ValueError: it cannot be read.

    Contents are left out, because time stamps and random numbers differ in each run. So are completions, because a disk
    that holds them back chooses their order. Two recordings of one shape are runs in which all threads did the same to
    the disk, in the same order, and said their lines at the same places of it.
    """
    events = Recording(recording).events()
    start = events.index(("durable",)) if ("durable",) in events else 0
    shape = [event for event in events[start:] if event[0] != "complete"]
    return hashlib.sha256(repr(shape).encode()).hexdigest()
