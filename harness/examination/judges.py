"""Judges: one interface for the properties and checkers that judge an observation against a history."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Protocol

from postcrash._core import DeviceModel
from postcrash.checkers import CHECKERS, PRACTICE, Checker
from postcrash.checkers.boot_repair import why_boot_stops
from postcrash.checkers.mounts import shown_unread
from postcrash.harness.examination.repair import Recovery, ways
from postcrash.model import History, Observation, ObservationError, Verdict
from postcrash.model.tree import ROOT_PATH
from postcrash.properties import HOTDEP13, PROPERTIES, TORN_BLOCKS, Property
from postcrash.targets import RecoveryKind, Target

WALK, FSCK, USE = KINDS = ("walk", "fsck", "use")
"""The kinds of recovery, by what each does besides mounting."""
INSTANT = ("started", "returned")
"""The fields of a history besides the workload."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one judge says of one observation.

    verdict   HOLDS, VIOLATED, or UNDECIDED where the judge cannot tell
    relevant  the judge's premise was true: there was something in the observation that could have been wrong. A judge
              that HOLDS without a true premise was not put to the test
    message   for VIOLATED what is wrong, for UNDECIDED why
    is_last   the judge has no more time: it says the same of everything from now on
    """

    verdict: Verdict
    relevant: bool
    message: str
    is_last: bool = False


class Judge(Protocol):
    """Asks one question of every observation."""

    @property
    def name(self) -> str:
        """Short and unique, as in tables and findings."""
        ...

    def wants(self, recover: RecoveryKind) -> bool:
        """Whether recoveries of this kind show what the judge looks at."""
        ...

    @property
    def version(self) -> str:
        """What its opinions rest on besides the history, the observation and our own code. Empty for most judges."""
        ...

    @property
    def depends_on(self) -> tuple[str, ...]:
        """The fields of `History`, besides the workload, on which its opinions depend."""
        ...

    def opinion(self, history: History, observation: Observation) -> Opinion:
        """Never raises: a judge that fails is undecided."""
        ...


@dataclass(frozen=True, slots=True)
class PropertyJudge:
    """A property as a judge. It is undecided without a tree, and never HOLDS for a tree that was read only in part."""

    subject: Property
    version: str = ""

    @property
    def name(self) -> str:
        """The property's name."""
        return self.subject.name

    def wants(self, recover: RecoveryKind) -> bool:
        """Properties look at the tree."""
        return recover.walk

    @property
    def depends_on(self) -> tuple[str, ...]:
        """All fields: a property may look at the whole history."""
        return INSTANT

    def opinion(self, history: History, observation: Observation) -> Opinion:
        """See `Judge`."""
        if reason := _no_tree(observation):
            return Opinion(Verdict.UNDECIDED, False, reason)
        try:
            judgement = self.subject.judge(history, observation.tree)
        except Exception as error:
            return Opinion(Verdict.UNDECIDED, False, f"{self.name} failed: {error!r}")
        verdict = Verdict.HOLDS if judgement.holds else Verdict.VIOLATED
        return unless_unread(Opinion(verdict, judgement.relevant, judgement.message), observation)


def _not_mounted(observation: Observation) -> str:
    """Why a judge of mounted file systems cannot tell; empty if it can."""
    errno = observation.mount_errno
    return why_boot_stops(observation) or (f"a crash state does not mount (errno {errno})" if errno else "")


def _no_tree(observation: Observation) -> str:
    """Why a judge of the tree cannot tell; empty if it can."""
    missing = "" if ROOT_PATH in observation.tree else "the tree of a crash state was not looked at"
    return _not_mounted(observation) or missing


def unless_unread(opinion: Opinion, *observations: Observation) -> Opinion:
    """The opinion of a judge of trees. It becomes undecided if nothing is wrong but a part could not be read.

    Another judge reports the part that could not be read. Its contents may still be wrong.
    """
    unread = next((unread for each in observations if (unread := each.tree.unread)), None)
    if unread is None or opinion.verdict is not Verdict.HOLDS:
        return opinion
    return Opinion(Verdict.UNDECIDED, opinion.relevant, f"in a crash state {shown_unread(unread)}")


@dataclass(frozen=True, slots=True)
class CheckerJudge:
    """A checker as a judge."""

    checker: Checker
    version: str = ""

    @property
    def name(self) -> str:
        """The checker's name."""
        return self.checker.name

    def wants(self, recover: RecoveryKind) -> bool:
        """See `Judge`."""
        return all(getattr(recover, part) for part in self.checker.looks_at)

    @property
    def depends_on(self) -> tuple[str, ...]:
        """The checker's fields."""
        return self.checker.depends_on

    def opinion(self, history: History, observation: Observation) -> Opinion:
        """See `Judge`."""
        if reason := self._not_seen(observation):
            return Opinion(Verdict.UNDECIDED, False, reason)
        try:
            finding = self.checker.check(history, observation)
            relevant = finding is not None or self.checker.is_relevant(history, observation)
        except Exception as error:
            return Opinion(Verdict.UNDECIDED, False, f"{self.name} cannot tell: {error}")
        if finding is not None:
            return Opinion(Verdict.VIOLATED, relevant, finding.message)
        opinion = Opinion(Verdict.HOLDS, relevant, "")
        return unless_unread(opinion, observation) if self.checker.needs == "tree" else opinion

    def _not_seen(self, observation: Observation) -> str:
        """Why the observation does not show what the checker looks at; empty if it does."""
        match self.checker.needs:
            case "tree":
                return _no_tree(observation)
            case "mount":
                return _not_mounted(observation)
            case "boot":
                return why_boot_stops(observation)
            case "anything":
                return ""


def recoveries_for(
    judges: Iterable[Judge], target: Target, recovery: Recovery = "mount", only: Collection[str] = KINDS
) -> tuple[RecoveryKind, ...]:
    """The kinds of recovery that show what `judges` look at. Only kinds whose `kind_of` is in `only` are taken.

    Each kind is explored on its own, so that what one kind reads does not decide pieces for another.
    """
    chosen, kinds = tuple(judges), (kind for kind in _kinds(target, recovery) if kind_of(kind) in only)
    return tuple(kind for kind in kinds if any(judge.wants(kind) for judge in chosen))


def is_shown(judge: Judge, target: Target, recovery: Recovery = "mount") -> bool:
    """Whether some recovery of `target` shows what the judge looks at. For example, not every target has an fsck."""
    return any(map(judge.wants, _kinds(target, recovery)))


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
    return (*map(CheckerJudge, CHECKERS), *map(PropertyJudge, HOTDEP13))


def judges_named(names: Iterable[str]) -> tuple[Judge, ...]:
    """The judges with these names, upper and lower case alike. Raises LookupError for an unknown one."""
    judges = (*all_judges(), *map(CheckerJudge, PRACTICE), *map(PropertyJudge, PROPERTIES))
    known = {judge.name.casefold(): judge for judge in judges}
    chosen = []
    for name in names:
        if name.casefold() not in known:
            near = get_close_matches(name.casefold(), known, n=1)
            hint = f", did you mean {known[near[0]].name!r}?" if near else ""
            listed = ", ".join(judge.name for judge in known.values())
            raise LookupError(f"unknown property or checker {name!r}{hint} (known: {listed})")
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
        return judge.opinion(history, Observation.from_wire(observation))
    except ObservationError as error:
        return Opinion(Verdict.UNDECIDED, False, f"the agent's report is broken: {error}")
