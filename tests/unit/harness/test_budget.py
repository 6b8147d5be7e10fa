"""Budgets as a user writes them, and their shares."""

import pytest

from postcrash.harness.budget import Budget, BudgetError


@pytest.mark.parametrize(
    ("text", "recoveries", "seconds"),
    [
        ("5000", 5000, None),
        ("30s", None, 30),
        ("10m", None, 600),
        ("1h", None, 3600),
        ("1.5h", None, 5400),
        ("0.25s", None, 0.25),
        ("5000,10m", 5000, 600),
        ("10m,5000", 5000, 600),
        ("20000,10m", Budget().recoveries, Budget().seconds),
    ],
)
def test_a_budget_is_read_and_shown(text: str, recoveries: int | None, seconds: float | None) -> None:
    budget = Budget.parse(text)
    assert budget == Budget(recoveries, seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "5000,",
        "5k",
        "-1",
        "+1",
        "1e3",
        "1.5",
        "10 m",
        "10M",
        "ten",
        "1d",
        "5,6",
        "1s,2m",
        "1,2s,3",
        "٣",
        "9" * 16,
    ],
)
def test_what_is_no_budget_is_told_with_its_value(text: str) -> None:
    with pytest.raises(BudgetError) as error:
        Budget.parse(text)
    assert str(error.value) == f"{text!r} is no budget such as 5000 (recoveries), 30s, 10m, 1h or 5000,10m"


@pytest.mark.parametrize("text", ["0", "0s", "0,10m", "5000,0.0h"])
def test_a_budget_of_nothing_is_refused(text: str) -> None:
    with pytest.raises(BudgetError, match="a budget of nothing"):
        Budget.parse(text)


def test_shares_are_equal_parts_of_what_is_left() -> None:
    budget = Budget(100, 60.0, bound=2, samples=5)
    assert budget.share(0, 0.0, 2) == Budget(50, 30.0, 2, 5)
    assert budget.share(11, 20.0, 1) == Budget(89, 40.0, 2, 5)
    assert budget.share(33, 20.0, 2) == Budget(34, 20.0, 2, 5)
    assert budget.share(100, 61.0, 1) == Budget(0, 0.0, 2, 5)
    assert Budget(None, None).share(5, 5.0, 2) == Budget(None, None)
