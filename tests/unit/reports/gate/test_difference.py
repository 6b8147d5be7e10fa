"""What changed between two runs, a line for each change."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from postcrash.reports.gate.difference import differences, different_questions
from postcrash.store.gate_run import Failure, GateRun, Part
from postcrash.store.kernel_build import KernelBuild

MakeFailure = Callable[..., Failure]
MakePart = Callable[..., Part]
MakeRun = Callable[..., GateRun]

PART = "hunt-small on ext4-current, UML 6.1.176"
TOLD = "c-0000000000000001 P5: PATH is N bytes long; of its bytes, N to N are zero"


def difference_lines(old: GateRun, new: GateRun) -> Iterator[str]:
    return map(str, differences(old, new))


@pytest.mark.parametrize("which", ["mixed", "hostile", "green"])
def test_a_run_does_not_differ_from_itself(which: str, request: pytest.FixtureRequest) -> None:
    run: GateRun = request.getfixturevalue(which)
    assert differences(run, run) == []


@pytest.fixture
def violated(make_run: MakeRun, make_part: MakePart, make_failure: MakeFailure) -> GateRun:
    return make_run(make_part(verdict="violated", failures=(make_failure(),)))


@pytest.fixture
def known(make_run: MakeRun, make_part: MakePart, make_failure: MakeFailure) -> GateRun:
    return make_run(make_part(verdict="violated", failures=(make_failure(known="bug 7"),)))


def test_a_new_failure_and_one_that_is_gone(green: GateRun, violated: GateRun) -> None:
    assert list(difference_lines(green, violated)) == [
        f"~ {PART}: HOLDS → VIOLATED",
        f"+ {PART}: new, violated: {TOLD}",
    ]
    assert list(difference_lines(violated, green)) == [
        f"~ {PART}: VIOLATED → HOLDS",
        f"- {PART}: new, violated: {TOLD}",
    ]


def test_a_kernel_that_was_built_anew_is_told_with_both_builds(green: GateRun, violated: GateRun) -> None:
    old, new = (
        run.model_copy(update={"kernels": {"UML 6.1.176": KernelBuild(digit * 64)}})
        for run, digit in ((green, "a"), (violated, "b"))
    )
    builds = f"{PART} (sha256:aaaaaaaaaaaa → sha256:bbbbbbbbbbbb)"
    assert list(difference_lines(old, new)) == [f"~ {builds}: HOLDS → VIOLATED", f"+ {builds}: new, violated: {TOLD}"]
    assert next(difference_lines(old, violated)) == f"~ {PART}: HOLDS → VIOLATED"


def test_what_becomes_known(green: GateRun, violated: GateRun, known: GateRun) -> None:
    assert list(difference_lines(violated, known)) == [
        f"~ {PART}: VIOLATED → HOLDS",
        f"~ {PART}: new, violated → known, violated: {TOLD}",
    ]
    assert list(difference_lines(known, violated))[1] == f"~ {PART}: known, violated → new, violated: {TOLD}"
    assert list(difference_lines(green, known)) == [f"+ {PART}: known, violated: {TOLD}"]


def test_a_known_failure_that_spreads(make_run: MakeRun, make_part: MakePart, make_failure: MakeFailure) -> None:
    def run(count: int, of: int) -> GateRun:
        failures = (make_failure(known="bug 7", workloads=count),)
        return make_run(make_part(verdict="violated", failures=failures, workloads=of))

    assert list(difference_lines(run(1, 1000), run(900, 1000))) == [f"~ {PART}: 1 → 900 workloads: {TOLD}"]
    assert list(difference_lines(run(1, 10), run(900, 1000))) == []


def test_what_is_gone_only_because_it_was_not_run_says_so(
    violated: GateRun, make_run: MakeRun, make_part: MakePart
) -> None:
    told = list(difference_lines(violated, make_run(make_part(verdict="undecided", not_run=3))))
    assert told[1] == f"? {PART}: new, violated: {TOLD}; in NEW: 3 workloads not run"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"verdict": "undecided"}, "undecided"),
        ({"verdict": "undecided", "not_run": 3}, "3 workloads not run"),
        ({"workloads": 39}, "39 workloads run instead of 40"),
        ({"lacking": {"exchange": 4}}, "not there: exchange"),
    ],
)
def test_what_one_run_cannot_tell_is_neither_gone_nor_new(
    changed: dict[str, Any], why: str, violated: GateRun, make_run: MakeRun, make_part: MakePart
) -> None:
    silent = make_run(make_part(**changed))
    assert list(difference_lines(violated, silent))[-1] == f"? {PART}: new, violated: {TOLD}; in NEW: {why}"
    assert list(difference_lines(silent, violated))[-1] == f"? {PART}: new, violated: {TOLD}; in OLD: {why}"


def test_what_was_not_there_before_does_not_matter(
    make_run: MakeRun, make_part: MakePart, make_failure: MakeFailure
) -> None:
    lacking = {"exchange": 4}
    old = make_run(make_part(verdict="violated", failures=(make_failure(),), lacking=lacking))
    assert list(difference_lines(old, make_run(make_part(lacking=lacking))))[-1] == f"- {PART}: new, violated: {TOLD}"


def test_what_one_run_left_undecided_may_be_there(
    violated: GateRun, make_run: MakeRun, make_part: MakePart, make_undecided: MakeFailure
) -> None:
    silent = make_run(make_part(verdict="undecided", failures=(make_undecided(),)))
    told = f"? {PART}: new, violated: {TOLD}; in {{}}: undecided: N recoveries were not enough (durability, mounts)"
    assert told.format("NEW") in difference_lines(violated, silent)
    assert told.format("OLD") in difference_lines(silent, violated)


def test_failures_of_a_part_that_was_not_run_may_be_there(violated: GateRun, make_run: MakeRun) -> None:
    assert list(difference_lines(violated, make_run())) == [
        f"- {PART}: part removed, VIOLATED",
        f"? {PART}: new, violated: {TOLD}; in NEW: the part was not run",
    ]


def test_a_verdict_that_changes_without_a_failure(make_run: MakeRun, make_part: MakePart) -> None:
    old, new = make_run(make_part()), make_run(make_part(verdict="undecided"))
    assert list(difference_lines(old, new)) == [f"~ {PART}: HOLDS → UNDECIDED"]


def test_a_part_that_is_added_or_removed(green: GateRun, make_run: MakeRun, make_part: MakePart) -> None:
    both = make_run(*green.parts, make_part(target="xfs"))
    assert list(difference_lines(green, both)) == ["+ hunt-small on xfs, UML 6.1.176: part added, HOLDS"]
    assert list(difference_lines(both, green)) == ["- hunt-small on xfs, UML 6.1.176: part removed, HOLDS"]


def test_failures_of_an_added_part_may_have_been_there(violated: GateRun, make_run: MakeRun) -> None:
    assert list(difference_lines(make_run(), violated)) == [
        f"+ {PART}: part added, VIOLATED",
        f"? {PART}: new, violated: {TOLD}; in OLD: the part was not run",
    ]


@pytest.mark.parametrize(
    ("changed", "note"),
    [
        ({"version": "0.2.0"}, "version: '0.1.0' in OLD, and '0.2.0' in NEW"),
        ({"file": "other.toml"}, "file: 'postcrash.toml' in OLD, and 'other.toml' in NEW"),
        ({"shards": ("1/2",)}, "shards: '1/1' in OLD, and '1/2' in NEW"),
        ({"names": ("b", "a")}, "parts: all in OLD, and 'a, b' in NEW"),
    ],
)
def test_runs_that_were_asked_different_things(green: GateRun, changed: dict[str, Any], note: str) -> None:
    assert list(different_questions(green, green.model_copy(update=changed))) == [note]


@pytest.mark.parametrize(
    ("changed", "note"),
    [
        ({"kind": "random"}, "kind of part 'hunt-small': 'hunt' in OLD, and 'random' in NEW"),
        ({"expect": "documents"}, "expect of part 'hunt-small': 'practice' in OLD, and 'documents' in NEW"),
        ({"hold": {"P5": None, "P1": "why"}}, "hold of part 'hunt-small': '' in OLD, and 'P1, P5' in NEW"),
    ],
)
def test_a_section_that_was_asked_something_else_is_one_note(
    make_run: MakeRun, make_part: MakePart, changed: dict[str, Any], note: str
) -> None:
    old = make_run(make_part(), make_part(target="xfs"), make_part(name="other"))
    new = make_run(make_part(**changed), make_part(target="xfs", **changed), make_part(name="another"))
    assert list(different_questions(old, new)) == [note]


def test_runs_that_were_asked_the_same(make_run: MakeRun, make_part: MakePart) -> None:
    """Neither the kernel and the results nor the order of names make a difference."""
    old = make_run(make_part(hold={"P1": None, "P5": None}), names=("a", "b"))
    part = make_part(kernel="UML 6.1.2", hold={"P5": "why", "P1": None}, workloads=3)
    assert list(different_questions(old, make_run(part, names=("b", "a"), started="2026-02-01T12:00:00Z"))) == []


def test_where_no_kernel_could_run_a_part_nothing_had_to_hold(make_run: MakeRun, make_part: MakePart) -> None:
    absent = make_part(verdict="undecided", workloads=0)
    assert list(different_questions(make_run(absent), make_run(make_part(hold={"P5": None})))) == []


def test_each_note_is_one_line(hostile: GateRun, green: GateRun) -> None:
    assert all(line.isprintable() for line in different_questions(green, hostile))
    assert len(list(different_questions(green, hostile))) == 2


def test_two_kernels_are_compared(make_run: MakeRun, make_part: MakePart, make_failure: MakeFailure) -> None:
    old = make_run(make_part(kernel="UML 6.1.1"))
    new = make_run(make_part(kernel="UML 6.1.2", verdict="violated", failures=(make_failure(),)))
    part = "hunt-small on ext4-current, UML 6.1.1 → UML 6.1.2"
    assert list(difference_lines(old, new)) == [f"~ {part}: HOLDS → VIOLATED", f"+ {part}: new, violated: {TOLD}"]
    assert list(difference_lines(old, make_run(make_part(kernel="UML 6.1.2")))) == []


def test_several_kernels_are_compared_in_order(make_run: MakeRun, make_part: MakePart) -> None:
    old = make_run(make_part(kernel="6.1.1"), make_part(kernel="6.6.1", verdict="undecided"))
    new = make_run(make_part(kernel="6.1.2"), make_part(kernel="6.6.2"))
    assert [str(each) for each in differences(old, new)] == [
        "~ hunt-small on ext4-current, 6.6.1 → 6.6.2: UNDECIDED → HOLDS"
    ]


def test_a_kernel_that_is_in_both_runs_is_compared_with_itself(make_run: MakeRun, make_part: MakePart) -> None:
    old = make_run(make_part(kernel="6.1"), make_part(kernel="6.6"))
    new = make_run(make_part(kernel="6.6", verdict="undecided"), make_part(kernel="7.2"))
    assert [str(each) for each in differences(old, new)] == [
        "- hunt-small on ext4-current, 6.1: part removed, HOLDS",
        "~ hunt-small on ext4-current, 6.6: HOLDS → UNDECIDED",
        "+ hunt-small on ext4-current, 7.2: part added, HOLDS",
    ]


def test_device_models_are_different_parts(make_run: MakeRun, make_part: MakePart) -> None:
    signs = [each.sign for each in differences(make_run(make_part()), make_run(make_part(model="torn")))]
    assert sorted(signs) == ["+", "-"]


def test_the_order_of_parts_does_not_matter(mixed: GateRun, green: GateRun) -> None:
    reversed_parts = mixed.model_copy(update={"parts": mixed.parts[::-1]})
    assert differences(green, mixed) == differences(green, reversed_parts) == sorted(differences(green, mixed))
    assert differences(mixed, reversed_parts) == []


def test_each_change_is_one_line(hostile: GateRun, green: GateRun) -> None:
    lines = list(difference_lines(green, hostile))
    assert len(lines) == 5 and all(line.isprintable() for line in lines)
