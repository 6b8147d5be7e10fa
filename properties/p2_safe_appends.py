"""P2, safe appends, and its null-bytes variation.

Bytes are told apart by the write that they come from (docs/formats.md, "Bytes"). No byte of a write is zero. Free space
of the base image holds filler, so a block that was allocated and never written shows as stale, not as nulls.
"""

from abc import abstractmethod
from dataclasses import dataclass

from postcrash.model import Entry, History, Observation, Route, Workload, all_from, runs, words_where
from postcrash.model.judge import UNTESTED, Opinion, holds, violated
from postcrash.model.segments import ZERO
from postcrash.properties.appends import Append, sole_appends
from postcrash.properties.family import family
from postcrash.properties.kinds import PropertyBase
from postcrash.properties.property import Property
from postcrash.properties.wording import operation_at, shown_bytes

_WORDS = words_where(lambda form: form.data and form.data is not Route.MAPPING)
"""All words that append by a write() call."""


class _Appends(Property):
    """What P2 and its variation have in common."""

    source = "HotDep'13, section 2 (P2)"
    exclusions: tuple[str, ...] = (
        "A file that is missing, or no longer than before the append (durability is another matter).",
        "A file that a recorded operation also writes, truncates or preallocates: the paper says no other write() or "
        "truncate(), the other is ours.",
        "A name that is another file's at some time, or in a directory that is renamed: it could be that file.",
        "Appends through a mapping: the paper says write().",
    )

    def workloads(self) -> tuple[Workload, ...]:
        """One append to each file, of several sizes and alignments, with write-backs and commits in every order."""
        return family(*_ROWS)

    def examine(self, history: History, observation: Observation) -> Opinion:
        """Relevant if a file is longer than before its append."""
        tree = observation.tree
        relevant = False
        for append in sole_appends(history, _WORDS):
            for name in append.names:
                entry = tree.get(name)
                if entry is None or entry.type != "file" or entry.size <= append.start:
                    continue
                relevant = True
                if entry.size > append.end or not self._is_fine(entry, append):
                    found = shown_bytes(history.workload, name, entry, append.start, entry.size)
                    meant = f"{operation_at(history.workload, append.index)} at {append.start}"
                    return violated(f"{meant}: {found}")
        return holds("only appended bytes follow the old end") if relevant else UNTESTED

    @abstractmethod
    def _is_fine(self, entry: Entry, append: Append) -> bool:
        """Whether what follows the old end may be there. Some of it is there, and not more than was appended."""


class SafeAppends(_Appends):
    """P2 of HotDep'13."""

    name = "P2"
    title = "safe appends"
    statement = (
        "If bytes are appended to a file of i bytes and the file has i + x bytes after a crash, "
        "the last x bytes are the first x that were appended."
    )

    def _is_fine(self, entry: Entry, append: Append) -> bool:
        return all_from(entry, append.start, entry.size, {append.source})


@dataclass(frozen=True, slots=True)
class SafeAppend(PropertyBase):
    """A row that says of the bytes behind the old end what P2 says: they are a prefix of what was appended."""

    def examine(self, history: History, observation: Observation) -> Opinion:
        """Relevant if a file is longer than before its append."""
        return SafeAppends().examine(history, observation)


class SafeAppendsOrNulls(_Appends):
    """The null-bytes variation of P2: the last of the appended bytes may be nulls instead."""

    name = "P2-null"
    title = "safe appends or nulls"
    statement = (
        "If bytes are appended to a file of i bytes and the file has i + x bytes after a crash, "
        "the last x bytes are the first y that were appended, for some y up to x, and then null bytes."
    )
    exclusions = (
        *_Appends.exclusions,
        "y = x is allowed, though the paper writes y < x, so that whatever has P2 has this too.",
    )

    def _is_fine(self, entry: Entry, append: Append) -> bool:
        allowed = {append.source, ZERO}
        for run in runs(entry, append.start, entry.size):
            if run.source not in allowed:
                return False
            if run.source == ZERO:
                allowed = {ZERO}
        return True


_ROWS = (
    ("p2-new-4096", "", "creat a; append a 4096"),
    ("p2-new-12288-writeback", "", "creat a; append a 12288; writeback a"),
    ("p2-new-12288-commit-writeback", "", "creat a; append a 12288; commit; writeback a"),
    ("p2-new-12288-fsync", "", "creat a; append a 12288; fsync a"),
    ("p2-new-8192-writeback-second-page", "", "creat a; append a 8192; writeback a 4096 4096; commit"),
    ("p2-100-5000-commit-writeback", "creat a; append a 100", "append a 5000; commit; writeback a"),
    ("p2-100-5000-fsync-other", "creat o; creat a; append a 100", "append a 5000; fsync o"),
    ("p2-4096-4096-writeback", "creat a; append a 4096", "append a 4096; writeback a"),
    ("p2-2509-two-files", "creat a; append a 2509; creat b; append b 2509", "append a 13; append b 2500"),
    (
        "p2-2509-two-files-fsync-second",
        "creat a; append a 2509; creat b; append b 2509",
        "append a 13; append b 2500; fsync b",
    ),
)
