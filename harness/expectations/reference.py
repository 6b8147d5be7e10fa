"""The kernel or target that others are compared with, as the command line names it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

from postcrash.harness.auditing import folder_judge
from postcrash.harness.auditing.judge import judge_again
from postcrash.harness.auditing.synchrony import EXTERNAL_DURABILITY, EXTERNAL_ORDER, judges_of_synchrony
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.crash_in_recovery import SameRecovery
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import judges_named, tree_recoveries
from postcrash.harness.examination.lost_guests import LOST_GUEST_JUDGE
from postcrash.harness.examination.planner import make_plan
from postcrash.harness.examination.recording import AUTO, CRASH_DISK, DM_LOG_WRITES, CrashDisk
from postcrash.harness.examination.recording_metadata import recorded_base
from postcrash.harness.examination.session import Session, settings_for
from postcrash.harness.expectations.difference import DifferenceJudge, Reference
from postcrash.harness.expectations.expectation import KERNEL, TARGET, Expectation
from postcrash.harness.files.output import say
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.harness.guests.kernels.log_writes import has_log_writes, lacks_log_writes
from postcrash.model.judge import Judge
from postcrash.store.kernel_build import ComparedWith
from postcrash.store.records import Finding
from postcrash.targets import BaseImage, Target


@contextmanager
def opened(session: Session, expected: Expectation, target: Target, how: Exploration) -> Iterator[Expectation]:
    """The expectation with the judge that compares, if it has one. The judge's guests end with the context."""
    if not expected.compares:
        yield expected
        return
    if how.depth > 1:
        raise UsageError(f"--expect {expected.name} compares first recoveries only: leave --depth out")
    with DifferenceJudge(reference_named(session, expected.name, target, how)) as judge:
        yield replace(expected, compared=judge)


@contextmanager
def judges_of(session: Session, finding: Finding, target: Target, how: Exploration) -> Iterator[tuple[Judge, ...]]:
    """The judge that a finding names. No judge if the finding is about lost guests or about two recoveries."""
    name, how = finding.checker, replace(how, recovery="both" if finding.is_repaired else "mount")
    if name in (LOST_GUEST_JUDGE, SameRecovery.name):
        yield ()
    elif name == folder_judge.NAME:
        with judge_again(session.store, finding) as check:
            yield (check,)
    elif name in (EXTERNAL_DURABILITY, EXTERNAL_ORDER):
        yield tuple(judge for judge in judges_of_synchrony() if judge.name == name)
    elif finding.reference_name:
        if finding.compared is None:
            raise UsageError(f"{finding.id}: nothing says on which build of {finding.reference_name} it was compared")
        base = recorded_base(session.store, finding)
        named = reference_named(session, finding.reference_name, target, how, base, compared=finding.compared)
        with DifferenceJudge(named) as judge:
            yield (judge,)
    else:
        yield judges_named([name])


def reference_named(
    session: Session,
    name: str,
    target: Target,
    how: Exploration,
    base: BaseImage | None = None,
    compared: ComparedWith | None = None,
) -> Reference:
    """What `kernel:NAME` or `target:NAME` stands for if `target` is on the session's kernel. Raises HarnessError.

    If only one of the two kernels has dm-log-writes, `auto` stands for the crash disk. A note says so once.
    `base` is the target's base image, if it is not to be made. Another kernel has the same image, also if it would age
    one in another way. `compared` is what the name stood for when a finding was made: the same is taken, or UsageError
    says that it is gone.
    """
    level, _, value = name.partition(":")
    kernel, other = session.kernel, target
    if level == TARGET:
        other, base = _target_compared(session, value, compared), None
    if level == KERNEL:
        base = base or session.base(target)
        kernel = _kernel_compared(session, value, target, compared)
    kinds = tree_recoveries(other, how.recovery)
    if {kind.is_repaired for kind in kinds} != {kind.is_repaired for kind in tree_recoveries(target, how.recovery)}:
        raise UsageError(
            f"{name}: with --recovery {how.recovery}, only one of {target.name} and {other.name} is repaired"
        )
    session.require_programs(other, kernel, kinds)
    how = replace(how, recorder=_recorder_of_both(session, name, kernel, how.recorder))
    plan = make_plan(session, other, judges=(), recoveries=kinds, how=how, kernel=kernel, base=base)
    return Reference(name, plan, settings_for(kernel, session.root_of(kernel)), session.store)


def _kernel_compared(session: Session, name: str, target: Target, compared: ComparedWith | None) -> Kernel:
    if compared is not None:
        same = session.same_kernel(compared.kernel, compared.guest, compared.built)
        if same is None:
            description = f"{compared.kernel} ({compared.built.description})" if compared.built else compared.kernel
            raise UsageError(f"the kernel {name} with which it was compared is not here any more: {description}")
        return same
    found = session.kernel_for(name, target)
    if found is None:
        raise UsageError(f"no kernel called {name} can run target {target.name}")
    return found


def _target_compared(session: Session, name: str, compared: ComparedWith | None) -> Target:
    target = session.target(name)
    if compared is not None and compared.target != target.digest():
        raise UsageError(f"the target {name} with which it was compared is not as it was: its definition has changed")
    return target


def _recorder_of_both(session: Session, name: str, kernel: Kernel, requested: str) -> str:
    """The recorder for the session's kernel and for `kernel`, which `name` stands for."""
    if requested == DM_LOG_WRITES and lacks_log_writes(kernel):
        raise UsageError(f"{name}: {kernel.label} has no {DM_LOG_WRITES}, and both kernels need the same recorder")
    if requested != AUTO or has_log_writes(session.kernel) == has_log_writes(kernel):
        return requested
    _tell_recorder(session.kernel.label, name)
    return CRASH_DISK


@cache
def _tell_recorder(*compared: str) -> None:
    """Print a note, once for each pair of kernels."""
    pair = " and ".join(compared)
    say(f"only one of {pair} has {DM_LOG_WRITES}: both are recorded on {CrashDisk.device} (docs/recorders.md)")
