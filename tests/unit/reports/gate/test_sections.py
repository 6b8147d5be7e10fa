"""What runners of tests are told: a section is green only if its part holds."""

from collections.abc import Callable
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postcrash.model import Verdict
from postcrash.reports.gate.sections import sections
from postcrash.store.gate_run import INTERRUPTED, Failure, GateRun, Part, VerdictName

MakeFailure = Callable[..., Failure]
MakePart = Callable[..., Part]
MakeRun = Callable[..., GateRun]


def test_each_judge_and_each_cause_has_an_item(mixed: GateRun) -> None:
    first, second, third, fourth = sections(mixed)
    assert [(item.name, item.status, item.reason) for item in first.items] == [
        ("mounts", "passed", "put to the test in 40 workloads"),
        ("durability", "passed", "put to the test in 33 workloads"),
        ("link-counts", "untested", "never put to the test"),
        ("P5 c-0000000000000001", "violated", "P5: PATH is N bytes long; of its bytes, N to N are zero"),
        (
            "undecided c-0000000000000002",
            "undecided",
            "undecided: N recoveries were not enough (durability, mounts)",
        ),
        ("P1 c-0000000000000003", "known", "known: see bug 7"),
    ]
    assert [section.is_failed for section in (first, second, third, fourth)] == [True, True, False, False]


def test_a_judge_that_objects_does_not_pass_as_well(mixed: GateRun) -> None:
    for section in sections(mixed)[:2]:
        assert "P5" not in {item.name for item in section.items}


@pytest.mark.parametrize(("verdict", "status"), [("undecided", "undecided"), ("violated", "violated")])
def test_what_no_failure_explains_is_an_item(make_run: MakeRun, make_part: MakePart, verdict: str, status: str) -> None:
    (section,) = sections(make_run(make_part(verdict=verdict, notes=("slow",))))
    assert (section.items[-1].status, section.items[-1].reason) == (status, "slow")
    assert section.is_failed


def test_a_run_without_parts_is_not_green(make_run: MakeRun) -> None:
    (section,) = sections(make_run())
    assert section.is_failed


@given(
    st.sampled_from(["holds", "undecided", "violated"]),
    st.lists(st.tuples(st.sampled_from(["undecided", "violated"]), st.none() | st.just("known")), max_size=3),
    st.dictionaries(st.sampled_from(["P1", "P5"]), st.integers(0, 2)),
)
def test_a_section_is_green_if_and_only_if_its_part_holds(
    verdict: VerdictName, found: list[tuple[Literal["undecided", "violated"], str | None]], tested: dict[str, int]
) -> None:
    failures = tuple(
        Failure(cause=f"c-{number:016x}", verdict=each, judge="P5", message="m", known=known)
        for number, (each, known) in enumerate(found)
    )
    part = Part(
        name="n",
        kind="hunt",
        target="t",
        kernel="k",
        model="m",
        expect="practice",
        verdict=verdict,
        tested=tested,
        failures=failures,
    )
    (section,) = sections(GateRun(version="1", started="", seconds=0, file="f", parts=(part,)))
    assert section.is_failed == (part.gate_verdict is not Verdict.HOLDS)


def test_what_holds_in_a_run_that_was_interrupted_is_not_all_green(make_run: MakeRun, make_part: MakePart) -> None:
    part, whole = sections(make_run(make_part(), interrupted=True))
    assert (part.is_failed, whole.is_failed, whole.items[0].reason) == (False, True, INTERRUPTED)
