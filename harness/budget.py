"""Budgets: limits on the cost of an exploration, and the part of a too large space that it explores."""

import re
import time
from dataclasses import dataclass, replace
from typing import Self

_RECOVERIES = re.compile(r"[0-9]{1,15}")
_TIME = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smh])")
_SECONDS = {"s": 1, "m": 60, "h": 3600}


class BudgetError(ValueError):
    """A text is not a budget."""


def is_over(until: float | None) -> bool:
    """Whether the monotonic clock has reached `until`. None is never reached."""
    return until is not None and time.monotonic() >= until


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one exploration. A field that is None sets no limit.

    recoveries  the most recoveries
    seconds     the most seconds, approximately
    bound       explore only states that deviate in at most this many components from everything kept or nothing kept
    samples     explore only this many random states, besides those within the bound
    """

    recoveries: int | None = 20_000
    seconds: float | None = 600.0
    bound: int | None = None
    samples: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses `5000` (recoveries), `30s`, `10m`, `1h`, or one of each as `5000,10m`.

        A missing part is not limited. Raises BudgetError.
        """
        recoveries: int | None = None
        seconds: float | None = None
        for part in text.split(","):
            span = _TIME.fullmatch(part)
            if span and seconds is None:
                seconds = float(span[1]) * _SECONDS[span[2]]
            elif _RECOVERIES.fullmatch(part) and recoveries is None:
                recoveries = int(part)
            else:
                raise BudgetError(f"{text!r} is no budget such as 5000 (recoveries), 30s, 10m, 1h or 5000,10m")
        if recoveries == 0 or seconds == 0:
            raise BudgetError(f"{text!r} is a budget of nothing")
        return cls(recoveries, seconds)

    def share(self, recoveries: int, seconds: float, parts: int) -> "Budget":
        """Returns one of `parts` equal shares of the rest, after `recoveries` were run or remembered in `seconds`."""
        return replace(
            self,
            recoveries=None if self.recoveries is None else -(-max(self.recoveries - recoveries, 0) // parts),
            seconds=None if self.seconds is None else max(self.seconds - seconds, 0.0) / parts,
        )
