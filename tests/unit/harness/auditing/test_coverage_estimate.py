"""How many runs may be of an unseen kind: at most as many as is said, but for a small risk."""

import random

import pytest

from postcrash.harness.auditing.coverage_estimate import RISK, unseen_share


@pytest.mark.parametrize(
    ("kinds", "percent"),
    [("", 100), ("a", 100), ("aa", 97.5), ("aab", 100), ("aaaaaa", 52.2), ("abaaaa", 69.8), ("a" * 30, 11.9)],
)
def test_the_bound_falls_while_nothing_new_comes(kinds: str, percent: float) -> None:
    assert unseen_share(kinds) * 100 == pytest.approx(percent, abs=0.06)


@pytest.mark.parametrize(
    "weights", [(50, 50), (90, 10), (97, 3), (60, 20, 10, 5, 5), (40, 30, 1, 1, 1, 1, 1, 25), (1,) * 40]
)
@pytest.mark.parametrize("most", [6, 30])
def test_it_is_rarely_wrong_whenever_one_stops(weights: tuple[int, ...], most: int) -> None:
    """It is wrong if it is too small after any recording, so that nobody gains by stopping at the right one."""
    draws, wrong = random.Random(1), 0
    for _ in range(2000):
        kinds = [str(kind) for kind in draws.choices(range(len(weights)), weights, k=most)]
        for made in range(1, most + 1):
            seen = {int(kind) for kind in kinds[:made]}
            unseen = sum(each for kind, each in enumerate(weights) if kind not in seen) / sum(weights)
            if unseen > unseen_share(kinds[:made]):
                wrong += 1
                break
    assert wrong / 2000 <= RISK
