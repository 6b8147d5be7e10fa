"""How a workload is recorded and its crash states explored: what every exploring command lets its user choose."""

from dataclasses import dataclass, field

from postcrash.harness.budget import Budget
from postcrash.harness.recording import CRASH_DISK


@dataclass(frozen=True, slots=True)
class Exploration:
    """The same choices lead to the same crash states.

    model     the device model's shortest name
    budget    for all kinds of recovery of one workload together
    seed      of random crash states, and of what is run again
    depth     2: crashes within the recovery of each crash state too
    held      seed of the order of completions that are held back while recording; None: each write completes at once
    recorder  what sees the requests
    """

    model: str = "cache"
    budget: Budget = field(default_factory=Budget)
    seed: int = 1
    depth: int = 1
    held: int | None = None
    recorder: str = CRASH_DISK
