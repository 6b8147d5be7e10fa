"""How looking for findings and following them up share a limited time: they take turns.

Each turn looks for most of the time that is left, and has the rest to follow up what it found. Time that this does not
need goes to the next turn. So a run without findings looks until its time is over.
"""

import time
from dataclasses import dataclass

from postcrash.harness.findings.minimize import kept_for_minimizing

LAST_SECONDS = 10.0
"""If no more time is left than this, the rest is for looking only: a turn also starts guests, which takes a second."""


@dataclass(frozen=True, slots=True)
class Turns:
    """The turns of a run that ends when the monotonic clock reaches `until`; None: one turn without an end."""

    until: float | None

    def looking_ends(self, *, is_first: bool) -> float | None:
        """When the turn that begins now stops looking. The first turn always keeps some of its time."""
        if self.until is None:
            return None
        left = self.until - time.monotonic()
        return self.until - (kept_for_minimizing(left) if is_first or left > LAST_SECONDS else 0.0)

    @property
    def has_another(self) -> bool:
        """Whether there is time for a further turn."""
        return self.until is not None and time.monotonic() < self.until
