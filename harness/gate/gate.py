"""Runs a whole gate: plans and runs its parts, follows up failures, and compares them with the baseline."""

import datetime
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import postcrash
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.session import Session
from postcrash.harness.gate.baseline import (
    WHY_MAX,
    add_lines,
    compared_with,
    hidden_character,
    lines_for,
    load_baseline,
    unseen_lines,
)
from postcrash.harness.gate.configuration import GateFile, load
from postcrash.harness.gate.digests import digests_of
from postcrash.harness.gate.earlier_runs import Sightings, UnfinishedParts
from postcrash.harness.gate.follow_up import FollowUp
from postcrash.harness.gate.merging import fixed_lines, with_untested_requirements
from postcrash.harness.gate.part_scheduler import FollowUps, Runner, run_in_turns
from postcrash.harness.gate.planning import PlannedPart, Planner, labelled
from postcrash.harness.gate.upstream import with_upstream
from postcrash.harness.hunting.hunt import HuntProgress
from postcrash.harness.hunting.space_hunt import Shard
from postcrash.model.numbers import plural
from postcrash.model.validation import unknown_name
from postcrash.store.gate_run import Failure, GateRun, Part


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate's file with the options of a run.

    names            only these parts; none for all
    shard            which workloads of each part
    seconds          the time limit of the gate; None: as in the file
    accept           the reason why new failures are accepted; None: they are not
    accept_upstream  accept failures that are known upstream, with their pages as the reason
    """

    file: Path
    names: Sequence[str] = ()
    shard: Shard = (1, 1)
    seconds: float | None = None
    accept: str | None = None
    accept_upstream: bool = False

    @property
    def accepts(self) -> bool:
        """Whether lines are added to the baseline."""
        return self.accept is not None or self.accept_upstream


@dataclass(frozen=True, slots=True)
class Watcher:
    """Callbacks for the progress of a gate.

    progress  makes a listener for the progress of a part, or of following up failures (None)
    finished  is called with each part that has been run to its end
    note      is called with a sentence on what could not be done
    """

    progress: Callable[[PlannedPart | None], AbstractContextManager[HuntProgress]]
    finished: Callable[[Part], None]
    note: Callable[[str], None]


def run_gate(gate: Gate, session: Session, watcher: Watcher) -> GateRun:
    """Runs the gate. If the user interrupts it, the result has what was run, and says so. Raises HarnessError.

    Parts that earlier runs of the same store did not finish come first.
    """
    _check_reason(gate.accept)
    started, clock = datetime.datetime.now(datetime.UTC), time.monotonic()
    configuration = load(gate.file)
    baseline = gate.file.parent / configuration.baseline
    lines = load_baseline(baseline)
    planned = _planned(gate, configuration, session)
    digests = digests_of(session, gate.file, configuration, gate.names, planned)
    if "baseline" in configuration.model_fields_set and not baseline.exists():
        watcher.note(f"{baseline} is not there: each failure is new")
    seconds = configuration.seconds if gate.seconds is None else gate.seconds
    until = None if seconds is None else clock + seconds
    runner = Runner(session, configuration.guests, until, lines, watcher.progress, watcher.finished)
    unfinished = UnfinishedParts(session.store.folder)

    @contextmanager
    def follow_up() -> Iterator[FollowUp]:
        with watcher.progress(None) as progress:
            yield FollowUp(session, configuration.confirm, until, progress, watcher.note)

    parts, interrupted = run_in_turns(runner, planned, unfinished.sort(planned), lines, FollowUps(follow_up))
    unfinished.update(planned, parts)
    is_unsharded = gate.shard == (1, 1)
    if is_unsharded:
        parts = with_untested_requirements(parts)
    parts = with_upstream(parts, planned, session.store)
    if gate.accepts and not interrupted:
        _accept(parts, baseline, gate, watcher)
        lines = load_baseline(baseline)
    parts = compared_with(lines, parts)
    sightings = Sightings(session.store.folder)
    sightings.add(parts)
    unseen = unseen_lines(lines, parts, sightings.places)
    return GateRun(
        version=postcrash.__version__,
        started=started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        seconds=round(time.monotonic() - clock, 3),
        file=str(gate.file),
        baseline=configuration.baseline if lines or gate.accepts else "",
        shards=("{}/{}".format(*gate.shard),),
        names=tuple(dict.fromkeys(gate.names)),
        digests=digests,
        kernels={part.key[2]: session.build(part.kernel) for part in planned if part.kernel is not None},
        interrupted=interrupted,
        parts=parts,
        fixed=fixed_lines(unseen, parts) if is_unsharded and not interrupted else (),
        unseen=unseen,
    )


def _check_reason(reason: str | None) -> None:
    if reason is None:
        return
    if not reason.strip():
        raise UsageError("--accept wants the reason why new failures are accepted")
    if hidden := hidden_character(" ".join(reason.split())):
        raise UsageError(f"--accept: {hidden!r} is a character that nobody can see")
    if len(reason) > WHY_MAX:
        raise UsageError(f"--accept: the reason has {len(reason)} characters, and may have {WHY_MAX}")


def _accept(parts: Sequence[Part], baseline: Path, gate: Gate, watcher: Watcher) -> None:
    """Add the new failures to the baseline. Their numbers of workloads are limits only if the gate was run whole."""
    reasons: dict[str, list[tuple[Failure, Part]]] = {}
    for part in parts:
        for failure in part.new:
            why = f"known upstream: {failure.upstream}" if gate.accept_upstream and failure.upstream else gate.accept
            if why is not None and not failure.is_lack_of_time:
                reasons.setdefault(why, []).append((failure, part))
    is_whole = gate.shard == (1, 1) and not gate.names and not any(part.unfinished for part in parts)
    lines = [line for why, new in reasons.items() for line in lines_for(new, why, limited=is_whole)]
    if lines:
        add_lines(baseline, lines)
        watcher.note(f"{plural(len(lines), 'line')} for {baseline}")
    else:
        watcher.note(f"no new failure is there to accept: {baseline} stays as it is")


def _planned(gate: Gate, configuration: GateFile, session: Session) -> list[PlannedPart]:
    for name in gate.names:
        if name not in configuration.parts:
            raise UsageError(f"{gate.file}: {unknown_name('part', name, configuration.parts)}")
    planner = Planner(session, configuration, gate.file, gate.shard)
    names = gate.names or configuration.parts
    parts = labelled([part for name in dict.fromkeys(names) for part in planner.parts(name)])
    return [part for part in parts if part.workloads.count]
