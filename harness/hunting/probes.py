"""The ways in which hunts look at crash states, and the plan of each."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum

from postcrash.harness.examination.crash_in_recovery import state_below
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import FSCK, WALK, recoveries_for
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.planner import make_plan
from postcrash.harness.examination.session import Session
from postcrash.harness.expectations.expectation import Expectation
from postcrash.model.judge import Judge
from postcrash.store.records import Finding
from postcrash.targets import Target

_WALK_ONLY = frozenset([WALK])


class Probe(Enum):
    """How the crash states of a workload are looked at. The values are the tables of yields.toml."""

    WALK = "walk"
    FSCK = "fsck"
    CRASH = "crash"


Plans = Mapping[Probe, Plan]
"""The plan of each probe. The first one is `Probe.WALK`."""


def probes_for(
    expected: Expectation, target: Target, how: Exploration, kinds: frozenset[str] = _WALK_ONLY
) -> tuple[Probe, ...]:
    """The probes of the default hunt. `kinds` are the recoveries that every workload has.

    A probe that shows nothing more, or nothing that a judge looks at, is left out. A comparison looks at trees of first
    recoveries only. Raises UsageError if a contract is not about the target.
    """
    if expected.compares:
        return (Probe.WALK,)
    judges = expected.judges(target, how.model)
    is_checked = FSCK not in kinds and bool(recoveries_for(judges, target, how.recovery, [FSCK]))
    is_crashed = how.depth == 1 and bool(recoveries_for(judges, target, how.recovery, [WALK]))
    return (Probe.WALK, *[Probe.FSCK] * is_checked, *[Probe.CRASH] * is_crashed)


def plans_for(
    session: Session,
    target: Target,
    judges: Sequence[Judge],
    how: Exploration,
    kinds: frozenset[str],
    probes: Sequence[Probe],
) -> Plans:
    """The plans of a hunt, one for each of `probes`. Raises HarnessError if a program is missing."""
    questions = {
        Probe.WALK: (kinds, how),
        Probe.FSCK: (frozenset([FSCK]), how),
        Probe.CRASH: (_WALK_ONLY, replace(how, depth=2)),
    }
    plans = {}
    for probe in probes:
        wanted, exploration = questions[probe]
        recoveries = recoveries_for(judges, target, how.recovery, wanted)
        session.require(target, recoveries)
        plans[probe] = make_plan(session, target, judges, recoveries, exploration)
    return plans


def joined_plan(plans: Plans) -> Plan:
    """A plan with all judges and recoveries of `plans`, for the report of the whole hunt."""
    walk = plans[Probe.WALK]
    judges = dict.fromkeys(judge for plan in plans.values() for judge in plan.judges)
    recoveries = dict.fromkeys(recovery for plan in plans.values() for recovery in plan.recoveries)
    depth = max(plan.how.depth for plan in plans.values())
    return replace(walk, judges=tuple(judges), recoveries=tuple(recoveries), how=replace(walk.how, depth=depth))


def probe_of(finding: Finding) -> Probe:
    """The probe that shows a finding."""
    if state_below(finding) is not None:
        return Probe.CRASH
    return Probe.FSCK if finding.recover.get("fsck") else Probe.WALK
