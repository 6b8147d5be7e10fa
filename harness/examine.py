"""One workload on one target, from recording to verdicts: the unit of work of `characterize` and `check`."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from postcrash._core import Recording
from postcrash.harness.casualties import CASUALTY_JUDGE, count_in, doing, lost_in_run, note
from postcrash.harness.coverage import coverage
from postcrash.harness.errors import GuestLostError, OperationFailedError, RecordersDisagreeError
from postcrash.harness.examination import Examination, Extent, Ruling, Witness
from postcrash.harness.exploration import Exploration
from postcrash.harness.judges import Judge, Opinion, opinion_on
from postcrash.harness.machine import Event, Machine, Source
from postcrash.harness.place import Place
from postcrash.harness.recording import record
from postcrash.harness.recovery import (
    BELOW,
    MESSAGE,
    Crashed,
    SameRecovery,
    first_observation,
    image_of,
    judge_of,
    record_recovery,
)
from postcrash.harness.repair import ALONE_TOO, ONLY_REPAIRED, is_found_alone, mounted_alone, said_repair
from postcrash.model import History, Observation, ObservationError, Verdict, Workload, every_answer
from postcrash.reports.explanation import explain
from postcrash.reports.records import Finding, finding_id, recording_id, state_id
from postcrash.targets import BaseImage, Target

ANSWERS_MAX = 20_000
"""Of one judge about one outcome."""
OPINIONS_MAX = 50_000
"""So many are remembered at a time."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to examine. `recoveries` are the kinds of recovery, in the wire's form; each is explored on its own.

    `kernel` is the name of the guest's kernel for people. `guest` is the digest of the guest, which tells it from
    another one with that name (`guest_digest`).
    """

    target: Target
    base: BaseImage
    kernel: str
    guest: str
    workload: Workload
    judges: tuple[Judge, ...]
    recoveries: tuple[dict[str, Any], ...]
    how: Exploration
    findings_max: int = 1
    """For each judge."""

    def key(self, tool: str) -> str:
        """The same for plans that must come to the same result with the same `tool`."""
        parts = (
            *(tool, self.target.digest(), self.base.id, self.kernel, self.guest, self.workload.to_text()),
            *(
                repr(self.recoveries),
                repr(self.how),
                str(self.findings_max),
                *(f"{judge.name} {judge.version}".strip() for judge in self.judges),
            ),
        )
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def finding_id(self, judge: str, message: str, recover: dict[str, Any], *, within_recovery: bool) -> str:
        """The id of what `judge` says of a state that was recovered by `recover`: the same in every run.

        So it does not depend on budget and seed, and not on our own code.
        """
        parts = (
            *(self.target.name, json.dumps(self.target.mount_wire()), self.base.id, self.kernel, self.guest),
            *(self.workload.to_text(), self.how.model, self.how.recorder, str(self.how.held)),
            *(json.dumps({**recover, "map": False}, sort_keys=True), str(within_recovery), judge, message),
        )
        return finding_id(parts)


def examine(machine: Machine, plan: Plan, recording: Path, progress: Callable[[int], None]) -> Examination:
    """Record `plan.workload` into the file `recording`, explore every crash state, judge, confirm each witness.

    `progress` is called with the number of recoveries so far.
    """
    metadata = {
        **{"target": plan.target.name, "kernel": plan.kernel, "base": plan.base.id, "workload": plan.workload.name},
        "text": plan.workload.to_text(),
        "completions": "when the guest stands still" if plan.how.held is None else f"held back, seed {plan.how.held}",
    }
    mount, workload, how = plan.target.mount_wire(), plan.workload, plan.how
    try:
        record(machine, plan.base.path, mount, workload, recording, metadata, held=how.held, recorder=how.recorder)
    except GuestLostError as error:
        result = lost_in_run(plan, recording, error.lost)
    except RecordersDisagreeError as error:
        result = not_run(plan, str(error))
    else:
        result = _Examiner(machine, plan, Source(recording, plan.base.path, how.model), progress).run()
    for lost in machine.take_lost():
        count_in(result, workload, lost)
    result.casualties += [finding.casualty for finding in result.findings if finding.casualty is not None]
    return result


def unsupported(plan: Plan, error: OperationFailedError) -> Examination:
    """What comes of a workload with an operation that the file system does not have: nothing was explored."""
    refused = not_run(plan, str(error))
    refused.unsupported = error.operation
    return refused


def not_run(plan: Plan, reason: str) -> Examination:
    """What comes of a workload of which there is no recording."""
    nothing = Examination(base=plan.base.id, model=plan.how.model, kernel=plan.kernel, guest=plan.guest)
    nothing.notes = [reason]
    nothing.rulings = {judge.name: Ruling(Verdict.UNDECIDED, reason=reason) for judge in plan.judges}
    return nothing


class _Examiner:
    def __init__(self, machine: Machine, plan: Plan, source: Source, progress: Callable[[int], None]) -> None:
        self._machine, self._plan, self._source, self._progress = machine, plan, source, progress
        self._recording = Recording(source.recording)
        self._result = Examination(recording_id(self._recording.digest), plan.base.id, plan.how.model, plan.kernel)
        self._result.guest = plan.guest
        self._result.device = json.loads(self._recording.metadata)["device"]
        self._result.rulings = {judge.name: Ruling() for judge in plan.judges}
        if plan.how.depth > 1:
            self._result.rulings[SameRecovery.name] = Ruling()
        self._place = Place(self._recording, plan.base.path, plan.base.id, plan.how.model)
        self._observations: dict[bytes, Any] = {}
        self._opinions: dict[tuple[int, ...], _Known] = {}
        """By the ids of judge and report, and what of the instant the judge's opinion depends on."""
        self._last_read: tuple[object, Observation] | None = None
        self._extents: list[Extent] = []

    def run(self) -> Examination:
        plan, seconds = self._plan, 0.0
        for number, recover in enumerate(plan.recoveries):
            self._extents.append(Extent())
            before = self._result.recoveries
            depth = self._depth(recover)
            share = plan.how.budget.share(before + self._result.remembered, seconds, len(plan.recoveries) - number)
            try:
                for event in self._machine.explore(self._source, recover, share, seed=plan.how.seed, depth=depth):
                    self._event(event, recover, before)
                seconds += event["seconds"]
            except GuestLostError as error:
                self._undecided(recover, f"no guest could be trusted: {doing(plan.workload, error.lost)}: {error}")
        self._result.reached(self._extents)
        for name in [name for name in self._result.rulings if name != CASUALTY_JUDGE]:
            self._confirm(name)
        if casualties := self._result.rulings.get(CASUALTY_JUDGE):
            for message, witness in casualties.simplest_first():
                self._result.findings.append(self._finding(CASUALTY_JUDGE, message, witness, self._place))
        return self._result

    def _depth(self, recover: dict[str, Any]) -> int:
        """What fsck says of a file system is asked of the states of the run: it takes far longer than recovery."""
        return self._plan.how.depth if recover["walk"] else 1

    def _undecided(self, recover: dict[str, Any], reason: str) -> None:
        """Not every state was looked at by those who judge recoveries of this kind."""
        names = [judge.name for judge in self._plan.judges if judge.wants(recover)]
        for name in names + [SameRecovery.name] * (self._depth(recover) > 1):
            self._result.rulings[name].undecided(reason)

    def _event(self, event: Event, recover: dict[str, Any], before: int) -> None:
        match event["event"]:
            case "interval":
                self._interval(event, recover)
            case "progress":
                self._progress(before + event["recoveries"])
            case "lost-guest":
                choices = [(component, version) for component, version in event["choices"]]
                state = state_id(self._result.recording, event["interval"], choices)
                self._result.casualties.append({name: event[name] for name in ("what", "console", "stacks")})
                self._result.notes.append(note(f"in the recovery of crash state {state}", event))
            case "nondeterministic":
                reason = f"crash interval {event['interval']}: two recoveries of one crash state differ"
                self._result.notes.append(f"{reason}: {event['first']} and {event['second']}"[:2000])
                for ruling in self._result.rulings.values():
                    ruling.undecided(reason)

    def _interval(self, event: Event, recover: dict[str, Any]) -> None:
        crashed = Crashed.of(event)
        self._result.count(event, within_recovery=crashed is not None)
        self._extents[-1].add(event, within_recovery=crashed is not None)
        for outcome in event["outcomes"]:
            outcome["observation"] = self._shared(outcome["observation"])
        self._result.certificates.append(_certificate(event, recover))
        histories = instants_of(event, self._plan.workload)
        judges = [judge for judge in self._plan.judges if judge.wants(recover)]
        for outcome in event["outcomes"]:
            self._outcome(event["index"], outcome, histories, recover, judges, crashed)
        if crashed is not None:
            self._same_recovery(event, crashed, histories[-1], recover)
        if event["left_out"] is not None:
            place = ""
            if crashed is not None:
                place = (
                    f"within the recovery of {state_id(self._result.recording, crashed.interval, crashed.choices)}: "
                )
            self._undecided(recover, f"{place}{coverage(event)}")

    def _same_recovery(self, event: Event, crashed: Crashed, history: History, recover: dict[str, Any]) -> None:
        """Compare every recovery after a crash within the one that `event` is about with what that one showed.

        That is the same for executions which agree on what the first recovery had left open.
        """
        compared = set()
        for choices, number in event["executions"]:
            case = (number, frozenset((component, version) for component, version in choices if component >= BELOW))
            outcome = {**event["outcomes"][number], "choices": choices}
            if case not in compared and outcome["observation"] is not None:
                judge = SameRecovery(first_observation(event, choices))
                self._outcome(event["index"], outcome, [history], recover, [judge], crashed)
            compared.add(case)

    def _shared(self, observation: object) -> object:
        """The equal observation that was seen first: thousands of crash intervals have few different ones."""
        digest = hashlib.sha256(json.dumps(observation).encode()).digest()
        return self._observations.setdefault(digest, observation)

    def _read(self, observation: object) -> Observation:
        """The observation that a report stands for. It is read once, and not again for the next judge and instant."""
        if self._last_read is None or self._last_read[0] is not observation:
            self._last_read = (observation, Observation.from_wire(observation))
        return self._last_read[1]

    def _outcome(
        self,
        interval: int,
        outcome: Event,
        histories: Sequence[History],
        recover: dict[str, Any],
        judges: Sequence[Judge],
        crashed: Crashed | None,
    ) -> None:
        """Have an outcome judged at each instant at which a crash can lead to it."""
        witness = _witness(interval, outcome, histories[0], recover, crashed)
        if witness.casualty is not None:
            what = witness.casualty["what"]
            if crashed is None:
                ruling = self._result.rulings.setdefault(CASUALTY_JUDGE, Ruling())
                ruling.take(Opinion(Verdict.VIOLATED, True, f"recovery: {what}"))
                ruling.violated(f"recovery: {what}", witness.settled({}, self._place.intervals[interval]))
            self._undecided(recover, f"a crash state could not be recovered: {what}")
            return
        for history in histories:
            witness = _witness(interval, outcome, history, recover, crashed)
            for judge in judges:
                place = self._place if crashed is None else None
                self._judge(judge, history, witness, self._result.rulings[judge.name], place)

    def _judge(self, judge: Judge, history: History, witness: Witness, ruling: Ruling, place: Place | None) -> None:
        """Ask the judge about the outcome, once for each way in which contents that are not settled matter to it.

        Ways come with fewest losses first, so that nothing behind the first violation loses less. The losses of a crash
        within recovery, which has no `place`, are found out when it is followed up.
        """
        fewest: int | None = None
        try:
            answers = self._answers(judge, history, witness, place)
        except ObservationError as error:
            ruling.undecided(f"the agent's report is broken: {error}")
            return
        for number, (opinion, versions) in enumerate(answers):
            if number == ANSWERS_MAX:
                ruling.undecided(f"contents matter in more than {ANSWERS_MAX} ways to {judge.name}")
                return
            ruling.take(opinion)
            if opinion.verdict is Verdict.VIOLATED:
                found = witness.settled(versions, None if place is None else place.intervals[witness.interval])
                fewest = len(found.lost) if fewest is None else fewest
                if len(found.lost) > fewest:
                    return
                ruling.violated(opinion.message, found)

    def _answers(
        self, judge: Judge, history: History, witness: Witness, place: Place | None
    ) -> Iterable[tuple[Opinion, dict[int, int]]]:
        """See `every_answer`. If all that is looked at is settled, the opinion is the same in each crash interval."""
        wire = witness.observation
        key = (id(judge), id(wire), *(getattr(history, field) for field in judge.depends_on))
        if key in self._opinions:
            return [(self._opinions[key].opinion, {})]
        observation = self._read(wire)
        losses = (lambda _, version: int(version > 0)) if place is None else place.losses(witness.interval)
        answers = every_answer(lambda: judge.opinion(history, observation), losses)
        opinion, versions = next(answers)
        if not versions:
            if len(self._opinions) == OPINIONS_MAX:
                self._opinions.clear()
            self._opinions[key] = _Known(judge, wire, opinion)
        return chain([(opinion, versions)], answers)

    def _confirm(self, name: str) -> None:
        """A witness counts only if its state, recovered once more, is judged the same.

        Of each way to recover: first mounting alone, then with a repair before that.
        """
        ruling = self._result.rulings[name]
        found = ruling.simplest_first()
        ways = ([pair for pair in found if pair[1].is_repaired == is_repaired] for is_repaired in (False, True))
        confirmed = [self._confirm_some(name, way) for way in ways]
        if found and not any(confirmed):
            ruling.verdict = Verdict.UNDECIDED
            ruling.reason = f"a violation did not show again when its state was recovered once more: {ruling.reason}"

    def _confirm_some(self, name: str, found: list[tuple[str, Witness]]) -> bool:
        """Whether any did show again. Crashes within recovery are followed up where there is no other witness."""
        if any(witness.crashed is None for _, witness in found):
            found = [(message, witness) for message, witness in found if witness.crashed is None]
        shown, enough = False, len(self._result.findings) + self._plan.findings_max
        for message, witness in found:
            confirm = self._confirm_state if witness.crashed is None else self._confirm_within
            with suppress(GuestLostError):  # then it did not show again
                shown |= confirm(name, message, witness)
            if len(self._result.findings) == enough:
                break
        return shown

    def _confirm_state(self, name: str, message: str, witness: Witness) -> bool:
        judge = next(judge for judge in self._plan.judges if judge.name == name)
        shown = self._shown_again(judge, message, witness, self._source)
        if shown is None:
            return False
        alone = mounted_alone(witness.recover, self._plan.target)
        if alone is not None:
            verdict = self._mounted_alone(judge, replace(witness, recover=alone))
            if verdict is Verdict.VIOLATED and is_found_alone(name, self._result.findings):
                return True  # that finding tells of it
            message += {Verdict.HOLDS: ONLY_REPAIRED, Verdict.VIOLATED: ALONE_TOO}.get(verdict, "")
        self._result.findings.append(self._finding(name, message, shown, self._place))
        return True

    def _mounted_alone(self, judge: Judge, witness: Witness) -> Verdict:
        """The judge's verdict on the witness' state without a repair; one that does not mount is as bad as any."""
        recover = {**witness.recover, "map": False}
        again = self._machine.execute(self._source, witness.interval, list(witness.choices), recover)
        if again["observation"] is None or again["observation"]["mount_errno"]:
            return Verdict.VIOLATED if again["observation"] else Verdict.UNDECIDED
        if not judge.wants(witness.recover):
            return Verdict.HOLDS  # it is about the repair
        at = History(self._plan.workload, witness.started, witness.returned)
        return opinion_on(judge, at, again["observation"]).verdict

    def _confirm_within(self, name: str, message: str, witness: Witness) -> bool:
        """Recover the state below for real, and look for the violation among the crashes within that recovery."""
        assert witness.crashed is not None
        history = History(self._plan.workload, witness.started, witness.returned)
        out = self._source.recording.with_name(f"{self._source.recording.name}.{len(self._result.recoveries_kept)}")
        crashed, recover = witness.crashed, witness.recover
        try:
            source = record_recovery(self._machine, self._source, crashed, witness.choices, out, recover, history)
            recording = Recording(out)
            base = state_id(self._result.recording, crashed.interval, crashed.settled(witness.choices))
            place = Place(recording, source.base, base, source.model)
            judge = self._judge_within(name, crashed.settled(witness.choices), witness)
            ruling = Ruling()
            again = self._machine.explore(
                *(source, recover, self._plan.how.budget), memo=False, intervals=[witness.interval]
            )
            for event in again:
                for outcome in event.get("outcomes", ()):
                    found = _witness(event["index"], outcome, history, recover, None)
                    self._judge(judge, history, found, ruling, place)
            seen = ruling.witnesses.get((message, witness.is_repaired))
            shown = seen and self._shown_again(judge, message, seen, source)
            if not shown:
                out.unlink()
                return False
            if self._result.recoveries_kept.setdefault(recording_id(recording.digest), out) != out:
                out.unlink()
            if name != SameRecovery.name:
                message = MESSAGE + message
            self._result.findings.append(self._finding(name, message, shown, place))
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
        """The witness with its state recovered once more, files read by the kernel, if it is judged the same."""
        recover = {**witness.recover, "map": False}
        again = self._machine.execute(source, witness.interval, list(witness.choices), recover)
        if again["observation"] is None:
            return None
        history = History(self._plan.workload, witness.started, witness.returned)
        opinion = opinion_on(judge, history, again["observation"])
        if opinion.verdict is not Verdict.VIOLATED or opinion.message != message:
            return None
        return replace(witness, recover=recover, observation=again["observation"])

    def _finding(self, judge: str, message: str, witness: Witness, place: Place) -> Finding:
        plan, recording = self._plan, recording_id(place.recording.digest)
        if mounted_alone(witness.recover, plan.target) is not None:
            message = f"after {said_repair(witness.recover)}: {message}"
        finding = Finding(
            id=plan.finding_id(judge, message, witness.recover, within_recovery=place is not self._place),
            checker=judge,
            message=message,
            target=plan.target.name,
            kernel=plan.kernel,
            model=plan.how.model,
            workload_name=plan.workload.name,
            workload_text=plan.workload.to_text(),
            recording=recording,
            base=place.base_id,
            state=state_id(recording, witness.interval, witness.choices),
            interval=witness.interval,
            choices=witness.choices,
            lost=witness.lost,
            torn=witness.torn,
            started=witness.started,
            returned=witness.returned,
            observation=witness.observation,
            casualty=witness.casualty,
            recover=witness.recover,
            guest=plan.guest,
        )
        return replace(finding, explanation=explain(finding, place.recording, place.base))


class _Known(NamedTuple):
    """An opinion, with what it is of: so nothing else can have their ids while it is remembered."""

    judge: Judge
    report: object
    opinion: Opinion


def instants_of(event: Event, workload: Workload) -> list[History]:
    """What the operations had come to at each instant of a crash interval, of which `event` is the report."""
    return [History(workload, instant["started"], instant["returned"]) for instant in event["instants"]]


def _witness(
    interval: int, outcome: Event, history: History, recover: dict[str, Any], crashed: Crashed | None
) -> Witness:
    choices = tuple((component, version) for component, version in outcome["choices"])
    return Witness(
        *(interval, choices, history.started, history.returned, tuple(outcome["lost"]), 0),
        *(recover, outcome["observation"], outcome.get("casualty"), crashed),
    )


def _certificate(event: Event, recover: dict[str, Any]) -> dict[str, Any]:
    """What has to be known to predict the outcome of any crash state; of a crash within recovery the counts only."""
    counts = ("index", "instants", "states", "covered", "recoveries", "remembered", "left_out", "reached")
    certificate = {"recover": recover, **{name: event[name] for name in counts}}
    if crashed := Crashed.of(event):
        return {**certificate, "within": {"interval": crashed.interval, "choices": crashed.choices}}
    outcomes = [{"observation": outcome["observation"], "states": outcome["states"]} for outcome in event["outcomes"]]
    return {**certificate, "executions": event["executions"], "outcomes": outcomes}
