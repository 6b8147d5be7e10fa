"""The one way into every kind of hunt."""

from postcrash.harness.examination.campaign import Crew
from postcrash.harness.hunting.default_hunt import DefaultSelection
from postcrash.harness.hunting.hunt import HuntContext, HuntProgress
from postcrash.harness.hunting.hunt_result import HuntResult
from postcrash.harness.hunting.list_hunt import ListHunt, ListSelection
from postcrash.harness.hunting.probes import Plans
from postcrash.harness.hunting.random_hunt import RandomHunt, RandomSelection
from postcrash.harness.hunting.space_hunt import Selection, SpaceHunt
from postcrash.store.store import Store

AnySelection = Selection | DefaultSelection | RandomSelection | ListSelection


def run_hunt(
    selection: AnySelection,
    plans: Plans,
    crew: Crew,
    store: Store,
    progress: HuntProgress,
    *,
    fresh: bool = False,
    until: float | None = None,
) -> HuntResult:
    """Run each selected workload in place of the workload of its plan. Reuses results of the store unless `fresh`.

    Only a `DefaultSelection` has other probes than `Probe.WALK`. The hunt ends early if it is interrupted or the
    monotonic clock reaches `until`. What was finished is in the store.
    """
    context = HuntContext(plans, store, progress, fresh, until)
    match selection:
        case Selection() | DefaultSelection():
            return SpaceHunt(selection, context).run(crew)
        case RandomSelection():
            return RandomHunt(selection, context).run(crew)
        case ListSelection():
            return ListHunt(selection, context).run(crew)
