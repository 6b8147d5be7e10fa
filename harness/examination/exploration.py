"""How a workload is recorded and its crash states are explored. Every exploring command offers these choices."""

from dataclasses import dataclass, field

from postcrash.harness.budget import Budget
from postcrash.harness.examination.recording import AUTO
from postcrash.harness.examination.repair import Recovery

BOTH_DISKS = (None, 1)
"""One disk completes writes at once. The other holds them back and completes them in an order drawn from this seed."""


@dataclass(frozen=True, slots=True)
class Exploration:
    """The same choices lead to the same crash states.

    model     the device model's shortest name
    budget    for all kinds of recovery of one workload together
    seed      of random crash states, and of what is run again
    depth     2: explore crashes within the recovery of each crash state too
    held      seed of the order in which writes complete while recording; None: in order of submission, as soon as the
              guest stands still
    recorder  the recorder of requests, of `RECORDERS`
    recovery  how crash states are recovered, of `RECOVERIES`
    """

    model: str = "cache"
    budget: Budget = field(default_factory=Budget)
    seed: int = 1
    depth: int = 1
    held: int | None = None
    recorder: str = AUTO
    recovery: Recovery = "mount"

    def disks(self, *, one: bool) -> tuple[int | None, ...]:
        """The disks on which a workload is examined: both, unless the user wants `one` or has chosen `held`."""
        return (self.held,) if one or self.held is not None else BOTH_DISKS

    @property
    def disk(self) -> str:
        """The disk that `held` stands for, in words."""
        if self.held is None:
            return "a disk that completes writes at once"
        return f"a disk that holds completions back (seed {self.held})"
