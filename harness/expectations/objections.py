"""Opinions of judges of practice on the findings of a comparison.

A comparison says only that a reference never shows a state. If documents or practice (`--expect practice`) speak
against the state too, it is wrong whatever the reference does. Such a judge also says what to look for in a script.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from postcrash.harness.expectations.expectation import PRACTISED, Expectation
from postcrash.model import History, Observation, ObservationError, Verdict, parse_workload
from postcrash.store.records import Finding
from postcrash.targets import Target


@dataclass(frozen=True, slots=True)
class PracticeObjection:
    """A judge that objects to the state of a finding: its name, what it says, and the rule that is broken."""

    judge: str
    message: str
    rule: str

    @property
    def text(self) -> str:
        """In one line."""
        return f"{self.judge}: {self.message}; {self.rule}"


def objections(finding: Finding, target: Target) -> tuple[PracticeObjection, ...]:
    """The objections of level `practice` to the state of a comparison's finding. Empty for other findings.

    An objection counts only if it breaks a rule. Judges of what the finding's recovery did not do, such as fsck, are
    not asked.
    """
    if not finding.reference_name or finding.observation is None:
        return ()
    try:
        observation = Observation.from_wire(finding.observation)
    except ObservationError:
        return ()
    workload = parse_workload(finding.workload_text, finding.workload_name)
    history = History(workload, finding.started, finding.returned)
    return tuple(_objections(finding, target, history, observation))


def _objections(
    finding: Finding, target: Target, history: History, observation: Observation
) -> Iterator[PracticeObjection]:
    expected = Expectation.named(PRACTISED)
    for judge in expected.judges(target, finding.model):
        opinion = judge.check(history, observation) if finding.recovery.shows(judge.looks_at) else None
        rule = expected.standing(target, finding.model, judge.name, Verdict.VIOLATED)
        if opinion is not None and opinion.verdict is Verdict.VIOLATED and rule.startswith("broken"):
            yield PracticeObjection(judge.name, opinion.message, rule)


def as_objected(finding: Finding, objection: PracticeObjection) -> Finding:
    """The same crash state as a finding of the judge that objects, which compares nothing."""
    return replace(finding, checker=objection.judge, message=objection.message, reference_outcome=None)
