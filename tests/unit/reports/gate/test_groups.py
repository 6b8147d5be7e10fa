"""Failures by cause, over all parts."""

from collections.abc import Callable

from postcrash.reports.gate.groups import cause_groups
from postcrash.store.gate_run import Failure, GateRun, Part

MakeFailure = Callable[..., Failure]
MakePart = Callable[..., Part]
MakeRun = Callable[..., GateRun]


def test_a_cause_is_one_group_over_all_parts(mixed: GateRun) -> None:
    groups = cause_groups(mixed)
    assert [(group.representative.sort, len(group.places), group.workloads) for group in groups] == [
        ("violated", 2, 15),
        ("undecided", 1, 2),
        ("known", 1, 12),
        ("known", 1, 2),
    ]


def test_another_target_with_the_same_words_is_in_the_group(
    make_run: MakeRun, make_part: MakePart, make_failure: MakeFailure
) -> None:
    """The id of a cause is another one there; and on another kernel, the words can be others."""
    other_kernel = make_failure(message="other words")
    other_target, other_judge = make_failure(f"c-{'0' * 15}8"), make_failure(f"c-{'0' * 15}9", judge="P1")
    other_loss = make_failure(f"c-{'0' * 15}a", lost=())
    run = make_run(
        make_part(verdict="violated", failures=(make_failure(),)),
        make_part(verdict="violated", kernel="7.2", failures=(other_kernel,)),
        make_part(verdict="violated", target="xfs", failures=(other_target, other_judge, other_loss)),
    )
    groups = [{failure.cause for _, failure in group.places} for group in cause_groups(run)]
    assert sorted(map(len, groups)) == [1, 1, 2]
    assert {make_failure().cause, other_target.cause} in groups


def test_what_is_known_in_one_part_is_new_in_another(
    make_run: MakeRun, make_part: MakePart, make_failure: MakeFailure
) -> None:
    known = make_part(verdict="violated", failures=(make_failure(known="bug 7"),))
    other = make_part(verdict="violated", target="xfs", failures=(make_failure(),))
    assert [group.representative.known for group in cause_groups(make_run(known, other))] == [None, "bug 7"]


def test_a_part_is_told_once_with_all_findings(
    make_run: MakeRun, make_part: MakePart, make_failure: MakeFailure
) -> None:
    """Two causes can have the same words once their workloads are as small as they can be."""
    same = (make_failure(), make_failure(f"c-{'0' * 15}8"), make_failure(f"c-{'0' * 15}9", finding=""))
    (group,) = cause_groups(make_run(make_part(verdict="violated", failures=same)))
    assert list(group.part_lines()) == [
        "36 workloads of hunt-small on ext4-current, UML 6.1.176: f-0000000000000001, f-0000000000000008"
    ]


def test_the_smallest_workload_is_shown_and_the_most_frequent_cause_comes_first(
    make_run: MakeRun, make_part: MakePart, make_failure: MakeFailure
) -> None:
    rare = make_failure(f"c-{'0' * 15}9", judge="P1", workloads=1)
    large, small = make_failure(operations="a\nb\n"), make_failure(operations="b\n")
    run = make_run(
        make_part(verdict="violated", failures=(rare, large)),
        make_part(verdict="violated", target="xfs", failures=(small,)),
    )
    frequent, other = cause_groups(run)
    assert (frequent.representative, frequent.workloads) == (small, 24)
    assert other.representative == rare
