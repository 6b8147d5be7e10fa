"""Verdicts merge to the worst."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postcrash.model import ExitCode, Verdict, worst


def test_order_symbols_and_exit_codes() -> None:
    assert Verdict.HOLDS < Verdict.UNDECIDED < Verdict.VIOLATED
    assert [verdict.symbol for verdict in Verdict] == ["✓", "?", "✗"]
    assert [verdict.exit_code for verdict in Verdict] == [0, 6, 1]
    assert [(code.name, code.value) for code in ExitCode] == [
        ("HOLDS", 0),
        ("VIOLATED", 1),
        ("INTERRUPTED", 2),
        ("INFRASTRUCTURE", 3),
        ("USAGE", 4),
        ("NOTHING_SELECTED", 5),
        ("UNDECIDED", 6),
    ]


@given(st.lists(st.sampled_from(Verdict), min_size=1))
def test_worst(verdicts: list[Verdict]) -> None:
    if Verdict.VIOLATED in verdicts:
        assert worst(verdicts) is Verdict.VIOLATED
    elif Verdict.UNDECIDED in verdicts:
        assert worst(verdicts) is Verdict.UNDECIDED
    else:
        assert worst(iter(verdicts)) is Verdict.HOLDS


def test_nothing_judged_is_not_a_pass() -> None:
    with pytest.raises(ValueError, match="empty"):
        worst([])
