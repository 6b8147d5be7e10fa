"""Properties and checkers under one face: what judges an observation against a history."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Protocol

from postcrash.checkers import CHECKERS, Checker
from postcrash.model import History, Observation, Verdict
from postcrash.properties import HOTDEP13, PROPERTIES, Property
from postcrash.targets import Target


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one judge says of one observation.

    verdict   HOLDS, VIOLATED, or UNDECIDED where the judge cannot tell
    relevant  the observation put the question at all
    message   for VIOLATED what is wrong, for UNDECIDED why
    """

    verdict: Verdict
    relevant: bool
    message: str


class Judge(Protocol):
    """One question to every observation."""

    @property
    def name(self) -> str:
        """Short and unique, as in tables and findings."""
        ...

    def wants(self, recover: dict[str, Any]) -> bool:
        """Whether recoveries of this kind show what the judge looks at."""
        ...

    def opinion(self, history: History, observation: Observation) -> Opinion:
        """Never raises: a judge that fails is undecided."""
        ...


@dataclass(frozen=True, slots=True)
class PropertyJudge:
    """A property. A state that does not mount shows no tree, and leaves the property undecided."""

    subject: Property

    @property
    def name(self) -> str:
        """The property's."""
        return self.subject.name

    def wants(self, recover: dict[str, Any]) -> bool:
        """Properties look at the tree."""
        return bool(recover["walk"])

    def opinion(self, history: History, observation: Observation) -> Opinion:
        """See `Judge`."""
        if observation.mount_errno:
            return _not_mounted(observation)
        try:
            judgement = self.subject.judge(history, observation.tree)
        except Exception as error:
            return Opinion(Verdict.UNDECIDED, False, f"{self.name} failed: {error!r}")
        verdict = Verdict.HOLDS if judgement.holds else Verdict.VIOLATED
        return Opinion(verdict, judgement.relevant, judgement.message)


def _not_mounted(observation: Observation) -> Opinion:
    return Opinion(Verdict.UNDECIDED, False, f"a crash state does not mount (errno {observation.mount_errno})")


_LOOKS_AT = {
    "fsck": "fsck",
    "usable": "use_after",
    **dict.fromkeys(("mounts", "durability", "never-written", "foreign-bytes", "link-counts"), "walk"),
}
"""What recoveries must do for a checker to be asked; one that is not named is asked always."""
_SEE_ONLY_WHAT_MOUNTS = frozenset(_LOOKS_AT) - {"fsck", "mounts"}


@dataclass(frozen=True, slots=True)
class CheckerJudge:
    """A general checker."""

    checker: Checker

    @property
    def name(self) -> str:
        """The checker's."""
        return self.checker.name

    def wants(self, recover: dict[str, Any]) -> bool:
        """See `Judge`."""
        return self.name not in _LOOKS_AT or bool(recover[_LOOKS_AT[self.name]])

    def opinion(self, history: History, observation: Observation) -> Opinion:
        """See `Judge`."""
        if observation.mount_errno and self.name in _SEE_ONLY_WHAT_MOUNTS:
            return _not_mounted(observation)
        try:
            finding = self.checker.check(history, observation)
        except Exception as error:
            return Opinion(Verdict.UNDECIDED, False, f"{self.name} cannot tell: {error}")
        if finding is None:
            return Opinion(Verdict.HOLDS, True, "")
        return Opinion(Verdict.VIOLATED, True, finding.message)


def recoveries_for(judges: Iterable[Judge], target: Target) -> tuple[dict[str, Any], ...]:
    """The kinds of recovery that show what `judges` look at.

    Each is explored on its own, so that what one reads decides nothing for the others.
    """
    chosen = tuple(judges)
    return tuple(kind for kind in _kinds(target) if any(judge.wants(kind) for judge in chosen))


def is_shown(judge: Judge, target: Target) -> bool:
    """Whether there is a recovery of `target` that shows what the judge looks at: not every one has an fsck."""
    return any(map(judge.wants, _kinds(target)))


def _kinds(target: Target) -> list[dict[str, Any]]:
    walk = target.recover_wire(walk=True, fsck=False)
    fsck = [target.recover_wire(walk=False, fsck=True)] if target.fsck else []
    return [walk, *fsck, target.recover_wire(walk=False, fsck=False, use=True)]


def kind_of(recover: dict[str, Any]) -> str:
    """What a kind of recovery does besides mounting, in a word."""
    return "fsck" if recover["fsck"] else "use" if recover["use_after"] else "walk"


def all_judges() -> tuple[Judge, ...]:
    """Every checker, and the properties of HotDep'13."""
    return (*map(CheckerJudge, CHECKERS), *map(PropertyJudge, HOTDEP13))


def judges_named(names: Iterable[str]) -> tuple[Judge, ...]:
    """The judges with these names, upper and lower case alike. Raises LookupError for an unknown one."""
    known = {judge.name.casefold(): judge for judge in (*all_judges(), *map(PropertyJudge, PROPERTIES))}
    chosen = []
    for name in names:
        if name.casefold() not in known:
            near = get_close_matches(name.casefold(), known, n=1)
            hint = f", did you mean {known[near[0]].name!r}?" if near else ""
            listed = ", ".join(judge.name for judge in known.values())
            raise LookupError(f"unknown property or checker {name!r}{hint} (known: {listed})")
        chosen.append(known[name.casefold()])
    return tuple(chosen)
