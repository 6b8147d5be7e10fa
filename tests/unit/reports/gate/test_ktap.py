"""KTAP, as a reader of TAP reads it level by level. (The kernel's own reader is GPL, and no part of a package.)"""

from collections.abc import Callable, Iterable

import pytest
from tap.line import Result
from tap.parser import Parser

from postcrash.model import Verdict
from postcrash.reports.gate.ktap import ktap
from postcrash.store.gate_run import Failure, GateRun, Part

MakeFailure = Callable[..., Failure]
MakePart = Callable[..., Part]
MakeRun = Callable[..., GateRun]


def results(lines: Iterable[str], indent: int = 0) -> list[Result]:
    """The results of one level. Lines of deeper levels are not results to a reader of TAP."""
    own = [line[indent:] for line in lines if line[:indent].isspace() or indent == 0]
    parsed = [Parser().parse_line(line) for line in own]
    return [line for line in parsed if line.category == "test"]


def test_parts_are_tests_and_cases_are_subtests(mixed: GateRun) -> None:
    lines = list(ktap(mixed))
    assert lines[:5] == [
        "KTAP version 1",
        "1..4",
        "  KTAP version 1",
        "  # Subtest: hunt-small on ext4-current, UML 6.1.176",
        "  1..6",
    ]
    assert [(result.ok, result.number, result.description) for result in results(lines)] == [
        (False, 1, "hunt-small on ext4-current, UML 6.1.176"),
        (False, 2, "hunt-small on ext4-current, QEMU/TCG 6.12.1"),
        (True, 3, "corpus on ext4-current, UML 6.1.176"),
        (True, 4, "corpus on btrfs, UML 6.1.176, device model torn:512"),
    ]
    first = results(lines, 2)[:6]
    assert [(result.ok, result.description, result.directive.text) for result in first] == [
        (True, "mounts", "put to the test in 40 workloads"),
        (True, "durability", "put to the test in 33 workloads"),
        (True, "link-counts", "SKIP never put to the test"),
        (False, "P5 c-0000000000000001", ""),
        (
            False,
            "undecided c-0000000000000002",
            "ERROR undecided: N recoveries were not enough (durability, mounts)",
        ),
        (True, "P1 c-0000000000000003", "XFAIL known: see bug 7"),
    ]


@pytest.mark.parametrize("which", ["mixed", "hostile", "green"])
def test_numbers_and_plans_agree(which: str, request: pytest.FixtureRequest) -> None:
    open_levels: list[list[int]] = []
    for line in ktap(request.getfixturevalue(which)):
        level = (len(line) - len(line.lstrip(" "))) // 2
        text = line.strip()
        if text == "KTAP version 1":
            assert len(open_levels) == level
            open_levels.append([])
        elif text.startswith("1.."):
            open_levels[level].append(int(text[3:]))
        elif text.startswith(("ok ", "not ok ")):
            for done in open_levels[level + 1 :]:
                assert done[0] == len(done) - 1
            del open_levels[level + 1 :]
            open_levels[level].append(int(text.removeprefix("not ").split()[1]))
            assert open_levels[level][-1] == len(open_levels[level]) - 1
        else:
            assert text.startswith("# ")
    assert len(open_levels) == 1 and open_levels[0][0] == len(open_levels[0]) - 1


def test_all_there_is_to_say_stands_before_the_result(mixed: GateRun) -> None:
    lines = list(ktap(mixed))
    end = lines.index("  not ok 4 P5 c-0000000000000001")
    said = lines[lines.index("  ok 3 link-counts # SKIP never put to the test") + 1 : end]
    assert all(line.startswith("  #   ") for line in said)
    assert "  #   rename B A" in said and "  #   postcrash explain f-0000000000000001" in said


def test_the_end_has_what_is_fixed_and_the_counts(mixed: GateRun) -> None:
    assert list(ktap(mixed))[-2:] == [
        "#   fixed: line 7 (c-00000000000000ff): was mended",
        "#   VIOLATED: 2 new, 1 undecided, 2 known, 1 fixed: "
        "160 workloads, about 10^22 crash states, 480 recoveries, 62 s",
    ]


@pytest.mark.parametrize("message", ["SKIP it", "x # SKIP it", "# todo x", "a\nok 9 b", "Subtest: x"])
@pytest.mark.parametrize("verdict", ["violated", "undecided"])
def test_no_message_makes_a_failure_pass(
    make_run: MakeRun, make_part: MakePart, make_failure: MakeFailure, message: str, verdict: str
) -> None:
    failure = make_failure(verdict=verdict, judge=message, message=message, name=message, operations=message)
    lines = list(ktap(make_run(make_part(verdict=verdict, tested={}, failures=(failure,)))))
    (result,) = results(lines, 2)
    assert not result.ok and not result.skip and not result.todo
    assert sum(line.strip().startswith("# Subtest: ") for line in lines) == 1


@pytest.mark.parametrize("which", ["mixed", "hostile", "green"])
def test_a_part_is_ok_if_it_holds(which: str, request: pytest.FixtureRequest) -> None:
    run: GateRun = request.getfixturevalue(which)
    assert [result.ok for result in results(ktap(run))] == [part.gate_verdict is Verdict.HOLDS for part in run.parts]


def test_a_part_of_which_nothing_was_put_to_the_test_is_skipped(make_run: MakeRun, make_part: MakePart) -> None:
    (result,) = results(ktap(make_run(make_part(tested={"P5": 0}))))
    assert result.ok and result.skip


def test_a_run_without_parts_is_not_ok(make_run: MakeRun) -> None:
    (result,) = results(ktap(make_run()))
    assert not result.ok
