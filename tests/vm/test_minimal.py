"""Counterexamples are minimal: no smaller workload breaks the judge, and no crash state that breaks it loses less."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from postcrash._core import Recording, intervals
from postcrash.harness.budget import Budget
from postcrash.harness.cli.progress import TerminalProgress
from postcrash.harness.examination.campaign import Crew, run_campaign
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import judges_named
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.planner import plan_again
from postcrash.harness.examination.recording_metadata import provenance
from postcrash.harness.examination.result import Examination
from postcrash.harness.files.places import cache_folder
from postcrash.harness.findings.finding_details import with_block_names
from postcrash.harness.findings.minimize import MinimalFinding, minimize
from postcrash.harness.findings.reduction import minimal, possible
from postcrash.harness.guests.lazy_machine import Spare
from postcrash.harness.guests.machine import Machine, MachineSettings, Source
from postcrash.model import History, Observation, Verdict, Workload, parse_workload
from postcrash.reports.explanation import explanation
from postcrash.store.records import Finding, simplicity
from postcrash.store.store import Store
from postcrash.targets import base_image, target_named

from .conftest import reading

KERNEL = "UML"
RECOVERIES = 2000

NEEDLESS = """\
mkdir dir
creat dir/old
append dir/old 8192
creat other
---
creat dir/new
fsync other
write-osync other 0 20
write dir/new 0 20000
creat third
link third fourth
rename dir/new dir/old
unlink third
"""
KNOWN_MINIMUM = "creat a\nappend a 1\n---\ncreat b\nappend b 1\nrename b a\n"
OVERWRITTEN = "creat a\nappend a 8192\n---\nwrite a 0 8192\nfsync a\n"
ATTRIBUTE = "creat a\n---\nsetxattr a user.x y\nsync\n"


def plan_for(workload: Workload, target_name: str, judge: str, model: str = "cache") -> Plan:
    target = target_named(target_name)
    return Plan(
        target=target,
        base=base_image(target, cache_folder() / "bases"),
        kernel=KERNEL,
        guest=KERNEL,
        workload=workload.with_tail(checkpoint=False),
        judges=judges_named([judge]),
        recoveries=(target.recovery(walk=True, fsck=False),),
        how=Exploration(model, Budget(RECOVERIES, 300)),
        explainer=explanation,
    )


def examined(plan: Plan, settings: MachineSettings, store: Store) -> Examination:
    with TerminalProgress(1) as progress:
        (result,) = run_campaign([plan], Crew(settings, 1), store, progress)
    return result


def minimized(finding: Finding, settings: MachineSettings, store: Store, fresh: bool = False) -> MinimalFinding:
    target = target_named(finding.target)
    plan = plan_again(
        finding,
        target,
        base_image(target, cache_folder() / "bases"),
        provenance(store, finding),
        kernel=KERNEL,
        guest=KERNEL,
        explainer=explanation,
        recoveries_max=RECOVERIES,
        judges=judges_named([finding.checker]),
    )
    with Spare(settings) as machine, TerminalProgress(None) as progress:
        return minimize(finding, plan, machine, store, progress, fresh=fresh)


def no_operation_is_needless(workload: Workload, breaks: Callable[[Workload], bool]) -> bool:
    """Whether the workload breaks the judge, but does not once any one operation is left out."""
    operations = workload.operations
    shorter = [possible(workload, [*operations[:i], None, *operations[i + 1 :]]) for i in range(len(operations))]
    return breaks(workload) and not any(breaks(candidate) for candidate in shorter if candidate is not None)


@pytest.fixture
def needless(settings: MachineSettings, store: Store) -> Finding:
    plan = plan_for(parse_workload(NEEDLESS, "needless"), "ext4-original", "P5")
    (finding,) = examined(plan, settings, store).findings
    return finding


def test_a_workload_with_needless_operations_becomes_the_known_minimum(
    settings: MachineSettings, store: Store, needless: Finding
) -> None:
    found = minimized(needless, settings, store)
    assert found.workload.to_text() == KNOWN_MINIMUM
    assert (found.finding.checker, found.undecided) == ("P5", 0)
    assert store.finding(needless.id).minimal == found.finding.id
    assert store.finding(found.finding.id).minimal == found.finding.id
    assert no_operation_is_needless(
        found.workload,
        lambda candidate: (
            examined(plan_for(candidate, "ext4-original", "P5"), settings, store).verdict is Verdict.VIOLATED
        ),
    )


def test_the_minimum_is_the_same_again_and_an_interrupted_search_goes_on_without_a_guest(
    settings: MachineSettings, store: Store, needless: Finding, tmp_path: Path
) -> None:
    first = minimized(needless, settings, store)
    assert minimized(needless, replace(settings, kernel=tmp_path / "no-kernel"), store) == first
    again = minimized(needless, settings, store, fresh=True)
    assert (again.workload, again.tried, again.finding.id) == (first.workload, first.tried, first.finding.id)
    assert simplicity(again.finding) == simplicity(first.finding)


def test_a_minimiser_that_takes_everything_for_broken_is_noticed(settings: MachineSettings, store: Store) -> None:
    wrong = minimal(parse_workload(NEEDLESS, "needless"), lambda _: True)
    assert not no_operation_is_needless(
        wrong,
        lambda candidate: (
            examined(plan_for(candidate, "ext4-original", "P5"), settings, store).verdict is Verdict.VIOLATED
        ),
    )


@pytest.mark.parametrize(
    ("target", "model", "judge", "text"),
    [
        ("ext4-current", "lying", "durability", OVERWRITTEN),
        ("ext3-ordered", "lying", "durability", ATTRIBUTE),
        ("xfs", "lying", "durability", OVERWRITTEN),
        ("ext3-writeback", "cache", "P3", "creat a\ncreat b\n---\nappend a 4096\nappend b 4096\nwriteback b\n"),
    ],
)
def test_no_crash_state_that_breaks_the_judge_is_simpler(
    machine: Machine, settings: MachineSettings, store: Store, target: str, model: str, judge: str, text: str
) -> None:
    plan = plan_for(parse_workload(text, "small"), target, judge, model)
    result = examined(replace(plan, findings_max=20), settings, store)
    source = Source(store.recording_path(result.recording), plan.base.path, model)
    (asked,) = plan.judges
    broken: dict[str, tuple[object, ...]] = {}
    for interval in intervals(Recording(source.recording), source.base, model):
        for versions in product(*(range(len(weights)) for _, _, weights in interval.components)):
            choices = list(enumerate(versions))
            executed = machine.execute(source, interval.index, choices, reading(plan.target))
            lost = tuple(interval.lost(choices))
            for _, started, returned in interval.instants:
                history = History(plan.workload, started, returned)
                opinion = asked.check(history, Observation.from_wire(executed.observation))
                if opinion.verdict is Verdict.VIOLATED:
                    key = (len(lost), interval.torn(choices), started, interval.index, lost)
                    broken[opinion.message] = min(key, broken.get(opinion.message, key))
    found = [(simplicity(finding), finding.message) for finding in result.findings]
    assert found[0][0] == min(broken.values())
    assert found == sorted(found)
    assert all(broken[message] <= key for key, message in found)


@pytest.mark.parametrize("target", ["ext4-current", pytest.param("btrfs", marks=pytest.mark.full)])
def test_what_a_crash_lost_has_a_name(settings: MachineSettings, store: Store, target: str) -> None:
    plan = plan_for(parse_workload("creat a\nappend a 8192\nfsync a\n", "lost"), target, "durability", "lying")
    result = examined(replace(plan, findings_max=5), settings, store)
    findings = with_block_names(result.findings, store)
    names = [
        write.name for finding in findings if finding.explanation is not None for write in finding.explanation.lost
    ]
    assert names and all(names), names
    whole = json.dumps([finding.to_json() for finding in findings])
    wanted = "journal commit block of transaction" if target == "ext4-current" else "log tree"
    assert wanted in whole and "data of a, bytes" in whole
