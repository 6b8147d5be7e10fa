"""Looks judges up, and the recoveries that show what they look at."""

from collections.abc import Collection, Iterable

from postcrash._core import DeviceModel
from postcrash.checkers import CHECKERS, PRACTICE
from postcrash.harness.examination.repair import Recovery, ways
from postcrash.model import History, Observation, ObservationError
from postcrash.model.judge import Judge, Opinion, undecided
from postcrash.model.validation import unknown_name
from postcrash.properties import HOTDEP13, PROPERTIES, TORN_BLOCKS
from postcrash.targets import RecoveryKind, Target

WALK, FSCK, USE = KINDS = ("walk", "fsck", "use")
"""The kinds of recovery, by what each does besides mounting."""


def recoveries_for(
    judges: Iterable[Judge], target: Target, recovery: Recovery = "mount", only: Collection[str] = KINDS
) -> tuple[RecoveryKind, ...]:
    """The kinds of recovery that show what `judges` look at. Only kinds whose `kind_of` is in `only` are taken.

    Each kind is explored on its own, so that what one kind reads does not decide pieces for another.
    """
    looked_at = [judge.looks_at for judge in judges]
    kinds = (kind for kind in _kinds(target, recovery) if kind_of(kind) in only)
    return tuple(kind for kind in kinds if any(map(kind.shows, looked_at)))


def is_shown(judge: Judge, target: Target, recovery: Recovery = "mount") -> bool:
    """Whether some recovery of `target` shows what the judge looks at. For example, not every target has an fsck."""
    return any(kind.shows(judge.looks_at) for kind in _kinds(target, recovery))


def _kinds(target: Target, recovery: Recovery) -> list[RecoveryKind]:
    return [kind for repair in ways(target, recovery) for kind in _kinds_of(target, repair)]


def _kinds_of(target: Target, repair: bool) -> list[RecoveryKind]:
    walk = target.recovery(walk=True, fsck=False, repair=repair)
    fsck = [target.recovery(walk=False, fsck=True, repair=repair)] if target.fsck else []
    return [walk, *fsck, target.recovery(walk=False, fsck=False, use=True, repair=repair)]


def tree_recoveries(target: Target, recovery: Recovery) -> tuple[RecoveryKind, ...]:
    """The kinds of recovery that show the tree."""
    return tuple(kind for kind in _kinds(target, recovery) if kind.walk)


def kind_of(recover: RecoveryKind) -> str:
    """What a kind of recovery does after mounting, in a word."""
    return FSCK if recover.fsck else USE if recover.use_after else WALK


def all_judges() -> tuple[Judge, ...]:
    """Every checker, and the properties of HotDep'13."""
    return (*CHECKERS, *HOTDEP13)


def judges_named(names: Iterable[str]) -> tuple[Judge, ...]:
    """The judges with these names, upper and lower case alike. Raises LookupError for an unknown one."""
    known = {judge.name.casefold(): judge for judge in (*CHECKERS, *HOTDEP13, *PRACTICE, *PROPERTIES)}
    chosen = []
    for name in names:
        if name.casefold() not in known:
            raise LookupError(unknown_name("property or checker", name, (judge.name for judge in known.values())))
        chosen.append(known[name.casefold()])
    return tuple(chosen)


def why_never(name: str, model: str) -> str:
    """Why the property of that name cannot be violated on a device of the model; empty if it can."""
    if name in TORN_BLOCKS and not DeviceModel(model).tears_blocks:
        return f"the device model {model} never tears a block: see --model torn"
    return ""


def opinion_on(judge: Judge, history: History, observation: object) -> Opinion:
    """The judge's opinion on a report. It is undecided if the report is broken."""
    try:
        return judge.check(history, Observation.from_wire(observation))
    except ObservationError as error:
        return undecided(f"the agent's report is broken: {error}")
