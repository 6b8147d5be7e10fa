"""What an examination comes to: a ruling for each judge, the counts, and a certificate for each crash interval."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from postcrash.harness.judges import Opinion
from postcrash.model import Verdict, worst
from postcrash.reports.records import Finding


@dataclass(slots=True)
class Ruling:
    """What one judge says of a whole exploration, and the best witness if it is VIOLATED."""

    verdict: Verdict = Verdict.HOLDS
    relevant: bool = False
    reason: str = ""
    witnesses: dict[str, "Witness"] = field(default_factory=dict)
    """By message: the state with the fewest losses."""

    def take(self, opinion: Opinion, witness: "Witness") -> None:
        """Count in the opinion on one observation."""
        self.relevant |= opinion.relevant
        if opinion.verdict > self.verdict:
            self.verdict = opinion.verdict
            self.reason = opinion.message
        if opinion.verdict is Verdict.VIOLATED:
            known = self.witnesses.get(opinion.message)
            if known is None or witness.losses < known.losses:
                self.witnesses[opinion.message] = witness

    def undecided(self, reason: str) -> None:
        """Something was not looked at."""
        if self.verdict < Verdict.UNDECIDED:
            self.verdict, self.reason = Verdict.UNDECIDED, reason


@dataclass(frozen=True, slots=True)
class Witness:
    """A crash state and what it showed."""

    interval: int
    choices: tuple[tuple[int, int], ...]
    started: int
    returned: int
    losses: int
    recover: dict[str, Any]
    observation: dict[str, Any] | None
    casualty: dict[str, str] | None

    def settled(self, versions: dict[int, int]) -> "Witness":
        """The same with `versions` of components that the recovery left open."""
        if not versions:
            return self
        losses = self.losses + sum(version != 0 for version in versions.values())
        return replace(self, choices=(*self.choices, *versions.items()), losses=losses)


@dataclass(slots=True)
class Examination:
    """The result of a plan: counts summed over crash intervals and kinds of recovery, a ruling for each judge."""

    recording: str = ""
    base: str = ""
    model: str = ""
    kernel: str = ""
    states: int = 0
    covered: int = 0
    recoveries: int = 0
    rechecks: int = 0
    outcomes: int = 0
    intervals: int = 0
    rulings: dict[str, Ruling] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    certificates: list[dict[str, Any]] = field(default_factory=list)
    """One for each crash interval and kind of recovery: what was run, and which outcome each execution had."""

    @property
    def verdict(self) -> Verdict:
        """The worst of all rulings."""
        return worst(ruling.verdict for ruling in self.rulings.values())

    def to_json(self) -> dict[str, Any]:
        """For the store."""
        rulings = {
            name: {"verdict": ruling.verdict.name, "relevant": ruling.relevant, "reason": ruling.reason}
            for name, ruling in self.rulings.items()
        }
        counts = {name: getattr(self, name) for name in ("recoveries", "rechecks", "outcomes", "intervals")}
        return {
            **counts,
            **{"recording": self.recording, "base": self.base, "model": self.model, "kernel": self.kernel},
            "states": str(self.states),
            "covered": str(self.covered),
            "rulings": rulings,
            "notes": self.notes,
            "findings": [finding.id for finding in self.findings],
            "certificates": self.certificates,
        }

    @staticmethod
    def from_json(obj: dict[str, Any], finding: Callable[[str], Finding]) -> "Examination":
        """What `to_json` gave; `finding` fetches a finding by its id."""
        examination = Examination(
            **{name: obj[name] for name in ("recording", "base", "model", "kernel")},
            states=int(obj["states"]),
            covered=int(obj["covered"]),
            notes=list(obj["notes"]),
            findings=[finding(known) for known in obj["findings"]],
            certificates=list(obj["certificates"]),
            **{name: obj[name] for name in ("recoveries", "rechecks", "outcomes", "intervals")},
        )
        for name, ruling in obj["rulings"].items():
            examination.rulings[name] = Ruling(Verdict[ruling["verdict"]], ruling["relevant"], ruling["reason"])
        return examination
