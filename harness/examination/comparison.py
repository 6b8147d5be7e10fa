"""Judges that compare with a reference: what an examination asks of them besides their opinions."""

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
        """What sees the reference's requests, of `RECORDERS`."""
        ...

    @property
    def compared(self) -> ComparedWith:
        """The reference, by what is in it."""
        ...

    def why_no_change(self, workload: Workload, lost: LostAtWork | None) -> str:
        """Why guests that `workload` costs are no change: the reference loses them too, or this is not known.

        `lost` says how one was lost while it ran the workload. None stands for the recovery of a crash state. The
        answer is empty if the reference loses no guest.
        """
        ...

    def nearest(self, history: History, observation: Observation) -> Json | None:
        """Of the outcomes that the reference shows at this instant, the one nearest to `observation`.

        It is a report (decoded JSON) with the mount and the tree. None if the reference shows none at the instant.
        """
        ...

    def stop(self) -> None:
        """End the runs on the reference. What threads that run now ask afterwards has no answer."""
        ...

    def what_instead(self, workload: Workload, held: int | None, failed: OperationFailedError) -> str:
        """What the reference does with `workload`, if it does not fail in the operation and the way of `failed`.

        The answer is empty if it does. `held` is the disk on which the operation failed, as in `Exploration`.
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
