"""Certificates in words."""

import pytest

from postcrash.harness.examination.certificate import Certificate
from postcrash.harness.examination.coverage import common_reason, coverage, why_left_out

from .conftest import RECOVER, interval_report

SPENT = "the time of the budget is spent"


def certificate(covered: int, states: int, left_out: str | None, *reached: int | None) -> Certificate:
    wire = dict(zip(("all_kept", "none_kept", "samples", "seed"), reached, strict=True)) if reached else None
    report = interval_report(index=3, covered=covered, states=states, left_out=left_out, reached=wire)
    return Certificate.of(report, RECOVER)


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (certificate(8, 8, None), "8 of 8 crash states"),
        (
            certificate(1234, 2**80, SPENT, 2, 1, 300, 1),
            "1,234 of 2^80 crash states: all within 2 deviations of everything kept, "
            f"all within 1 deviation of nothing kept, 300 random ones (seed 1); {SPENT}",
        ),
        (
            certificate(2**40, 2**41, SPENT, 0, None, 1, 7),
            f"2^40 of 2^41 crash states: all within 0 deviations of everything kept, 1 random one (seed 7); {SPENT}",
        ),
        (certificate(0, 4, SPENT, None, None, 0, 1), f"0 of 4 crash states; {SPENT}"),
        (certificate(0, 2**300, "too large"), "0 of 2^300 crash states; too large"),
        (certificate(3**700, 2**2000, "why", None, None, 0, 1), "9.66e+333 of 2^2000 crash states; why"),
    ],
)
def test_what_is_covered_is_said(known: Certificate, said: str) -> None:
    assert coverage(known) == f"crash interval 3: {said}"


@pytest.mark.parametrize("place", ["", "within the recovery of r-0123456789abcdef/3/0.1,4.2: "])
@pytest.mark.parametrize(
    "known",
    [
        certificate(1234, 2**80, SPENT, 2, 1, 300, 1),
        certificate(0, 4, SPENT, None, None, 0, 1),
        certificate(3**700, 2**2000, SPENT, None, None, 0, 1),
    ],
)
def test_workloads_have_the_reason_for_what_was_left_out_in_common(known: Certificate, place: str) -> None:
    said = f"{place}{coverage(known)}"
    assert (why_left_out(said), common_reason(said)) == (SPENT, f"crash states were left out: {SPENT}")


@pytest.mark.parametrize("said", [coverage(certificate(8, 8, None)), "crash interval 3: two recoveries differ; why"])
def test_another_reason_stays_as_it_is(said: str) -> None:
    assert (why_left_out(said), common_reason(said)) == (None, said)
