"""The judges of external synchrony: outputs are true when they leave the machine, and changes are durable in order.

A program runs under `postcrash-calls`, which notes what each system call changes, passes on what the program says, and
says the trace itself at the end. So one recording has the requests, the outputs in the disk's own order, and what each
output depends on: everything that had been changed when it was said (OSDI'06, section 2, with one process for all).
"""

import shlex
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from postcrash.apps import Application, UnreadFolderError
from postcrash.apps.protocol import Prefixes, Protocol, Step, Survival, TraceError, UnorderedError, unpacked
from postcrash.harness.auditing.folder_judge import opinion_of_unmounted
from postcrash.harness.guests.binaries import find_binary
from postcrash.harness.guests.supervisor import MOUNT_POINT
from postcrash.model import Entry, History, Observation, Tree, Verdict, Workload
from postcrash.model.judge import Opinion
from postcrash.model.operation import ENDS, SAYS
from postcrash.model.tree import MADE_BY_MKFS

EXTERNAL_DURABILITY, EXTERNAL_ORDER = "external-durability", "external-order"
EXIT_STATUS = "the exit status"
"""The name of a program's last output."""


@dataclass(frozen=True)
class Run:
    """A run of a program: its changes, and how many of them each output depends on."""

    protocol: Protocol
    outputs: tuple[str, ...]

    @cached_property
    def _rests_on(self) -> list[tuple[str, Step]]:
        return [(line, step) for step in self.protocol.steps for line in step.outputs]

    def needed(self, outputs: Sequence[str]) -> int:
        """How many changes had been made when the last of these outputs was said. All outputs have left the machine."""
        end = 0
        waiting = Counter(outputs)
        for line, step in self._rests_on:
            if waiting[line]:
                waiting[line] -= 1
                end = max(end, step.first)
        return len(self.protocol.changes) if waiting.total() else end

    @cached_property
    def unclear(self) -> frozenset[str]:
        """Lines that left the machine less often than they were written: the network lost some, but not known ones."""
        return frozenset(Counter(line for line, _ in self._rests_on) - Counter(self.outputs))

    def strangers(self, outputs: Sequence[str]) -> tuple[str, ...]:
        """Lines that had left the machine more often than the trace has them. They count as resting on everything."""
        lines = Counter(line for line in outputs if line != EXIT_STATUS)
        return tuple((lines - Counter(line for line, _ in self._rests_on)).elements())

    def missing(self, tree: Tree, end: int) -> Step | None:
        """The step before the change `end` that `tree` lacks: the folder was like `tree` before it, and never again.

        Slot by slot, such a folder may look like what later changes make. None if the order of changes is not known.
        """
        try:
            return self.prefixes.missing(tree, end)
        except UnorderedError:
            return None

    @cached_property
    def prefixes(self) -> Prefixes:
        """The folders that the first changes make, for each number of changes."""
        return Prefixes(self.protocol)

    @cached_property
    def survival(self) -> Survival:
        """Which changes a folder has."""
        return Survival(self.protocol)


class Runs:
    """The runs of recorded workloads. Several judges share what is known of one."""

    def __init__(self) -> None:
        self._of: dict[Workload, Run] = {}

    def of(self, workload: Workload) -> Run:
        """The run that a workload is a recording of. Raises TraceError."""
        if workload not in self._of:
            outputs, protocol = unpacked([each.value for each in workload.ops if each.word == SAYS])
            self._of = {workload: Run(protocol, outputs)}
        return self._of[workload]


class SynchronyJudge(ABC):
    """The common part of both judges."""

    name: str
    version = ""
    depends_on: tuple[str, ...] = ("returned",)
    looks_at = ("walk", "bytes")

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    def check(self, history: History, observation: Observation) -> Opinion:
        """See `Judge`."""
        if unmounted := opinion_of_unmounted(observation):
            return unmounted
        try:
            run = self._runs.of(history.workload)
            return self._opinion(run, history, replace(observation, tree=_whole(observation)))
        except (TraceError, UnreadFolderError, UnorderedError) as error:
            return Opinion(Verdict.UNDECIDED, False, str(error))

    @abstractmethod
    def _opinion(self, run: Run, history: History, observation: Observation) -> Opinion: ...


class DurabilityJudge(SynchronyJudge):
    """All changes that an output depends on are durable once the output has left the machine."""

    name = EXTERNAL_DURABILITY

    def _opinion(self, run: Run, history: History, observation: Observation) -> Opinion:
        outputs = outputs_of(history, run)
        end = run.needed(outputs) if outputs else 0
        lost = run.survival.lost(observation.tree, end)
        if lost is None and (missing := run.missing(observation.tree, end)) is None:
            return _kept(run, observation, outputs, end)
        maker = run.survival.maker(lost, end) if lost else missing
        what = f"{_shown(maker)} before it is lost" if maker else "a change before it is undone"
        if not outputs:
            return Opinion(Verdict.VIOLATED, True, "nothing had left the machine, but what was there before is lost")
        why = "".join(f"; nobody is known to have said {line!r}" for line in run.strangers(outputs)[:1])
        return Opinion(Verdict.VIOLATED, True, f"{outputs[-1]!r} had left the machine, but {what}{why}")


def _kept(run: Run, observation: Observation, outputs: Sequence[str], end: int) -> Opinion:
    """It holds, unless only a change that may not have been made yet excuses what is missing.

    It is undecided, too, if one of the outputs may be a later one than `end` takes it for.
    """
    if unclear := [line for line in outputs if line in run.unclear]:
        return Opinion(Verdict.UNDECIDED, True, f"{unclear[0]!r} was said more often than it left the machine")
    doubt = run.prefixes.doubtful(observation.tree, end) if end else None
    if doubt is None:
        return Opinion(Verdict.HOLDS, bool(end), "")
    made, undone = map(_shown, doubt)
    why = f"{outputs[-1]!r} had left the machine, and the folder is as before {made!r}, or as after {undone!r}"
    return Opinion(Verdict.UNDECIDED, True, why)


class OrderJudge(SynchronyJudge):
    """No change is durable without all the changes before it."""

    name = EXTERNAL_ORDER
    depends_on = ()

    def _opinion(self, run: Run, history: History, observation: Observation) -> Opinion:
        if run.prefixes.longest(observation.tree) is not None:
            return Opinion(Verdict.HOLDS, bool(run.protocol.changes), "")
        for step in run.protocol.steps:
            if run.survival.lost(observation.tree, step.end) is not None:
                return Opinion(
                    Verdict.VIOLATED, True, f"{_shown(step)} is lost or torn, but something after it is there"
                )
        return Opinion(Verdict.VIOLATED, True, "something is there that the program never made")


def _whole(observation: Observation) -> Tree:
    """The tree with the folders that mkfs made and trees leave out. The program's changes may have to do with them."""
    inode = max((entry.inode for entry in observation.tree.values()), default=0) + 1
    made = MADE_BY_MKFS.intersection(observation.unlisted)
    return observation.tree.changed({name: Entry(name, "dir", inode=inode) for name in made})


def _shown(step: Step) -> str:
    return f"{step.call} {step.about}".strip()


def outputs_of(history: History, run: Run) -> tuple[str, ...]:
    """The outputs that had left the machine: lines, and at last the end of the program."""
    lines = [each.value for each in history.returned_operations if each.word == SAYS]
    ended = any(each.word == ENDS for each in history.returned_operations)
    return (*lines[: len(run.outputs)], *([EXIT_STATUS] if ended or len(lines) > len(run.outputs) else []))


def judges_of_synchrony() -> tuple[SynchronyJudge, ...]:
    """Both judges."""
    runs = Runs()
    return DurabilityJudge(runs), OrderJudge(runs)


def traced(application: Application) -> str:
    """The shell command that runs the application under `postcrash-calls` in a guest. Raises InfrastructureError."""
    return shlex.join(["exec", str(find_binary("postcrash-calls")), MOUNT_POINT, "-", "/bin/sh", "-c", application.run])
