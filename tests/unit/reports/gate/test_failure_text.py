"""The words for a failure. Each form has them from here."""

from collections.abc import Callable

import pytest

from postcrash.reports.gate.failure_text import (
    commands,
    coverage,
    facts,
    failure_counts,
    headline,
    shard_note,
    story,
    unexplained_verdict,
)
from postcrash.store.gate_run import Failure, GateRun, Part, Share

MakeFailure = Callable[..., Failure]
MakePart = Callable[..., Part]
MakeRun = Callable[..., GateRun]


def test_a_failure_has_all_that_one_needs_to_look_at_it(make_failure: MakeFailure) -> None:
    failure = make_failure(known="bug 7", states=Share(failed=1, runs=9))
    assert story(failure) == (
        "P5: PATH is N bytes long; of its bytes, N to N are zero\n"
        "known: bug 7\n"
        "broken: auto-da-alloc (ext4(5))\n"
        "lost: data of a file, inode table\n"
        "the check varies: the crash state fails 1 of 9 times\n"
        "12 workloads, the smallest is rename-replace\n"
        "    creat A\n    ---\n    creat B\n    rename B A\n"
        "postcrash explain f-0000000000000001\n"
        "postcrash repro f-0000000000000001"
    )


@pytest.mark.parametrize(
    ("states", "told"),
    [
        (None, ["known: bug 7"]),
        (Share(failed=2, runs=2), ["known: bug 7; the crash state fails 2 of 2 times"]),
        (Share(failed=0, runs=2), ["known: bug 7", "the check varies: the crash state fails 0 of 2 times"]),
    ],
)
def test_a_known_failure_says_how_often_it_fails(
    make_failure: MakeFailure, states: Share | None, told: list[str]
) -> None:
    known = make_failure(known="bug 7", states=states, standing="", lost=("a",))
    assert [fact for fact in facts(known) if not fact.startswith("lost")] == told


def test_a_crash_that_loses_nothing_says_so(make_failure: MakeFailure, make_undecided: MakeFailure) -> None:
    assert "lost: nothing that had been sent" in list(facts(make_failure(lost=())))
    assert list(facts(make_undecided())) == []


def test_a_comparison_says_what_the_two_show_and_which_rules_the_state_breaks_too(make_failure: MakeFailure) -> None:
    beside = tuple(f"{path} found: not there; on kernel:6.1: fifo" for path in "abcdefghijkl")
    told = list(facts(make_failure(standing="", beside=beside, objections=("fsync-names: a is missing; broken",))))
    assert told[:10] == list(beside[:10])
    assert told[10:12] == ["2 more paths that differ", "also fsync-names: a is missing; broken"]


def test_what_was_not_run_has_no_workload_and_no_command(make_undecided: MakeFailure) -> None:
    failure = make_undecided(name="", operations="", workloads=1)
    assert story(failure) == "undecided: N recoveries were not enough (durability, mounts)\n1 workload"
    assert commands(failure) == ()
    assert headline(make_undecided(judge="")) == "undecided: N recoveries were not enough"


@pytest.mark.parametrize("text", ["a\nb", "a\x1b[2Jb", "a\u202eb"])
def test_a_headline_is_one_line_that_can_be_shown(make_failure: MakeFailure, text: str) -> None:
    assert headline(make_failure(judge=text, message=text)).isprintable()


def test_counts(mixed: GateRun) -> None:
    assert failure_counts(mixed) == "2 new, 1 undecided, 2 known, 1 fixed"
    assert coverage(mixed) == "160 workloads, about 10^22 crash states, 480 recoveries, 62 s"


def test_a_result_that_is_not_whole_says_so(make_run: MakeRun) -> None:
    assert shard_note(make_run(shards=("2/4",))) == " (only shard 2/4)"
    assert shard_note(make_run(shards=("1/2", "2/2"))) == shard_note(make_run()) == ""
    assert len(shard_note(make_run(shards=tuple(f"{number}/99999" for number in range(1, 9999))))) < 200


def test_what_no_failure_explains(make_part: MakePart, make_undecided: MakeFailure) -> None:
    assert unexplained_verdict(make_part()) == ""
    assert unexplained_verdict(make_part(verdict="undecided", failures=(make_undecided(),))) == ""
    assert unexplained_verdict(make_part(verdict="undecided")) == "no failure says why"
    assert (
        unexplained_verdict(make_part(verdict="undecided", not_run=3, notes=("slow",))) == "3 workloads not run; slow"
    )
