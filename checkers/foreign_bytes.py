"""No file shows bytes that were not written to it, such as those of free space or of another file.

Every write has bytes of its own, and free space is filled before the file system is made (docs/formats.md, "Bytes"). So
the origin of a byte is known. Zeros belong to no one. Bytes of unknown origin, such as metadata that was there before,
are foreign too.

Not checked: bytes that cannot be read (`mounts` checks these), and names that no operation made (`never-written`).
"""

from itertools import pairwise

from postcrash.checkers.checker import TREE_IN_SHELL, Objection, Stage
from postcrash.checkers.inodes import Past, pasts
from postcrash.model import Entry, History, Observation, all_from
from postcrash.model.segments import ZERO
from postcrash.model.tree import UNREAD
from postcrash.properties.wording import shown_bytes


class ForeignBytes:
    """A file has its own bytes."""

    name = "foreign-bytes"
    statement = "Every byte in a file is zero, or was written to that file at that place."
    depends_on: tuple[str, ...] = ("started",)
    looks_at: tuple[str, ...] = ("walk",)
    needs: Stage = "tree"
    in_shell = TREE_IN_SHELL

    def check(self, history: History, observation: Observation) -> Objection | None:
        """The first file with a byte that was never written to it at that place, from free space or elsewhere."""
        known = pasts(history)
        for path, entry in observation.tree.items():
            past = known.of(path)
            if past is None or entry.type != "file" or entry.error:
                continue
            own = {ZERO} | {run.source for run in entry.segments if run.source.startswith(UNREAD)}
            for start, end in pairwise(sorted(_edges(past, entry))):
                if not all_from(entry, start, end, own | _written(past, start, end)):
                    found = shown_bytes(history.workload, path, entry, start, end)
                    return Objection(self.name, f"{found}; no operation put all of them there", path)
        return None

    def is_relevant(self, history: History, observation: Observation) -> bool:
        """Whether there is a file with bytes, under a name that an operation made."""
        known = pasts(history)
        return any(entry.type == "file" and entry.size and known.of(path) for path, entry in observation.tree.items())


def _edges(past: Past, entry: Entry) -> set[int]:
    edges = {edge for run in past.written for edge in (run.start, run.end) if edge < entry.size}
    return edges | {0, entry.size}


def _written(past: Past, start: int, end: int) -> set[str]:
    return {run.source for run in past.written if run.start <= start and end <= run.end}
