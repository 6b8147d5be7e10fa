"""Spaces that are too large: a budget covers what its certificate says, on real file systems."""

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from postcrash._core import Interval, Recording, intervals
from postcrash.harness.budget import Budget
from postcrash.harness.guests.events import CertainCoverage, Execution, IntervalReport
from postcrash.harness.guests.machine import Machine
from postcrash.model import WorkloadBuilder

from .command import EXAMPLE, postcrash
from .conftest import Record, RecordedWorkload, explored, intervals_of, judged

BLOCKS_MAX = 10

CHAIN = WorkloadBuilder().creat("before").begin()
for _name in ("first", "second", "third", "fourth", "fifth", "sixth"):
    CHAIN = CHAIN.creat(_name).fsync(_name)

SCATTERED = WorkloadBuilder().creat("A").append("A", 57344).begin()
for _number in range(7):
    SCATTERED = SCATTERED.write("A", _number * 8192, 4096)
SCATTERED = SCATTERED.fsync("A").sync()

BUDGETS = [
    Budget(None, 300, bound=0),
    Budget(None, 300, bound=1),
    Budget(None, 300, bound=2),
    Budget(None, 300, samples=12),
    Budget(None, 300, bound=1, samples=12),
    Budget(40, 300),
]


def contents(interval: Interval) -> dict[tuple[int, ...], int]:
    """Every content (a version for each component), with the crash states that show it."""
    versions = [range(len(weights)) for _, _, weights in interval.components]
    return {content: interval.covered(list(enumerate(content))) for content in product(*versions)}


def agreeing(executions: Sequence[Execution], content: tuple[int, ...]) -> list[int]:
    """The outcomes of the executions that stand for a content."""
    return [outcome for choices, outcome in executions if all(content[c] == version for c, version in choices)]


def outcome_of(report: IntervalReport, number: int) -> str:
    return json.dumps(report.outcomes[number].observation, sort_keys=True)


def check_against(report: IntervalReport, brute: IntervalReport, interval: Interval) -> None:
    """Check every claim of a report against every content of the interval."""
    covered, open_deviations = 0, []
    for content, weight in contents(interval).items():
        outcomes = agreeing(report.executions, content)
        assert len(outcomes) <= 1, "covered twice"
        covered += weight * len(outcomes)
        if outcomes:
            (exhaustive,) = agreeing(brute.executions, content)
            assert outcome_of(report, outcomes[0]) == outcome_of(brute, exhaustive)
        else:
            open_deviations.append(sum(version != 0 for version in content))
    assert covered == report.covered
    assert (report.left_out is None) == (not open_deviations)
    if report.left_out is not None:
        nearest = min(open_deviations)
        assert report.reached is not None
        assert report.reached.all_kept == (nearest - 1 if nearest else None)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_what_a_limit_covers_is_what_brute_force_finds(machine: Machine, record: Record, budget: Budget) -> None:
    recorded = record("ext4-current", SCATTERED.build("scattered"))
    source = recorded.source
    shapes = {i.index: i for i in intervals(Recording(source.recording), source.base, source.model)}
    small = [index for index, shape in shapes.items() if len(shape.components) <= BLOCKS_MAX]
    brute = {i.index: i for i in intervals_of(explored(machine, recorded, brute_force=True, intervals=small))}
    limited = intervals_of(explored(machine, recorded, budget=budget, intervals=small))
    assert sorted(report.index for report in limited) == small
    for report in limited:
        check_against(report, brute[report.index], shapes[report.index])
        if report.left_out is None:
            continue
        assert report.reached is not None
        if budget.bound is not None:
            kept = (report.reached.all_kept, report.reached.none_kept)
            assert all(deviations is not None and deviations >= budget.bound for deviations in kept)
        if budget.samples is not None:
            assert report.reached.samples == budget.samples
    assert any(report.left_out is not None for report in limited)


def chain(record: Record) -> RecordedWorkload:
    return record("ext4-current", CHAIN.build("chain"), model="lying")


def at_the_end(machine: Machine, recorded: RecordedWorkload, **options: Any) -> IntervalReport:
    """The report of the last crash interval, explored alone. In this interval everything is in flight."""
    source = recorded.source
    last = intervals(Recording(source.recording), source.base, source.model)[-1].index
    (report,) = intervals_of(explored(machine, recorded, intervals=[last], **options))
    return report


def missing_first(report: IntervalReport) -> list[dict[str, Any]]:
    """Observations without the file that was made durable first."""
    observations = [outcome.observation for outcome in report.outcomes]
    mounted = [observation for observation in observations if observation["mount_errno"] == 0]
    return [observation for observation in mounted if "first" not in {entry["path"] for entry in observation["tree"]}]


def test_a_violation_far_from_the_last_decision_is_found_at_once(machine: Machine, record: Record) -> None:
    """The first of six journal commits is lost, and nothing else. Depth first, 5,000 recoveries do not reach this."""
    recorded = chain(record)
    report = at_the_end(machine, recorded, budget=Budget(12, 300))
    assert report.left_out == "the recoveries of the budget are spent"
    assert judged(report) == 12
    assert missing_first(report)
    kept = at_the_end(machine, recorded, budget=Budget(None, 300, bound=0))
    assert kept.reached == CertainCoverage(all_kept=0, none_kept=0, samples=0, seed=1)
    assert len(kept.executions) == 2


def test_the_same_seed_gives_the_same_result_another_one_does_not(machine: Machine, record: Record) -> None:
    recorded = chain(record)
    budget = Budget(None, 300, samples=60)

    def walked(seed: int) -> tuple[int, set[str]]:
        report = at_the_end(machine, recorded, budget=budget, seed=seed)
        assert report.reached is not None
        assert (report.reached.samples, report.reached.seed) == (60, seed)
        return report.covered, {outcome_of(report, number) for number in range(len(report.outcomes))}

    walked(1)  # the guest learns which of its reads nobody waits for
    assert walked(1) == walked(1)
    assert walked(1) != walked(2)


LIMITED = ("check", str(EXAMPLE), "--target", "ext4-current", "--model", "lying", "--budget", "60,5m")


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """`check` of the replace-by-rename example on a drive that ignores flushes, with a small budget."""
    folder = tmp_path_factory.mktemp("limited")
    result = postcrash(folder, *LIMITED, "--json", "-")
    report = json.loads(result.stdout)
    assert result.returncode == 1, result.stderr
    return folder, report


def test_nothing_holds_where_something_was_left_out(limited: tuple[Path, dict[str, Any]]) -> None:
    folder, report = limited
    assert report["judges"]["durability"]["verdict"] == "violated"
    assert report["recoveries"] <= 60
    assert {judge["verdict"] for judge in report["judges"].values()} <= {"violated", "undecided"}
    not_seen = ("a crash state does not mount (errno ", "in a crash state A cannot be read: ")
    assert report["judges"]["never-written"]["reason"].startswith(not_seen)
    told = " ".join(postcrash(folder, *LIMITED).stdout.split())
    left_out = [interval for interval in report["intervals"] if interval["left_out"]]
    first = next(interval["index"] for interval in left_out if interval["kind"] == "fsck")
    _, _, covered = told.partition(f"covered (fsck): crash interval {first}: ")
    for expected in (" crash states: all within ", "of nothing kept", "(seed 1)"):
        assert expected in covered.partition("covered (")[0]
    for interval in left_out:
        assert int(interval["covered"]) < int(interval["states"])
        assert interval["reached"]["seed"] == 1


def test_a_certificate_of_a_part_predicts_too(limited: tuple[Path, dict[str, Any]]) -> None:
    folder, report = limited
    result = postcrash(folder, "certify", report["recording"], "--samples", "40", "--json", "-")
    assert json.loads(result.stdout) == {"samples": 40, "confirmed": 40, "wrong": []}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--budget", "5k"), "'5k' is no budget such as 5000 (recoveries), 30s, 10m, 1h or 5000,10m"),
        (("--budget", "0s"), "'0s' is a budget of nothing"),
        (("--bound", "-1"), "-1 is not in the range 0<=x<=1000000"),
        (("--seed", "-1"), "-1 is not in the range 0<="),
        (("--samples", "many"), "'many' is not a valid integer"),
    ],
)
def test_a_bad_limit_is_one_clear_line(tmp_path: Path, arguments: tuple[str, ...], expected: str) -> None:
    result = postcrash(tmp_path, "check", str(EXAMPLE), "--target", "btrfs", *arguments)
    assert result.returncode == 4
    assert "Traceback" not in result.stderr
    assert expected in result.stderr.replace("\n", " ")
