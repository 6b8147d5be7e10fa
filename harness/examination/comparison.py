"""Judges that compare with a reference: their interface besides the one of all judges."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol, runtime_checkable

from postcrash.harness.errors import LostAtWork, OperationFailedError
from postcrash.harness.examination.exploration import Exploration
from postcrash.model import History, Observation, Workload
from postcrash.model.judge import Judge
from postcrash.store.json_codec import Json
from postcrash.store.kernel_build import ComparedWith


@runtime_checkable
class Comparison(Protocol):
    """A judge that runs each workload on a reference too."""

    @property
    def recorder(self) -> str:
        """The recorder of the reference, of `RECORDERS`."""
        ...

    @property
    def compared(self) -> ComparedWith:
        """The identity of the reference: its kernel, guest and target."""
        ...

    def why_no_change(self, workload: Workload, lost: LostAtWork | None) -> str:
        """Why lost guests are no difference: the reference loses guests with `workload` too, or this is not known.

        `lost` says how a guest was lost while it ran the workload; None: in the recovery of a crash state. Empty if
        the reference loses no guest.
        """
        ...

    def nearest(self, history: History, observation: Observation) -> Json | None:
        """The reference's outcome at this instant that is nearest to `observation`.

        It is a report (decoded JSON) with the mount and the tree. None if the reference shows none at the instant.
        """
        ...

    def stop(self) -> None:
        """End the runs on the reference. Threads that are running cannot start others."""
        ...

    def what_instead(self, workload: Workload, held: int | None, failed: OperationFailedError) -> str:
        """How the reference's run of `workload` differs from `failed`: it runs, or fails in another way.

        Empty if it fails in the same way. `held` is the disk on which the operation failed, as in `Exploration`.
        """
        ...


def comparison_among(judges: Iterable[Judge]) -> Comparison | None:
    """The judge that compares, if one does."""
    return next((judge for judge in judges if isinstance(judge, Comparison)), None)


def recorded_alike(how: Exploration, judges: Iterable[Judge]) -> Exploration:
    """`how`, with the recorder of the reference if a judge compares with one.

    Two recorders see the requests from different places, so what they record cannot be compared.
    """
    comparison = comparison_among(judges)
    return how if comparison is None else replace(how, recorder=comparison.recorder)
