"""One workload on one target, from recording to verdicts: the unit of work of `characterize` and `check`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from postcrash._core import BELOW, Recording
from postcrash.harness.errors import GuestLostError, OperationFailedError, RecordersDisagreeError
from postcrash.harness.examination.certificate import Certificate
from postcrash.harness.examination.comparison import comparison_among
from postcrash.harness.examination.confirmation import Confirmation
from postcrash.harness.examination.coverage import coverage
from postcrash.harness.examination.crash_in_recovery import FirstCrash, SameRecovery, first_observation
from postcrash.harness.examination.judging import OpinionMemo, Opinions
from postcrash.harness.examination.lost_guests import (
    LOST_GUEST_JUDGE,
    activity_of,
    add_lost_guest,
    examination_of_lost_run,
    note,
    unless_reference_loses_guests,
)
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.provenance import Provenance
from postcrash.harness.examination.recording import record
from postcrash.harness.examination.recording_metadata import about_target
from postcrash.harness.examination.result import Examination, Extent, Ruling, Witness, instants_of
from postcrash.harness.examination.state_location import Place
from postcrash.harness.guests.events import (
    ExplorationEnd,
    ExplorationEvent,
    IntervalReport,
    LostGuest,
    Nondeterministic,
    Outcome,
    ProgressEvent,
    RecoveredState,
)
from postcrash.harness.guests.machine import Machine, Source
from postcrash.model import History, Verdict
from postcrash.model.judge import Judge, Opinion
from postcrash.store.records import recording_id, state_id
from postcrash.targets import RecoveryKind


def examine(
    machine: Machine, plan: Plan, recording: Path, progress: Callable[[int], None], memo: OpinionMemo | None = None
) -> Examination:
    """Record `plan.workload` into the file `recording`, explore and judge every crash state, confirm each witness.

    `progress` is called with the number of recoveries so far. `memo` has the opinions of the plan's judges on
    other runs of the workload. It is not used if programs acknowledged something else in this run.
    """
    metadata = {
        **about_target(plan.target),
        "kernel": plan.kernel,
        "base": plan.base.id,
        "workload": plan.workload.name,
        "text": plan.workload.to_text(),
        **plan.about,
        "completions": "when the guest stands still" if plan.how.held is None else f"held back, seed {plan.how.held}",
    }
    mount, workload, how = plan.target.mount, plan.workload, plan.how
    machine.take_lost()  # by an earlier workload that had no examination, because a program or an operation failed
    try:
        ran = record(
            machine, plan.base.path, mount, workload, recording, metadata, held=how.held, recorder=how.recorder
        )
    except GuestLostError as error:
        result = examination_of_lost_run(plan, recording, error.lost)
    except RecordersDisagreeError as error:
        result = not_run(plan, str(error))
    except OperationFailedError as failed:
        comparison = comparison_among(plan.judges)
        failed.unlike = comparison.what_instead(workload, how.held, failed) if comparison is not None else ""
        raise
    else:
        opinions = memo if memo is not None and ran == workload else OpinionMemo()
        source = Source(recording, plan.base.path, how.model)
        result = _explored(machine, replace(plan, workload=ran), source, progress, opinions)
    for lost in machine.take_lost():
        add_lost_guest(result, workload, lost)
    result.lost_guests += [finding.casualty for finding in result.findings if finding.casualty is not None]
    return result


def _explored(
    machine: Machine, plan: Plan, source: Source, progress: Callable[[int], None], memo: OpinionMemo
) -> Examination:
    """Explore the recording. Stop after `plan.first_look` recoveries, but after `plan.enough` if they show a violation.

    To go on, the exploration begins again. This costs little, because what was recovered is remembered. A violation
    stays one, even if it is not met again.
    """
    beginning: Examination | None = None
    for recoveries in _stops(plan):
        begun = replace(plan, how=replace(plan.how, budget=replace(plan.how.budget, recoveries=recoveries)))
        result = _Examiner(machine, begun, source, progress, memo).run()
        if beginning is not None:
            result.follows(beginning)
        is_violated = result.verdict is Verdict.VIOLATED
        is_last = recoveries == plan.how.budget.recoveries
        is_first_look_over = recoveries == plan.first_look and (plan.enough is None or not is_violated)
        if result.is_whole or is_last or is_first_look_over:
            return result
        if recoveries == plan.enough and is_violated:
            result.is_cut_short = True
            return result
        beginning = result
    raise AssertionError("the last stop is the whole budget")


def _stops(plan: Plan) -> Iterator[int | None]:
    """The numbers of recoveries after which an exploration may stop, ascending. The last one is its whole budget."""
    whole = plan.how.budget.recoveries
    stops = {number for number in (plan.first_look, plan.enough) if number is not None}
    yield from sorted(number for number in stops if whole is None or number < whole)
    yield whole


def unsupported(plan: Plan, error: OperationFailedError) -> Examination:
    """The examination of a workload with an operation that the file system does not have. Nothing was explored."""
    refused = not_run(plan, f"{error}: {plan.target.name} does not support {error.operation}")
    refused.unsupported = error.operation
    return refused


def not_run(plan: Plan, reason: str) -> Examination:
    """The examination of a workload without a recording."""
    nothing = Examination(base=plan.base.id, model=plan.how.model, kernel=plan.kernel, guest=plan.guest)
    nothing.notes = [reason]
    nothing.rulings = {judge.name: Ruling(Verdict.UNDECIDED, reason=reason) for judge in plan.judges}
    return nothing


class _Examiner:
    def __init__(
        self, machine: Machine, plan: Plan, source: Source, progress: Callable[[int], None], memo: OpinionMemo
    ) -> None:
        self._machine, self._plan, self._source, self._progress = machine, plan, source, progress
        self._recording = Recording(source.recording)
        self._result = Examination(recording_id(self._recording.digest), plan.base.id, plan.how.model, plan.kernel)
        self._result.guest = plan.guest
        self._result.device = Provenance.of(self._recording).device
        self._result.rulings = {judge.name: Ruling() for judge in plan.judges}
        if plan.how.depth > 1:
            self._result.rulings[SameRecovery.name] = Ruling()
        self._place = Place(self._recording, plan.base.path, plan.base.id, plan.how.model)
        is_short = not plan.seeks_more_violations and plan.findings_max > 1
        self._opinions = Opinions(memo, 1 if is_short else plan.findings_max, notes_skipped=is_short)
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
                    if isinstance(event, ExplorationEnd):
                        seconds += event.seconds
                    self._event(event, recover, before)
            except GuestLostError as error:
                self._undecided(
                    recover, f"no guest could be trusted: {activity_of(plan.workload, error.lost)}: {error}"
                )
        self._result.reached(self._extents)
        confirmation = Confirmation(self._machine, plan, self._source, self._place, self._result, self._opinions)
        for name in [name for name in self._result.rulings if name != LOST_GUEST_JUDGE]:
            confirmation.confirm(name)
        if ruling := self._result.rulings.get(LOST_GUEST_JUDGE):
            ruling = self._result.rulings[LOST_GUEST_JUDGE] = unless_reference_loses_guests(plan, ruling, None)
            for message, witness in ruling.simplest_first():
                self._result.findings.append(confirmation.finding(LOST_GUEST_JUDGE, message, witness, self._place))
        return self._result

    def _depth(self, recover: RecoveryKind) -> int:
        """1 unless the tree is shown. fsck takes far longer than recovery, so it checks only the states of the run."""
        return self._plan.how.depth if recover.walk else 1

    def _undecided(self, recover: RecoveryKind, reason: str) -> None:
        """Note for the judges of this kind of recovery that not every crash state was looked at."""
        names = [judge.name for judge in self._plan.judges if recover.shows(judge.looks_at)]
        for name in names + [SameRecovery.name] * (self._depth(recover) > 1):
            self._result.rulings[name].undecided(reason)

    def _event(self, event: ExplorationEvent, recover: RecoveryKind, before: int) -> None:
        match event:
            case IntervalReport():
                self._interval(event, recover)
            case ProgressEvent(recoveries):
                self._progress(before + recoveries)
            case LostGuest(interval, choices):
                state = state_id(self._result.recording, interval, choices)
                self._result.lost_guests.append(event.casualty)
                self._result.notes.append(note(f"in the recovery of crash state {state}", event.casualty))
            case Nondeterministic(interval, first=first, second=second):
                reason = f"crash interval {interval}: two recoveries of one crash state differ"
                self._result.notes.append(f"{reason}: {first} and {second}"[:2000])
                self._result.undecided(reason)
                self._result.varying.append(reason)

    def _interval(self, raw: IntervalReport, recover: RecoveryKind) -> None:
        shared = (replace(each, observation=self._opinions.shared(each.observation)) for each in raw.outcomes)
        report, crashed = replace(raw, outcomes=tuple(shared)), FirstCrash.of(raw)
        self._result.count(report)
        self._extents[-1].add(report)
        self._result.certificates.append(Certificate.of(report, recover))
        histories = instants_of(report, self._plan.workload)
        judges = [judge for judge in self._plan.judges if recover.shows(judge.looks_at)]
        for outcome in report.outcomes:
            self._outcome(report.index, outcome, histories, recover, judges, crashed)
        if report.within is not None:
            self._same_recovery(report, report.within, histories[-1], recover)
        if report.left_out is not None:
            place = ""
            if crashed is not None:
                place = (
                    f"within the recovery of {state_id(self._result.recording, crashed.interval, crashed.choices)}: "
                )
            self._undecided(recover, f"{place}{coverage(report)}")

    def _same_recovery(
        self, report: IntervalReport, within: RecoveredState, history: History, recover: RecoveryKind
    ) -> None:
        """Compare every recovery after a crash within the first recovery with what the first recovery showed.

        Executions with one outcome are compared once if they agree on what the first recovery had left open.
        """
        unless_reference_loses_guests = set()
        for choices, number in report.executions:
            case = (number, frozenset((component, version) for component, version in choices if component >= BELOW))
            outcome = replace(report.outcomes[number], choices=choices)
            if case not in unless_reference_loses_guests and outcome.observation is not None:
                judge = SameRecovery(first_observation(within, choices))
                self._outcome(report.index, outcome, [history], recover, [judge], FirstCrash.of(report))
            unless_reference_loses_guests.add(case)

    def _outcome(
        self,
        interval: int,
        outcome: Outcome,
        histories: Sequence[History],
        recover: RecoveryKind,
        judges: Sequence[Judge],
        crashed: FirstCrash | None,
    ) -> None:
        """Have an outcome judged at each instant at which a crash can lead to it."""
        witness = Witness.of(interval, outcome, histories[0], recover, crashed)
        if witness.casualty is not None:
            what = witness.casualty.what
            if crashed is None:
                ruling = self._result.rulings.setdefault(LOST_GUEST_JUDGE, Ruling())
                ruling.take(Opinion(Verdict.VIOLATED, True, f"recovery: {what}"))
                ruling.violated(f"recovery: {what}", witness.settled({}, self._place.intervals[interval]))
            self._undecided(recover, f"a crash state could not be recovered: {what}")
            return
        for history in histories:
            witness = Witness.of(interval, outcome, history, recover, crashed)
            for judge in judges:
                place = self._place if crashed is None else None
                self._opinions.judge(judge, history, witness, self._result.rulings[judge.name], place)
