"""Random drafts: all can run, the seed determines all of them, and later ones start from those that were kept."""

import json

import pytest

from postcrash.model import simulate
from postcrash.workloads import GRAMMARS, Draft, Pool
from postcrash.workloads.random import CALLS_MAX, CALLS_MIN

FULL = GRAMMARS["full"]


def drawn(seed: int, count: int) -> list[Draft]:
    """Drafts from a pool in which every third is kept."""
    pool, drafts = Pool(FULL, seed), []
    for number in range(count):
        drafts.append(pool.draw(number))
        if number % 3 == 0:
            pool.add(drafts[-1])
    return drafts


def test_every_draft_can_run() -> None:
    for draft in drawn(1, 300):
        assert CALLS_MIN <= len(draft.calls) <= CALLS_MAX
        workload = draft.workload("w", FULL)
        simulate(workload)
        assert workload.ends_in_checkpoint


def test_a_draft_depends_on_seed_number_and_pool() -> None:
    assert drawn(2, 40) == drawn(2, 40) != drawn(3, 40)
    kept = drawn(2, 1)[0]
    empty, other = Pool(FULL, 2), Pool(FULL, 2)
    other.add(kept)
    assert any(empty.draw(number) != other.draw(number) for number in range(20))


def test_drafts_come_from_those_that_were_kept() -> None:
    pool = Pool(FULL, 4)
    kept = pool.draw(0)
    pool.add(kept)
    shared = [len(set(kept.calls) & set(pool.draw(number).calls)) / len(set(kept.calls)) for number in range(1, 101)]
    assert sum(share > 1 / 2 for share in shared) > 50


@pytest.mark.parametrize("draft", drawn(5, 20))
def test_a_draft_can_be_written_down(draft: Draft) -> None:
    assert Draft.from_json(json.loads(json.dumps(draft.to_json()))) == draft
