"""The result of an examination: a ruling for each judge, the counts, and a certificate for each crash interval."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from postcrash._core import Interval
from postcrash.harness.examination.certificate import Certificate, certificates_of, certificates_to_wire
from postcrash.harness.examination.crash_in_recovery import FirstCrash
from postcrash.harness.guests.events import IntervalReport, Outcome
from postcrash.model import History, Verdict, Workload, worst
from postcrash.model.judge import Opinion
from postcrash.model.wire_observation import WireObservation
from postcrash.store.consoles import Casualty
from postcrash.store.json_codec import Json
from postcrash.store.records import Finding, Simplicity, simplicity
from postcrash.targets import RecoveryKind

_NUMBER = re.compile("[0-9]+")
REASONS_MAX = 100
"""The most reasons of one judge that are kept. After these, one more says that there were others."""


@dataclass(slots=True)
class Ruling:
    """One judge's verdict on a whole exploration, with the simplest witnesses if it is VIOLATED."""

    verdict: Verdict = Verdict.HOLDS
    relevant: bool = False
    reason: str = ""
    unknown: list[str] = field(default_factory=list)
    """Why something could not be judged, even if something else is VIOLATED. Of reasons that differ only in numbers,
    such as those of crash intervals, the first one is kept."""
    witnesses: dict[tuple[str, bool], "Witness"] = field(default_factory=dict)
    """The simplest witness by message, and by whether there was a repair before the mount."""

    def take(self, opinion: Opinion) -> None:
        """Add the opinion on one observation."""
        self.relevant |= opinion.relevant
        if opinion.verdict is Verdict.UNDECIDED:
            self.leave_open(opinion.message)
        if opinion.verdict > self.verdict:
            self.verdict = opinion.verdict
            self.reason = opinion.message

    @property
    def open_questions(self) -> tuple[str, ...]:
        """Why something could not be judged, whatever the verdict; empty if all could."""
        return tuple(self.unknown) or ((self.reason,) if self.verdict is Verdict.UNDECIDED else ())

    def leave_open(self, reason: str) -> None:
        """Note why something could not be judged, whatever the verdict."""
        if reason in self.unknown or _form(reason) in map(_form, self.unknown):
            return
        if len(self.unknown) < REASONS_MAX:
            self.unknown.append(reason)
        elif len(self.unknown) == REASONS_MAX:
            self.unknown.append("for more reasons than are kept")

    @property
    def is_tested(self) -> bool:
        """Whether the judge was put to the test. If it was not, HOLDS says nothing.

        A ruling that is undecided or violated counts as tested, even if a crash state only could not be judged.
        """
        return self.relevant or self.verdict is not Verdict.HOLDS

    def violated(self, message: str, witness: "Witness") -> None:
        """Keep the witness if it is simpler than the one that is known for the message."""
        key = (message, witness.is_repaired)
        known = self.witnesses.get(key)
        if known is None or witness.simplicity < known.simplicity:
            self.witnesses[key] = witness

    def simplest_first(self) -> list[tuple[str, "Witness"]]:
        """Messages and witnesses, in an order that is the same in every run."""
        in_order = sorted(self.witnesses.items(), key=lambda item: (item[1].simplicity, item[0]))
        return [(message, witness) for (message, _), witness in in_order]

    def undecided(self, reason: str) -> None:
        """Make a ruling that HOLDS undecided, because something was not examined."""
        self.leave_open(reason)
        if self.verdict < Verdict.UNDECIDED:
            self.verdict, self.reason = Verdict.UNDECIDED, reason


@dataclass(frozen=True, slots=True)
class Witness:
    """A crash state and what it showed. `lost` are pieces of its interval; `torn` counts the writes that they tear."""

    interval: int
    choices: tuple[tuple[int, int], ...]
    started: int
    returned: int
    lost: tuple[int, ...]
    torn: int
    recover: RecoveryKind
    observation: WireObservation
    casualty: Casualty | None
    crashed: FirstCrash | None = None
    """The state that was being recovered, if the crash came within its recovery."""

    @staticmethod
    def of(
        interval: int, outcome: Outcome, history: History, recover: RecoveryKind, crashed: FirstCrash | None
    ) -> "Witness":
        """The simplest crash state that led to an outcome of a crash interval, at the instant of `history`."""
        return Witness(
            interval=interval,
            choices=outcome.choices,
            started=history.started,
            returned=history.returned,
            lost=outcome.lost,
            torn=0,
            recover=recover,
            observation=outcome.observation,
            casualty=outcome.casualty,
            crashed=crashed,
        )

    @property
    def is_repaired(self) -> bool:
        """Whether a program ran before the mount."""
        return self.recover.is_repaired

    @property
    def simplicity(self) -> tuple[bool, Simplicity]:
        """The key by which the simplest of several witnesses is taken. One crash is simpler than two."""
        return self.crashed is not None, simplicity(self)

    def settled(self, versions: dict[int, int], interval: Interval | None) -> "Witness":
        """The same witness with `versions` of components that the recovery left open. It names only deviations.

        `interval` is None for an interval of a recovery, which only the crash disk has.
        """
        choices = tuple(sorted(choice for choice in (*self.choices, *versions.items()) if choice[1]))
        if interval is None:
            return replace(self, choices=choices)
        return replace(self, choices=choices, lost=tuple(interval.lost(choices)), torn=interval.torn(choices))


_COUNTS = ("recoveries", "remembered", "rechecks", "outcomes", "intervals", "instants")
"""The counts of an examination, except those of crash states."""
_STATE_COUNTS = {
    "states": "states_total",
    "covered": "states",
    "states_within": "states_within_recovery_total",
    "covered_within": "states_within_recovery",
}
"""The counts of crash states, which can be too large for JSON's numbers, and what the results of commands call them."""
_TEXTS = ("recording", "base", "model", "kernel", "guest", "device", "unsupported")
_LISTS = ("notes", "varying")


@dataclass(slots=True)
class Extent:
    """How far one kind of recovery got: crash states of all intervals, and those within recoveries.

    A crash state counts once for each instant of its interval.
    """

    intervals: int = 0
    instants: int = 0
    states: int = 0
    covered: int = 0
    states_within: int = 0
    covered_within: int = 0

    def add(self, report: IntervalReport) -> None:
        """Add a crash interval of the run, or of a recovery."""
        instants = len(report.instants)
        states, covered = report.states * instants, report.covered * instants
        if report.within:
            self.states_within += states
            self.covered_within += covered
        else:
            self.intervals += 1
            self.instants += instants
            self.states += states
            self.covered += covered


@dataclass(slots=True)
class Examination:
    """The result of a plan: counts over all crash intervals, and a ruling for each judge.

    A crash state counts once for each instant at which a crash can leave it, whatever the number of kinds of recovery.
    If some kinds got less far than others, the kind that got least far counts. `recoveries`, `remembered`, `rechecks`
    and `outcomes` are sums over all kinds.
    """

    recording: str = ""
    """Empty if no recording could be made."""
    base: str = ""
    model: str = ""
    kernel: str = ""
    guest: str = ""
    """The digest of the guest, as in `Plan`."""
    device: str = ""
    """The path that the recording was made on."""
    states: int = 0
    covered: int = 0
    recoveries: int = 0
    remembered: int = 0
    """Recoveries that were not run, because an earlier one had read the same bytes."""
    rechecks: int = 0
    outcomes: int = 0
    intervals: int = 0
    instants: int = 0
    states_within: int = 0
    """Crash states within the recovery of crash states."""
    covered_within: int = 0
    rulings: dict[str, Ruling] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unsupported: str = ""
    """The operation that the target does not have, if the workload cannot run without it. A note says where it is."""
    findings: list[Finding] = field(default_factory=list)
    certificates: list[Certificate] = field(default_factory=list)
    """One for each crash interval and kind of recovery: what was run, and which outcome each execution had."""
    is_cut_short: bool = False
    """Whether crash states were left out because there was a violation (`Plan.enough`)."""
    varying: list[str] = field(default_factory=list)
    """Why a later examination of the same plan is uncertain: two recoveries of one crash state differed."""
    lost_guests: list[Casualty] = field(default_factory=list)
    """Guests that were lost. Their consoles are kept apart from the result."""
    recoveries_kept: dict[str, Path] = field(default_factory=dict)
    """Recordings of recoveries, by their id. The crash of a finding comes within each of them."""

    def count(self, report: IntervalReport) -> None:
        """Add the counts of a crash interval."""
        self.outcomes += 0 if report.within else len(report.outcomes)
        self.recoveries += report.recoveries
        self.remembered += report.remembered
        self.rechecks += report.rechecks

    def undecided(self, reason: str) -> None:
        """Make every ruling that HOLDS undecided, for this reason."""
        for ruling in self.rulings.values():
            ruling.undecided(reason)

    def follows(self, first: "Examination") -> None:
        """Add the observations of a shorter examination of the same plan that need not recur in this one.

        A violation of the first examination stays one if it does not recur: the recovery varies.
        """
        self.lost_guests[:0] = first.lost_guests
        self.notes[:0] = first.notes
        for reason in first.varying:
            self.undecided(reason)
        for name, ruling in first.rulings.items():
            now = self.rulings.get(name)
            if ruling.verdict is Verdict.VIOLATED and (now is None or now.verdict is not Verdict.VIOLATED):
                self.rulings[name] = ruling
                self.findings = [finding for finding in self.findings if finding.checker != name]
                self.findings += [finding for finding in first.findings if finding.checker == name]

    def reached(self, extents: Sequence[Extent]) -> None:
        """Set how far the exploration got. All kinds of recovery have the same states; the least far one counts.

        One that lost its guests may have reported nothing. Then the others know how many states there are.
        Crashes within recovery are explored for the kinds that show the tree. Each kind has recoveries of its own, so
        their states are added up.
        """
        most = max(extents, key=lambda extent: extent.states, default=Extent())
        self.intervals, self.instants, self.states = most.intervals, most.instants, most.states
        self.covered = min((extent.covered for extent in extents), default=0)
        self.states_within = sum(extent.states_within for extent in extents)
        self.covered_within = sum(extent.covered_within for extent in extents)

    @property
    def counts(self) -> dict[str, int]:
        """All counts, by their names."""
        return {name: getattr(self, name) for name in (*_STATE_COUNTS, *_COUNTS)}

    @property
    def is_whole(self) -> bool:
        """Whether no crash state was left out."""
        return (self.covered, self.covered_within) == (self.states, self.states_within)

    @property
    def verdict(self) -> Verdict:
        """The worst of all rulings on what was put to the test; UNDECIDED if nothing was."""
        return worst([ruling.verdict for ruling in self.rulings.values() if ruling.is_tested] or [Verdict.UNDECIDED])

    def to_json(self) -> Json:
        """For the store."""
        return {
            **{name: getattr(self, name) for name in (*_COUNTS, *_TEXTS, *_LISTS)},
            **{name: str(getattr(self, name)) for name in _STATE_COUNTS},
            "is_cut_short": self.is_cut_short,
            "rulings": {
                name: {
                    "verdict": ruling.verdict.name,
                    "relevant": ruling.relevant,
                    "reason": ruling.reason,
                    "unknown": ruling.unknown,
                }
                for name, ruling in self.rulings.items()
            },
            "findings": [finding.id for finding in self.findings],
            "certificates": certificates_to_wire(self.certificates),
        }

    @staticmethod
    def from_json(obj: Json, finding: Callable[[str], Finding]) -> "Examination":
        """Reads what `to_json` gave; `finding` fetches a finding by its id."""
        plain: Json = {
            **{name: obj[name] for name in (*_COUNTS, *_TEXTS)},
            **{name: list(obj[name]) for name in _LISTS},
            **{name: int(obj[name]) for name in _STATE_COUNTS},
        }
        return Examination(
            **plain,
            is_cut_short=obj["is_cut_short"],
            rulings={
                name: Ruling(Verdict[ruling["verdict"]], ruling["relevant"], ruling["reason"], ruling["unknown"])
                for name, ruling in obj["rulings"].items()
            },
            findings=[finding(known) for known in obj["findings"]],
            certificates=certificates_of(obj["certificates"]),
        )


def counts_json(counts: Mapping[str, int]) -> Json:
    """The counts of one or more examinations in the results of commands. Crash states are decimal text."""
    states = {shown: str(counts[name]) for name, shown in _STATE_COUNTS.items()}
    return states | {name: counts[name] for name in _COUNTS}


def _form(reason: str) -> str:
    return _NUMBER.sub("N", reason)


def instants_of(report: IntervalReport, workload: Workload) -> list[History]:
    """The history at each instant of a crash interval."""
    return [History(workload, instant.started, instant.returned) for instant in report.instants]
