"""Cells of targets that cannot run every workload of a property's family."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash.harness.budget import Budget
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import tree_recoveries
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.result import Examination, Ruling
from postcrash.harness.tables import characterize as subject
from postcrash.harness.tables.characterize import Question, characterize, weaker_questions
from postcrash.model import Verdict, parse_workload
from postcrash.properties import property_named
from postcrash.properties.adversary import BY_WORKLOAD, Adversary
from postcrash.reports.explanation import explanation
from postcrash.reports.tables.grid import symbol
from postcrash.store.records import Cell
from postcrash.store.table_rows import NOT_THERE
from postcrash.targets import BaseImage, target_named


def cell(monkeypatch: pytest.MonkeyPatch, runs: Any, **about: Any) -> Cell:
    """The cell of P1 on vfat. `runs` refuses the workloads that need something that vfat does not have."""

    verdicts = about.pop("verdicts", lambda plan: Verdict.HOLDS)
    relevant = about.pop("relevant", lambda plan: True)

    def campaign(plans: list[Plan], *_: object, **__: object) -> list[Examination]:
        results = []
        for plan in plans:
            result = Examination(
                covered=2, recoveries=1, outcomes=1, rulings={"P1": Ruling(verdicts(plan), relevant=relevant(plan))}
            )
            if not runs(plan):
                result = Examination(unsupported="link", rulings={"P1": Ruling(Verdict.UNDECIDED, reason="no links")})
            results.append(result)
        return results

    monkeypatch.setattr(subject, "run_campaign", campaign)
    how, target = about.pop("how", Exploration(budget=Budget(1, 1))), target_named("vfat")
    outline = Plan(
        target=target,
        base=BaseImage(Path("base"), "b-0"),
        kernel="a kernel",
        guest="a guest",
        workload=parse_workload("sync", "none"),
        judges=(),
        recoveries=tree_recoveries(target, how.recovery),
        how=how,
        explainer=explanation,
    )
    question = Question([property_named("P1")], how, outlines=[outline], **about)
    store: Any = SimpleNamespace(put_cells=lambda cells: None)
    nobody: Any = None
    (found,) = characterize(question, nobody, store, nobody).cells
    return found


def test_a_property_is_judged_by_the_workloads_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    found = cell(monkeypatch, lambda plan: all(op.word != "link" for op in plan.workload.ops))
    assert (found.verdict, found.reason) == (Verdict.HOLDS, "not supported: link")
    assert found.states == 4 * found.workloads > 0, "on two disks"
    assert symbol(found) == "✓"


def test_where_none_runs_the_cell_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    found = cell(monkeypatch, lambda plan: False)
    assert (found.verdict, found.workloads, found.reason) == (Verdict.UNDECIDED, 0, "not supported: link")
    assert symbol(found) == NOT_THERE


@pytest.mark.parametrize(("adversary", "stands_up_to"), [("PLAIN", "PLAIN"), ("COMMIT", "HELD"), ("HELD", "HELD")])
def test_what_a_cell_stands_up_to_if_the_disk_takes_its_time(
    monkeypatch: pytest.MonkeyPatch, adversary: str, stands_up_to: str
) -> None:
    """A disk does not make up for workloads that were left out."""
    how = Exploration(budget=Budget(1, 1), held=1)
    found = cell(monkeypatch, lambda plan: True, how=how, adversary=Adversary[adversary])
    assert (found.verdict, found.adversary) == (Verdict.HOLDS, Adversary[stands_up_to])


def test_both_disks_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell says what it stands up to, and how many workloads it has: each counts once."""
    disks: list[int | None] = []

    def runs(plan: Plan) -> bool:
        disks.append(plan.how.held)
        return True

    found = cell(monkeypatch, runs)
    assert disks == [None, 1] * found.workloads
    assert found.relevant == found.workloads
    assert (found.verdict, found.adversary) == (Verdict.HOLDS, Adversary.HELD)
    assert found.states == 4 * found.workloads


@pytest.mark.parametrize("adversary", BY_WORKLOAD)
def test_a_weaker_adversary_has_one_disk(monkeypatch: pytest.MonkeyPatch, adversary: Adversary) -> None:
    found = cell(monkeypatch, lambda plan: plan.how.held is None, adversary=adversary)
    assert (found.verdict, found.reason, found.adversary) == (Verdict.HOLDS, "", adversary)


def test_a_disk_that_put_nothing_to_the_test_leaves_the_cell_open(monkeypatch: pytest.MonkeyPatch) -> None:
    for held in (None, 1):
        found = cell(monkeypatch, lambda plan: True, relevant=lambda plan, held=held: plan.how.held == held)
        assert (found.verdict, symbol(found) == "✓") == (Verdict.UNDECIDED, False)
    assert found.reason == "no crash state of one of the disks put the question"


def test_what_one_disk_leaves_open_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def verdicts(plan: Plan) -> Verdict:
        return Verdict.HOLDS if plan.how.held is None else Verdict.UNDECIDED

    found = cell(monkeypatch, lambda plan: True, verdicts=verdicts)
    assert found.verdict is Verdict.UNDECIDED


def test_all_ways_to_run_that_take_less_are_tried_the_weakest_first() -> None:
    def disks(how: Exploration) -> list[tuple[int | None, ...]]:
        return [way.disks for way in weaker_questions(Question((), how))]

    assert disks(Exploration(model="torn")) == [(None, 1)]
    assert disks(Exploration(held=3)) == [(None,)]
    assert disks(Exploration(model="torn", held=3)) == [(None,), (3,), (None,)]

    def ways(how: Exploration) -> list[tuple[int | None, str, int]]:
        question = Question((), how)
        return [(way.how.held, way.how.model, way.how.depth) for way in weaker_questions(question)]

    assert ways(Exploration()) == []
    assert ways(Exploration(held=3)) == [(None, "cache", 1)]
    assert ways(Exploration(model="lying", depth=2)) == [(None, "lying", 1)], "a lying disk breaks other promises"
    assert ways(Exploration(model="torn", held=3)) == [(None, "cache", 1), (3, "cache", 1), (None, "torn", 1)]
    assert ways(Exploration(model="plp")) == [(None, "through", 1)], "a cache loses more than torn blocks do"
    assert len(ways(Exploration(model="torn", held=3, depth=2))) == 7
