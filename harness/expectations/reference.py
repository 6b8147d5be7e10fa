"""The kernel or target that others are compared with, as the command line names it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from postcrash.harness.auditing import folder_judge
from postcrash.harness.auditing.judge import judge_again
from postcrash.harness.auditing.synchrony import DURABILITY, ORDER, judges_of_synchrony
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.casualties import CASUALTY_JUDGE
from postcrash.harness.examination.crash_in_recovery import SameRecovery
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import Judge, judges_named, tree_recoveries
from postcrash.harness.examination.recorded import recorded_base
from postcrash.harness.expectations.difference import PREFIX, DifferenceJudge, Reference
from postcrash.harness.expectations.expectation import KERNEL, TARGET, Expectation
from postcrash.harness.outline import outline
from postcrash.harness.session import Session, settings_for
from postcrash.reports.store.records import Finding
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
    if name in (CASUALTY_JUDGE, SameRecovery.name):
        yield ()
    elif name == folder_judge.NAME:
        with judge_again(session.store, finding) as check:
            yield (check,)
    elif name in (DURABILITY, ORDER):
        yield tuple(judge for judge in judges_of_synchrony() if judge.name == name)
    elif name.startswith(PREFIX):
        base = recorded_base(session.store, finding)
        with DifferenceJudge(reference_named(session, name.removeprefix(PREFIX), target, how, base)) as judge:
            yield (judge,)
    else:
        yield judges_named([name])


def reference_named(
    session: Session, name: str, target: Target, how: Exploration, base: BaseImage | None = None
) -> Reference:
    """What `kernel:NAME` or `target:NAME` stands for if `target` is on the session's kernel. Raises HarnessError.

    `base` is the target's base image, if it is not to be made.
    """
    level, _, value = name.partition(":")
    kernel, other = session.kernel, target
    if level == TARGET:
        other, base = session.target(value), None
    if level == KERNEL:
        found = session.kernel_for(value, target)
        if found is None:
            raise UsageError(f"no kernel called {value} can run target {target.name}")
        kernel = found
    kinds = tree_recoveries(other, how.recovery)
    session.require_programs(other, kernel, kinds)
    plan = outline(session, other, judges=(), recoveries=kinds, how=how, kernel=kernel, base=base)
    return Reference(name, plan, settings_for(kernel, session.root_of(kernel)))
