"""One workload on one target, from recording to verdicts: the unit of work of `characterize` and `check`."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from postcrash._core import Recording, intervals
from postcrash.harness.examination import Examination, Ruling, Witness
from postcrash.harness.judges import Judge, Opinion
from postcrash.harness.machine import Budget, Event, Machine, Source
from postcrash.model import History, Observation, ObservationError, Verdict, Workload, every_answer
from postcrash.reports.explanation import explain
from postcrash.reports.records import Finding, finding_id, recording_id, state_id
from postcrash.targets import BaseImage, Target

ANSWERS_MAX = 20_000
"""Of one judge about one outcome."""
_CASUALTY_JUDGE = "guest"
"""Stands in a finding for the judge, where recovering a state kills or hangs every guest."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to examine. `recoveries` are the kinds of recovery, in the wire's form; each is explored on its own."""

    target: Target
    base: BaseImage
    kernel: str
    model: str
    workload: Workload
    judges: tuple[Judge, ...]
    recoveries: tuple[dict[str, Any], ...]
    budget: Budget
    findings_max: int = 1
    """For each judge."""
    held: int | None = None
    """Seed of the order of completions that are held back while recording; None: each write completes at once."""

    def key(self, tool: str) -> str:
        """The same for plans that must come to the same result with the same `tool`."""
        parts = (
            *(tool, self.target.digest(), self.base.id, self.kernel, self.model, self.workload.to_text()),
            *(
                repr(self.recoveries),
                repr(self.budget),
                str((self.findings_max, self.held)),
                *(judge.name for judge in self.judges),
            ),
        )
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def examine(machine: Machine, plan: Plan, recording: Path, progress: Callable[[int], None]) -> Examination:
    """Record `plan.workload` into the file `recording`, explore every crash state, judge, confirm each witness.

    `progress` is called with the number of recoveries so far.
    """
    metadata = {
        **{"target": plan.target.name, "kernel": plan.kernel, "base": plan.base.id, "workload": plan.workload.name},
        **{"text": plan.workload.to_text(), "device": "crash disk over virtio-blk (no FUA: FUA is write + flush)"},
        "completions": "at once" if plan.held is None else f"held back, seed {plan.held}",
    }
    machine.record(plan.base.path, plan.target.mount_wire(), plan.workload, recording, metadata, plan.held)
    examiner = _Examiner(machine, plan, Source(recording, plan.base.path, plan.model), progress)
    return examiner.run()


class _Examiner:
    def __init__(self, machine: Machine, plan: Plan, source: Source, progress: Callable[[int], None]) -> None:
        self._machine, self._plan, self._source, self._progress = machine, plan, source, progress
        self._recording = Recording(source.recording)
        self._result = Examination(recording_id(self._recording.digest), plan.base.id, plan.model, plan.kernel)
        self._result.rulings = {judge.name: Ruling() for judge in plan.judges}

    def run(self) -> Examination:
        for recover in self._plan.recoveries:
            before = self._result.recoveries
            for event in self._machine.explore(self._source, recover, self._plan.budget):
                self._event(event, recover, before)
        for judge in self._plan.judges:
            self._confirm(judge)
        if casualties := self._result.rulings.get(_CASUALTY_JUDGE):
            for message, witness in casualties.witnesses.items():
                self._result.findings.append(self._finding(_CASUALTY_JUDGE, message, witness))
        return self._result

    def _event(self, event: Event, recover: dict[str, Any], before: int) -> None:
        match event["event"]:
            case "interval":
                self._interval(event, recover)
            case "progress":
                self._progress(before + event["recoveries"])
            case "lost-guest":
                choices = [(component, version) for component, version in event["choices"]]
                state = state_id(self._result.recording, event["interval"], choices)
                self._result.notes.append(f"{event['what']} (crash state {state}); console: {event['console'][-400:]}")
            case "nondeterministic":
                reason = f"crash interval {event['interval']}: two recoveries of one crash state differ"
                self._result.notes.append(f"{reason}: {event['first']} and {event['second']}"[:2000])
                for ruling in self._result.rulings.values():
                    ruling.undecided(reason)

    def _interval(self, event: Event, recover: dict[str, Any]) -> None:
        result = self._result
        result.intervals += 1
        result.states += int(event["states"])
        result.covered += int(event["covered"])
        result.recoveries += event["recoveries"]
        result.rechecks += event["rechecks"]
        result.outcomes += len(event["outcomes"])
        result.certificates.append(_certificate(event, recover))
        history = History(self._plan.workload, event["started"], event["returned"])
        judges = [judge for judge in self._plan.judges if judge.wants(recover)]
        for outcome in event["outcomes"]:
            self._outcome(event["index"], outcome, history, recover, judges)
        if event["left_out"] is not None:
            for judge in judges:
                result.rulings[judge.name].undecided(f"crash interval {event['index']}: {event['left_out']}")

    def _outcome(
        self, interval: int, outcome: Event, history: History, recover: dict[str, Any], judges: list[Judge]
    ) -> None:
        choices = tuple((component, version) for component, version in outcome["choices"])
        casualty = outcome.get("casualty")
        witness = Witness(
            *(interval, choices, history.started, history.returned, len(outcome["lost"])),
            *(recover, outcome["observation"], casualty),
        )
        if casualty is not None:
            ruling = self._result.rulings.setdefault(_CASUALTY_JUDGE, Ruling())
            ruling.take(Opinion(Verdict.VIOLATED, True, f"recovery: {casualty['what']}"), witness)
            for judge in judges:
                self._result.rulings[judge.name].undecided(f"a crash state could not be recovered: {casualty['what']}")
            return
        for judge in judges:
            self._judge(judge, history, witness)

    def _judge(self, judge: Judge, history: History, witness: Witness) -> None:
        """Ask the judge about the outcome, once for each way in which contents that are not settled matter to it."""
        ruling = self._result.rulings[judge.name]
        try:
            observation = Observation.from_wire(witness.observation)
        except ObservationError as error:
            ruling.undecided(f"the agent's report is broken: {error}")
            return
        answers = every_answer(lambda: judge.opinion(history, observation))
        for number, (opinion, versions) in enumerate(answers):
            if number == ANSWERS_MAX:
                ruling.undecided(f"contents matter in more than {ANSWERS_MAX} ways to {judge.name}")
                return
            ruling.take(opinion, witness.settled(versions))
            if opinion.verdict is Verdict.VIOLATED:
                return

    def _confirm(self, judge: Judge) -> None:
        """A witness counts only if its state, recovered once more, is judged the same."""
        ruling = self._result.rulings[judge.name]
        confirmed = 0
        for message, witness in sorted(ruling.witnesses.items(), key=lambda item: (item[1].losses, item[0])):
            recover = {**witness.recover, "map": False}
            again = self._machine.execute(self._source, witness.interval, list(witness.choices), recover)
            history = History(self._plan.workload, witness.started, witness.returned)
            if again["observation"] is not None:
                opinion = _opinion(judge, history, again["observation"])
                if opinion.verdict is Verdict.VIOLATED and opinion.message == message:
                    shown = replace(witness, recover=recover, observation=again["observation"])
                    self._result.findings.append(self._finding(judge.name, message, shown))
                    confirmed += 1
            if confirmed == self._plan.findings_max:
                break
        if ruling.witnesses and not confirmed:
            ruling.verdict = Verdict.UNDECIDED
            ruling.reason = f"a violation did not show again when its state was recovered once more: {ruling.reason}"

    def _finding(self, judge: str, message: str, witness: Witness) -> Finding:
        plan, recording = self._plan, self._result.recording
        interval = intervals(self._recording, plan.base.path, plan.model)[witness.interval]
        finding = Finding(
            id=finding_id(plan.target.name, plan.workload.to_text(), plan.model, judge, message),
            checker=judge,
            message=message,
            target=plan.target.name,
            kernel=plan.kernel,
            model=plan.model,
            workload_name=plan.workload.name,
            workload_text=plan.workload.to_text(),
            recording=recording,
            base=plan.base.id,
            state=state_id(recording, interval.index, witness.choices),
            interval=witness.interval,
            choices=witness.choices,
            started=witness.started,
            returned=witness.returned,
            observation=witness.observation,
            casualty=witness.casualty,
            recover=witness.recover,
            explanation=None,
        )
        return replace(finding, explanation=explain(finding, self._recording, plan.base.path))


def _certificate(event: Event, recover: dict[str, Any]) -> dict[str, Any]:
    """What has to be known to predict the outcome of any crash state of the interval."""
    kept = ("index", "started", "returned", "states", "covered", "recoveries", "executions", "left_out")
    outcomes = [{"observation": outcome["observation"], "states": outcome["states"]} for outcome in event["outcomes"]]
    return {"recover": recover, **{name: event[name] for name in kept}, "outcomes": outcomes}


def _opinion(judge: Judge, history: History, observation: object) -> Opinion:
    try:
        return judge.opinion(history, Observation.from_wire(observation))
    except ObservationError as error:
        return Opinion(Verdict.UNDECIDED, False, f"the agent's report is broken: {error}")
