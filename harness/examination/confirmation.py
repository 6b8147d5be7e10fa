"""Confirm violations. A violation counts only if its crash state shows it again when recovered once more."""

from contextlib import suppress
from dataclasses import replace

from postcrash._core import Recording
from postcrash.harness.errors import GuestLostError
from postcrash.harness.examination.comparison import Comparison, comparison_among
from postcrash.harness.examination.crash_in_recovery import (
    MESSAGE,
    SameRecovery,
    image_of,
    judge_of,
    record_recovery,
)
from postcrash.harness.examination.judges import opinion_on
from postcrash.harness.examination.judging import Opinions
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.repair import ALONE_TOO, ONLY_REPAIRED, is_found_alone, mounted_alone, said_repair
from postcrash.harness.examination.result import Examination, Ruling, Witness
from postcrash.harness.examination.state_location import Place
from postcrash.harness.guests.events import IntervalReport
from postcrash.harness.guests.machine import Machine, Source
from postcrash.model import History, Observation, Verdict
from postcrash.model.judge import Judge
from postcrash.store.json_codec import Json
from postcrash.store.kernel_build import ComparedWith
from postcrash.store.records import Finding, recording_id, state_id

_OF_WITNESS = ("interval", "choices", "lost", "torn", "started", "returned", "observation", "casualty")
"""The fields of a finding that are those of its witness."""
_NOT_AGAIN = "a violation did not show again when its state was recovered once more"


class Confirmation:
    """Confirms the witnesses of `result`, the examination of `source`, and makes findings of them."""

    def __init__(
        self, machine: Machine, plan: Plan, source: Source, place: Place, result: Examination, opinions: Opinions
    ) -> None:
        self._machine, self._plan, self._source = machine, plan, source
        self._place, self._result, self._opinions = place, result, opinions

    def confirm(self, name: str) -> None:
        """Confirm a judge's witnesses. One counts only if its state is judged the same when recovered once more.

        Witnesses that were mounted alone come first, then witnesses with a repair before the mount.
        """
        ruling = self._result.rulings[name]
        found = ruling.simplest_first()
        doubted: list[str] = []
        ways = ([pair for pair in found if pair[1].is_repaired == is_repaired] for is_repaired in (False, True))
        confirmed = [self._confirm_some(name, way, doubted) for way in ways]
        for message in doubted:
            reason = f"{_NOT_AGAIN}: {message}"
            ruling.leave_open(reason)
            self._result.varying.append(reason)
        if found and not any(confirmed):
            ruling.verdict = Verdict.UNDECIDED
            ruling.reason = f"{_NOT_AGAIN}: {ruling.reason}"

    def _confirm_some(self, name: str, found: list[tuple[str, Witness]], doubted: list[str]) -> bool:
        """Whether any witness was confirmed. The messages of those that were tried and not confirmed are `doubted`.

        Crashes within recovery come last. If one finding is enough, they are tried only without another witness.
        """
        if self._plan.findings_max == 1 and any(witness.crashed is None for _, witness in found):
            found = [(message, witness) for message, witness in found if witness.crashed is None]
        shown, enough = False, len(self._result.findings) + self._plan.findings_max
        for message, witness in found:
            if self._confirm_one(name, message, witness):
                shown = True
            else:
                doubted.append(message)
            if len(self._result.findings) == enough:
                break
        return shown

    def _confirm_one(self, name: str, message: str, witness: Witness) -> bool:
        confirm = self._confirm_state if witness.crashed is None else self._confirm_within
        with suppress(GuestLostError):  # then the violation did not show again
            return confirm(name, message, witness)
        return False

    def _confirm_state(self, name: str, message: str, witness: Witness) -> bool:
        judge = next(judge for judge in self._plan.judges if judge.name == name)
        shown = self._shown_again(judge, message, witness, self._source)
        if shown is None:
            return False
        alone = mounted_alone(witness.recover, self._plan.target)
        if alone is not None:
            verdict = self._mounted_alone(judge, replace(witness, recover=alone))
            if verdict is Verdict.VIOLATED and is_found_alone(name, self._result.findings):
                return True  # the earlier finding reports this violation
            message += {Verdict.HOLDS: ONLY_REPAIRED, Verdict.VIOLATED: ALONE_TOO}.get(verdict, "")
        self._result.findings.append(self.finding(name, message, shown, self._place, self._reference(judge, shown)))
        return True

    def _reference(self, judge: Judge, witness: Witness) -> Json | None:
        """What the reference of a judge that compares shows, as in `Finding`."""
        if not isinstance(judge, Comparison):
            return None
        at = History(self._plan.workload, witness.started, witness.returned)
        return judge.nearest(at, Observation.from_wire(witness.observation))

    def _mounted_alone(self, judge: Judge, witness: Witness) -> Verdict:
        """The judge's verdict on the witness's state without a repair. A state that does not mount is VIOLATED."""
        recover = witness.recover.by_kernel()
        again = self._machine.execute(self._source, witness.interval, witness.choices, recover)
        if again.observation is None:
            return Verdict.UNDECIDED
        if not again.is_mounted:
            return Verdict.VIOLATED
        if not witness.recover.shows(judge.looks_at):
            return Verdict.HOLDS  # the judge looks only at the repair
        at = History(self._plan.workload, witness.started, witness.returned)
        return opinion_on(judge, at, again.observation).verdict

    def _confirm_within(self, name: str, message: str, witness: Witness) -> bool:
        """Recover the first crash's state for real, and look for the violation among the crashes within recovery."""
        assert witness.crashed is not None
        history = History(self._plan.workload, witness.started, witness.returned)
        out = self._source.recording.with_name(f"{self._source.recording.name}.{len(self._result.recoveries_kept)}")
        crashed, recover = witness.crashed, witness.recover
        try:
            source = record_recovery(
                self._machine,
                self._source,
                crashed=crashed,
                choices=witness.choices,
                out=out,
                recover=recover,
                history=history,
            )
            recording = Recording(out)
            base = state_id(self._result.recording, crashed.interval, crashed.settled(witness.choices))
            place = Place(recording, source.base, base, source.model)
            judge = self._judge_within(name, crashed.settled(witness.choices), witness)
            ruling = Ruling()
            again = self._machine.explore(
                source, recover, self._plan.how.budget, memo=False, intervals=[witness.interval]
            )
            for report in (event for event in again if isinstance(event, IntervalReport)):
                for outcome in report.outcomes:
                    found = Witness.of(report.index, outcome, history, recover, None)
                    self._opinions.judge(judge, history, found, ruling, place)
            seen = ruling.witnesses.get((message, witness.is_repaired))
            shown = seen and self._shown_again(judge, message, seen, source)
            if not shown:
                out.unlink()
                return False
            if self._result.recoveries_kept.setdefault(recording_id(recording.digest), out) != out:
                out.unlink()
            if name != SameRecovery.name:
                message = MESSAGE + message
            self._result.findings.append(self.finding(name, message, shown, place))
            return True
        except GuestLostError:
            out.unlink(missing_ok=True)
            raise
        finally:
            image_of(out).unlink(missing_ok=True)

    def _judge_within(self, name: str, choices: list[tuple[int, int]], witness: Witness) -> Judge:
        if name != SameRecovery.name:
            return next(judge for judge in self._plan.judges if judge.name == name)
        assert witness.crashed is not None
        return judge_of(self._machine, self._source, witness.crashed.interval, choices, witness.recover)

    def _shown_again(self, judge: Judge, message: str, witness: Witness, source: Source) -> Witness | None:
        """Recover the witness's state once more, with files read by the kernel. None unless it is judged the same."""
        recover = witness.recover.by_kernel()
        again = self._machine.execute(source, witness.interval, witness.choices, recover)
        if again.observation is None:
            return None
        history = History(self._plan.workload, witness.started, witness.returned)
        opinion = opinion_on(judge, history, again.observation)
        if opinion.verdict is not Verdict.VIOLATED or opinion.message != message:
            return None
        return replace(witness, recover=recover, observation=again.observation)

    def _compared_by(self, judge: str) -> ComparedWith | None:
        comparison = comparison_among(each for each in self._plan.judges if each.name == judge)
        return None if comparison is None else comparison.compared

    def finding(
        self, judge: str, message: str, witness: Witness, place: Place, reference: Json | None = None
    ) -> Finding:
        """The finding of a witness at its place, explained. `reference` is its outcome, as in `Finding`."""
        plan, recording = self._plan, recording_id(place.recording.digest)
        if mounted_alone(witness.recover, plan.target) is not None:
            message = f"after {said_repair(witness.recover)}: {message}"
        finding = plan.finding(
            judge,
            message,
            witness.recover,
            within_recovery=place is not self._place,
            recording=recording,
            base=place.base_id,
            state=state_id(recording, witness.interval, witness.choices),
            **{name: getattr(witness, name) for name in _OF_WITNESS},
            compared=self._compared_by(judge),
            reference_outcome=reference,
        )
        return replace(finding, explanation=plan.explainer.explain(finding, place.recording, place.base))
