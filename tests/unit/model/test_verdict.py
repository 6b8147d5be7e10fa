"""Verdicts merge to the worst, certificates add up."""

from functools import reduce
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postcrash.model import Certificate, ExitCode, Verdict, worst

COUNTS = st.integers(0, 10**30)
BOUNDS = st.sampled_from(["", "2 deviations", "1000 samples, seed 1", "1000 samples, seed 1; 2 deviations"])
CERTIFICATES = st.builds(Certificate, COUNTS, COUNTS, COUNTS, COUNTS, st.just("cache"), BOUNDS)


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


@given(st.lists(CERTIFICATES, min_size=1), st.randoms())
def test_addition_is_exact_and_in_any_order(certificates: list[Certificate], random: Random) -> None:
    total = reduce(Certificate.__add__, certificates)
    shuffled = random.sample(certificates, len(certificates))
    assert reduce(Certificate.__add__, shuffled) == total
    assert total.states == sum(certificate.states for certificate in certificates)
    assert total.workloads == sum(certificate.workloads for certificate in certificates)
    assert (total.bound == "") == all(certificate.bound == "" for certificate in certificates)


def test_bounds_are_joined() -> None:
    total = Certificate(1, 1, 1, 1, "cache", "b") + Certificate(2, 2, 2, 2, "cache", "a")
    assert total == Certificate(3, 3, 3, 3, "cache", "a; b")


def test_different_models_do_not_add_up() -> None:
    with pytest.raises(ValueError, match="'cache' and 'torn'"):
        Certificate(1, 1, 1, 1, "cache") + Certificate(1, 1, 1, 1, "torn")
