"""Random hunts with machines that only pretend. They can be repeated, are guided, and go on where they stopped."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from postcrash._core import Recording
from postcrash.harness.errors import OperationFailedError
from postcrash.harness.hunting import hunt as hunt_module
from postcrash.harness.hunting import random_hunt as module
from postcrash.harness.hunting.hunt_result import HuntResult
from postcrash.harness.hunting.random_hunt import REFUSALS, RandomSelection
from postcrash.harness.hunting.run_hunt import run_hunt
from postcrash.model import Verdict, Workload
from postcrash.store.store import Store
from postcrash.workloads import GRAMMARS

from .pretence import CREW, Behaviour, Pretence, Silent, clean, walks

pytestmark = pytest.mark.slow

FULL = GRAMMARS["full"]
Run = Callable[..., tuple[HuntResult, list[str]]]


def word_pairs(_recording: Recording, workload: Workload, *_: object) -> set[str]:
    """Stands in for what machines see: the pairs of operations that follow each other."""
    return {f"{before.word} {after.word}" for before, after in pairwise(workload.ops)}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run random hunts with a behaviour. Gives the result and the texts of the workloads that were run for it."""

    def hunted(
        behaviour: Behaviour, limit: int, seed: int = 1, folder: str = "store", guided: bool = True
    ) -> tuple[HuntResult, list[str]]:
        ran: list[str] = []

        def noted(workload: Workload) -> list[str] | OperationFailedError:
            ran.append(workload.to_text())
            return behaviour(workload)

        monkeypatch.setattr(hunt_module, "examine_all", Pretence(noted))
        monkeypatch.setattr(module, "features", word_pairs if guided else lambda *_: set())
        monkeypatch.setattr(module, "Recording", lambda path: path)
        store = Store(tmp_path / folder)
        result = run_hunt(RandomSelection(FULL, seed, limit), walks(tmp_path), CREW, store, Silent())
        store.close()
        return result, ran

    return hunted


def test_the_seed_draws_the_same_workloads_and_none_twice(run: Run) -> None:
    first, ran = run(clean, 60)
    _, same = run(clean, 60, folder="another")
    _, other = run(clean, 60, seed=2, folder="a third")
    assert ran == same != other
    assert len(set(ran)) == len(ran) == first.run == 60
    assert (first.verdict, first.not_run) == (Verdict.HOLDS, 0)
    assert 1 < first.new < 60


def test_a_hunt_goes_on_as_if_it_had_not_ended(run: Run) -> None:
    _, whole = run(clean, 30)
    _, part = run(clean, 12, folder="parts")
    result, rest = run(clean, 30, folder="parts")
    again, nothing = run(clean, 30, folder="parts")
    assert part + rest == whole
    assert (again, nothing) == (result, [])


def test_an_interrupt_loses_nothing(run: Run) -> None:
    count = 0

    def interrupted(_workload: Workload) -> list[str]:
        nonlocal count
        count += 1
        if count > 9:
            raise KeyboardInterrupt
        return []

    part, _ = run(interrupted, 20)
    assert (part.interrupted, part.run, part.not_run) == (True, 9, 11)
    result, rest = run(clean, 20)
    assert (result.run, len(rest), result.not_run) == (20, 11, 0)


def test_what_the_file_system_refused_often_is_not_drawn_again(run: Run) -> None:
    def refuses(workload: Workload) -> list[str] | OperationFailedError:
        has_it = any(operation.word == "exchange" for operation in workload.operations)
        return OperationFailedError("no", "exchange", 95) if has_it else []

    result, ran = run(refuses, 40)
    assert sum("exchange" in text for text in ran) == REFUSALS
    assert (result.run, result.lacking) == (40 - REFUSALS, {"exchange fails with EOPNOTSUPP": REFUSALS})
    _, again = run(refuses, 40)
    assert again == []


CHAIN = ("link", "rename", "truncate")


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in (1, 2))])
def test_a_bug_that_takes_a_chain_of_operations_is_found(run: Run, seed: int) -> None:
    """Each step of the chain is something new, so workloads with one of the steps are kept and made longer."""

    def breaks(workload: Workload) -> list[str]:
        steps = iter(operation.word for operation in workload.ops)
        return ["wrong"] if all(step in steps for step in CHAIN) else []

    assert run(clean, 250, seed=seed)[0].verdict is Verdict.HOLDS
    assert run(breaks, 250, seed=seed, folder="broken")[0].verdict is Verdict.VIOLATED
