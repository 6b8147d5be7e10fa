"""A whole gate: its parts, which of their failures are known, and what is done about the new ones."""

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
from postcrash.harness.gate.failure_history import Sightings
from postcrash.harness.gate.follow_up import FollowUp
from postcrash.harness.gate.known_findings import with_upstream
from postcrash.harness.gate.part_scheduler import Following, run_in_turns
from postcrash.harness.gate.planning import PlannedPart, Planner, labelled
from postcrash.harness.gate.rounds import Runner
from postcrash.harness.gate.unfinished_parts import LeftOpen
from postcrash.harness.hunting.hunt import HuntProgress
from postcrash.harness.hunting.space_hunt import Shard
from postcrash.model.validation import unknown_name
from postcrash.reports.gate.failure_text import plural
from postcrash.reports.gate.fixed_lines import fixed_lines
from postcrash.reports.gate.untested_requirements import with_unasked
from postcrash.store.gate_run import Failure, GateRun, Part


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate's file as it is to be run.

    names    only these parts; none for all
    shard    which workloads of each part
    seconds  the most that the gate may take; None: as the file says
    accept   why new failures are to be accepted; None: they are not
    accept_upstream  whether those are to be accepted that are known upstream, with their pages as the reason
    """

    file: Path
    names: Sequence[str] = ()
    shard: Shard = (1, 1)
    seconds: float | None = None
    accept: str | None = None
    accept_upstream: bool = False

    @property
    def accepts(self) -> bool:
        """Whether the baseline gets lines for failures."""
        return self.accept is not None or self.accept_upstream


@dataclass(frozen=True, slots=True)
class Watcher:
    """Who is told how a gate gets on.

    progress  makes a listener that is told how a part gets on, or how failures are followed up (None)
    finished  is told of each part that has been run to its end
    note      is told in a sentence what could not be done
    """

    progress: Callable[[PlannedPart | None], AbstractContextManager[HuntProgress]]
    finished: Callable[[Part], None]
    note: Callable[[str], None]


def run_gate(gate: Gate, session: Session, watcher: Watcher) -> GateRun:
    """Run the gate. If the user interrupts it, the result says so, and is what there is. Raises HarnessError.

    Parts that earlier runs of the same store left open come first.
    """
    if gate.accept is not None and not gate.accept.strip():
        raise UsageError("--accept wants the reason why new failures are accepted")
    if hidden := hidden_character(" ".join((gate.accept or "").split())):
        raise UsageError(f"--accept: {hidden!r} is a character that nobody can see")
    if len(gate.accept or "") > WHY_MAX:
        raise UsageError(f"--accept: the reason has {len(gate.accept or '')} characters, and may have {WHY_MAX}")
    started, clock = datetime.datetime.now(datetime.UTC), time.monotonic()
    configuration, folder = load(gate.file), gate.file.parent
    lines = load_baseline(folder / configuration.baseline)
    planned = _planned(gate, configuration, session)
    digests = digests_of(session, gate.file, configuration, gate.names, planned)
    if "baseline" in configuration.model_fields_set and not (folder / configuration.baseline).exists():
        watcher.note(f"{folder / configuration.baseline} is not there: each failure is new")
    seconds = configuration.seconds if gate.seconds is None else gate.seconds
    until = None if seconds is None else clock + seconds
    runner = Runner(session, configuration.guests, until, lines, watcher.progress, watcher.finished)
    left_open = LeftOpen(session.store.folder)

    @contextmanager
    def follow_ups() -> Iterator[FollowUp]:
        with watcher.progress(None) as progress:
            yield FollowUp(session, configuration.confirm, until, progress, watcher.note)

    run, interrupted = run_in_turns(runner, planned, left_open.first(planned), lines, Following(follow_ups))
    left_open.add(planned, run)
    parts = with_upstream(with_unasked(run) if gate.shard == (1, 1) else run, planned, session.store)
    if gate.accepts and not interrupted:
        _accept(parts, folder / configuration.baseline, gate, watcher)
        lines = load_baseline(folder / configuration.baseline)
    parts = compared_with(lines, parts)
    sightings = Sightings(session.store.folder)
    sightings.add(parts)
    unseen = unseen_lines(lines, parts, sightings.places)
    is_whole = gate.shard == (1, 1) and not interrupted
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
        fixed=fixed_lines(unseen, parts) if is_whole else (),
        unseen=unseen,
    )


def _accept(parts: Sequence[Part], baseline: Path, gate: Gate, watcher: Watcher) -> None:
    """Add the new failures to the baseline. Only a gate that was run whole tells in how many workloads they are."""
    reasons: dict[str, list[tuple[Failure, Part]]] = {}
    for part in parts:
        for failure in part.new:
            why = f"known upstream: {failure.upstream}" if gate.accept_upstream and failure.upstream else gate.accept
            if why is not None and not failure.is_of_time:
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
