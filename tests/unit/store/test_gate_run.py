"""What a gate's result says."""

from collections.abc import Callable
from pathlib import Path

import pytest

from postcrash.model import NO_TIME_FOR_CHECKS, NO_TIME_FOR_MORE_LOOKS, Verdict
from postcrash.store.gate_run import INTERRUPTED, NO_TIME, TEXT_MAX, TIME_SPENT, Failure, GateRun, Part, Share

MakeFailure = Callable[..., Failure]
MakePart = Callable[..., Part]
MakeRun = Callable[..., GateRun]
BUDGET = Path(__file__).parents[3] / "recorders/crashdisk/src/jobs/budget.rs"
RECOVERIES_SPENT = "the recoveries of the budget are spent"


def test_a_new_failure_decides(mixed: GateRun) -> None:
    verdicts = [part.gate_verdict for part in mixed.parts]
    assert verdicts == [Verdict.VIOLATED, Verdict.VIOLATED, Verdict.HOLDS, Verdict.HOLDS]
    assert mixed.verdict is Verdict.VIOLATED
    counts = mixed.counts()
    assert (counts.new, counts.known, counts.undecided, counts.fixed) == (2, 2, 1, 1)
    assert (counts.workloads, counts.states, counts.recoveries) == (160, 4 * 2**70, 480)
    order = [(failure.is_new, failure.verdict) for _, failure in mixed.failures()]
    assert order == [
        (True, "violated"),
        (True, "violated"),
        (True, "undecided"),
        (False, "violated"),
        (False, "undecided"),
    ]


def test_nothing_is_undecided(make_run: MakeRun) -> None:
    assert make_run().verdict is Verdict.UNDECIDED


def test_what_is_known_explains_only_its_own_verdict(make_part: MakePart, make_undecided: MakeFailure) -> None:
    known = make_undecided(known="too large")
    assert make_part(verdict="undecided", failures=(known,)).gate_verdict is Verdict.HOLDS
    assert make_part(verdict="violated", failures=(known,)).gate_verdict is Verdict.VIOLATED
    assert make_part(verdict="undecided").gate_verdict is Verdict.UNDECIDED


def test_what_varies(make_failure: MakeFailure) -> None:
    assert make_failure(states=Share(failed=2, runs=2)).varies == ""
    text = make_failure(states=Share(failed=1, runs=2), recordings=Share(failed=0, runs=3)).varies
    assert text == (
        "the check varies: the crash state fails 1 of 2 times; "
        "the recording varies: the failure is in 0 of 3 new recordings"
    )


def test_a_name_that_is_no_text_is_kept_visible(make_failure: MakeFailure) -> None:
    odd = make_failure(name="corpus/\udcff.ops")
    assert odd.name == "corpus/\\udcff.ops"
    assert Failure.model_validate_json(odd.model_dump_json()) == odd


def test_a_failure_that_only_an_earlier_round_showed_says_so(make_failure: MakeFailure) -> None:
    text = make_failure(states=Share(failed=2, runs=2), earlier=True).varies
    assert text == "the failure was there in an earlier round of this run, and not in the last one"


@pytest.mark.parametrize(
    "message",
    [
        *(NO_TIME, NO_TIME_FOR_CHECKS, NO_TIME_FOR_MORE_LOOKS, INTERRUPTED),
        *(f"crash interval N: N of N crash states; {TIME_SPENT}", f"kernel:N: crash interval N: N; {TIME_SPENT}"),
    ],
)
def test_what_says_that_there_was_no_time(make_undecided: MakeFailure, message: str) -> None:
    assert make_undecided(message=message).is_lack_of_time
    assert not make_undecided(message=message, verdict="violated").is_lack_of_time


def test_spent_recoveries_are_no_lack_of_time(make_undecided: MakeFailure) -> None:
    """A budget of so many recoveries is spent at the same crash state on each machine."""
    assert not make_undecided(message=f"crash interval N: N of N crash states; {RECOVERIES_SPENT}").is_lack_of_time


@pytest.mark.parametrize("reason", [TIME_SPENT, RECOVERIES_SPENT])
def test_the_crash_disk_says_it_in_these_words(reason: str) -> None:
    assert f'"{reason}"' in BUDGET.read_text(encoding="utf-8")


def test_an_interrupted_run_does_not_hold(make_run: MakeRun, make_part: MakePart, make_failure: MakeFailure) -> None:
    assert make_run(make_part(), interrupted=True).verdict is Verdict.UNDECIDED
    broken = make_part(verdict="violated", failures=(make_failure(),))
    assert make_run(broken, interrupted=True).verdict is Verdict.VIOLATED


def test_a_text_that_is_too_long_is_cut(make_failure: MakeFailure) -> None:
    """A workload can have megabytes. What is cut can be read again."""
    long = make_failure(operations="creat a\n" * 20_000)
    assert (len(long.operations), long.operations[-2:]) == (TEXT_MAX, "a…")
    assert Failure.model_validate_json(long.model_dump_json()) == long
