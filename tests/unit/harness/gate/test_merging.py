"""How the shards of a gate become one result."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from postcrash.harness.gate.merging import joined, merged
from postcrash.model import Verdict
from postcrash.store.gate_run import UNTESTED, Failure, GateRun, Part, Sighting, UnseenLine, validated
from postcrash.store.kernel_build import KernelBuild

MakeFailure = Callable[..., Failure]
MakePart = Callable[..., Part]
MakeRun = Callable[..., GateRun]

CAUSES = [f"c-{number:016x}" for number in range(4)]
NAMES = ["P1", "P5", "mounts"]
few = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])


def test_a_shard_that_has_a_part_twice_is_not_merged(make_run: MakeRun, make_part: MakePart) -> None:
    with pytest.raises(ValueError, match=r"shard 1/1 has the part \('hunt-small', .* 2 times"):
        merged([make_run(make_part(), make_part(workloads=1))])


def test_shards_whose_kernels_are_other_builds_are_not_merged(make_run: MakeRun, make_part: MakePart) -> None:
    builds = [KernelBuild(digit * 64) for digit in "ab"]
    runs = [
        make_run(make_part(), shards=(f"{number}/2",), kernels={"UML 6.1.176": build})
        for number, build in enumerate(builds, 1)
    ]
    with pytest.raises(ValueError, match=r"'UML 6\.1\.176' is sha256:a{12} and sha256:b{12}"):
        merged(runs)
    same = [run.model_copy(update={"kernels": {"UML 6.1.176": builds[0]}}) for run in runs]
    assert merged(same).kernels == {"UML 6.1.176": builds[0]}


@st.composite
def failures(draw: st.DrawFn, cause: str) -> Failure:
    return Failure(
        cause=cause,
        verdict=draw(st.sampled_from(["violated", "undecided"])),
        judge="P5",
        message="m",
        operations=draw(st.sampled_from(["", "sync\n", "creat A\n", "creat A\nsync\n"])),
        workloads=draw(st.integers(1, 99)),
        known=draw(st.none() | st.just("known")),
    )


@st.composite
def parts(draw: st.DrawFn, target: str) -> Part:
    count = st.integers(0, 2**40)
    numbers = ("workloads", "not_run", "instants", "recoveries", "remembered", "outcomes")
    counts: dict[str, Any] = {name: draw(count) for name in numbers}
    causes = draw(st.lists(st.sampled_from(CAUSES), unique=True, max_size=3))
    return Part(
        name="hunt",
        kind="hunt",
        target=target,
        kernel="UML",
        model="cache",
        expect="practice",
        verdict=draw(st.sampled_from(["holds", "undecided", "violated"])),
        **counts,
        states=str(draw(st.integers(0, 2**200))),
        states_total=str(draw(st.integers(0, 2**200))),
        seconds=draw(st.floats(0, 1e6)),
        tested=draw(st.dictionaries(st.sampled_from(NAMES), st.integers(0, 9))),
        failures=tuple(draw(failures(cause)) for cause in causes),
        notes=tuple(draw(st.lists(st.sampled_from(["slow", "aged"]), unique=True))),
    )


@st.composite
def shards(draw: st.DrawFn) -> list[GateRun]:
    """All shards of a gate, in order."""
    count = draw(st.integers(1, 4))
    targets = draw(st.lists(st.sampled_from("abc"), unique=True))
    known = [Sighting("hunt", target, "cache", "*", "") for target in "abc"]
    places = st.lists(st.sampled_from(known), unique=True).map(tuple)
    return [
        GateRun(
            version="1",
            started=f"2026-01-31T12:00:0{draw(st.integers(0, 9))}Z",
            seconds=draw(st.floats(0, 1e6)),
            file="postcrash.toml",
            shards=(f"{number}/{count}",),
            parts=tuple(draw(parts(name)) for name in draw(st.permutations(targets))),
            unseen=tuple(
                UnseenLine(line=line, cause=CAUSES[line - 1], why="w", places=draw(places))
                for line in draw(st.lists(st.integers(1, len(CAUSES)), unique=True))
            ),
        )
        for number in range(1, count + 1)
    ]


@few
@given(shards(), st.data())
def test_the_order_of_shards_does_not_matter(runs: list[GateRun], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(runs))
    assert merged(shuffled).model_dump_json() == merged(runs).model_dump_json()


@few
@given(shards())
def test_everything_of_the_shards_is_in_the_result(runs: list[GateRun]) -> None:
    result = merged(runs)
    every = [part for run in runs for part in run.parts]
    assert {part.key for part in result.parts} == {part.key for part in every}
    assert result.seconds == pytest.approx(sum(run.seconds for run in runs))
    assert result.started == min(run.started for run in runs)
    assert result.shards == tuple(f"{number}/{len(runs)}" for number in range(1, len(runs) + 1))
    for number in range(1, len(CAUSES) + 1):
        seen_by_none = all(number in [line.line for line in run.unseen] for run in runs)
        assert (number in [line.line for line in result.unseen]) == seen_by_none
    for part in result.parts:
        _is_sum_of(part, [each for each in every if each.key == part.key])
    assert GateRun.model_validate_json(result.model_dump_json()) == result


def _is_sum_of(part: Part, shares: list[Part]) -> None:
    for name in ("workloads", "not_run", "instants", "recoveries", "remembered", "outcomes"):
        assert getattr(part, name) == sum(getattr(share, name) for share in shares)
    for name in ("states", "states_total"):
        assert int(getattr(part, name)) == sum(int(getattr(share, name)) for share in shares)
    assert part.seconds == pytest.approx(sum(share.seconds for share in shares))
    assert part.verdict == max((share.verdict for share in shares), key=["holds", "undecided", "violated"].index)
    assert part.tested == {
        name: sum(share.tested.get(name, 0) for share in shares) for share in shares for name in share.tested
    }
    assert set(part.notes) == {note for share in shares for note in share.notes}
    assert len(set(part.notes)) == len(part.notes)
    every = [failure for share in shares for failure in share.failures]
    assert {failure.cause for failure in part.failures} == {failure.cause for failure in every}
    for failure in part.failures:
        same = [each for each in every if each.cause == failure.cause]
        assert failure.workloads == sum(each.workloads for each in same)
        assert failure.is_violated == any(each.is_violated for each in same)
        if failure.is_violated:
            assert failure.is_new == any(each.is_new for each in same if each.is_violated)


def test_a_line_that_no_shard_shows_is_fixed(make_run: MakeRun, make_part: MakePart, make_failure: MakeFailure) -> None:
    """The failure was in one shard only, so the other shard's store has never seen it."""
    place = Sighting("hunt-small", "ext4-current", "cache", "6.1", "")

    def shard(number: int, *failures: Failure, places: tuple[Sighting, ...] = ()) -> GateRun:
        line = UnseenLine(line=2, cause=CAUSES[0], why="w", places=places)
        shown = any(failure.cause == line.cause for failure in failures)
        worst = max((failure.verdict for failure in failures), default="holds")
        share = make_part(failures=failures, verdict=worst)
        return make_run(share, shards=(f"{number}/2",), unseen=() if shown else (line,))

    there, left_open = make_failure(CAUSES[0]), make_failure(CAUSES[1], verdict="undecided")
    seen = shard(2, places=(place,))
    assert [line.line for line in merged([shard(1), seen]).fixed] == [2]
    assert merged([shard(1), shard(2)]).fixed == ()
    assert merged([shard(1, there), seen]).fixed == ()
    assert merged([shard(1, left_open), seen]).fixed == ()
    assert merged([shard(1), shard(2, places=(place, place._replace(part="big")))]).fixed == ()
    assert merged([shard(1), validated(seen, interrupted=True)]).fixed == ()


@pytest.mark.parametrize("name", ["postcrash", "file other.toml", "folder corpus"])
def test_a_shard_that_does_not_say_what_it_rests_on_is_not_merged(
    name: str, make_run: MakeRun, make_part: MakePart
) -> None:
    first = make_run(make_part(), shards=("1/2",), digests={name: "0" * 64})
    for other in ({}, {"target xfs": "0" * 64}):
        second = make_run(make_part(), shards=("2/2",), digests=other)
        with pytest.raises(ValueError, match=f"shard 1/2 has '{name}', and shard 2/2 does not say what it had"):
            merged([first, second])


def test_a_judge_that_no_shard_put_to_the_test_stays(make_part: MakePart) -> None:
    both = joined(make_part(tested={"P5": 0}), make_part(tested={"P5": 0, "P1": 1}))
    assert both.tested == {"P5": 0, "P1": 1}


def test_the_smallest_workload_is_shown_and_an_unknown_one_is_not_small(
    make_part: MakePart, make_failure: MakeFailure
) -> None:
    def shown(*operations: str) -> str:
        first, second = (
            make_part(verdict="violated", failures=(make_failure(operations=text),)) for text in operations
        )
        (failure,) = joined(first, second).failures
        return failure.operations

    assert shown("creat A\nsync\n", "sync\n") == shown("sync\n", "creat A\nsync\n") == "sync\n"
    assert shown("", "creat A\nsync\n") == "creat A\nsync\n"


@pytest.mark.parametrize(
    ("given_shards", "words"),
    [
        (["1/3", "3/3"], "shard 2/3 is missing"),
        (["2/2"], "shard 1/2 is missing"),
        (["1/2", "2/2", "2/2"], "shard 2/2 is there 2 times"),
        (["1/1", "1/1"], "shard 1/1 is there 2 times"),
        (["1/2", "2/2", "1/3"], "1/3 is no shard of 2"),
        (["1/2", "2/2", "3/2"], "3/2 is no shard of 2"),
    ],
)
def test_each_shard_is_needed_once(make_run: MakeRun, given_shards: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        merged([make_run(shards=(shard,)) for shard in given_shards])


def test_there_is_something_to_merge() -> None:
    with pytest.raises(ValueError, match="no result"):
        merged([])


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"file": "other.toml"}, "'other.toml' with baseline 'known.toml', postcrash '0.1.0'"),
        ({"version": "9"}, "'postcrash.toml' with baseline 'known.toml', postcrash '9'"),
        ({"baseline": ""}, "'postcrash.toml' with baseline '', postcrash '0.1.0'"),
    ],
)
def test_shards_of_different_gates_are_not_merged(make_run: MakeRun, other: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=f"different gates: .* and {words}$"):
        merged([make_run(shards=("1/2",)), make_run(shards=("2/2",), **other)])


def test_shards_that_rest_on_different_definitions_are_not_merged(make_run: MakeRun) -> None:
    mine, theirs, xfs = ("a" * 64, "b" * 64, "c" * 64)
    first = make_run(shards=("1/2",), digests={"postcrash": mine})
    both = f"the digest of 'target mine' is {mine} in shard 1/2 and {theirs} in shard 2/2$"
    with pytest.raises(ValueError, match=both):
        merged([make_run(shards=(f"{n}/2",), digests={"target mine": d}) for n, d in ((2, theirs), (1, mine))])
    with pytest.raises(ValueError, match="the digest of 'postcrash' is"):
        merged([first, make_run(shards=("2/2",), digests={"postcrash": theirs})])
    last = make_run(shards=("2/2",), digests={"postcrash": mine, "target xfs": xfs})
    assert merged([last, first]).digests == {"postcrash": mine, "target xfs": xfs}


@pytest.mark.parametrize("other", [{"kind": "corpus"}, {"expect": "documents"}])
def test_parts_of_different_sections_are_not_joined(make_part: MakePart, other: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"of 'hunt-small on ext4-current, UML 6.1.176' is"):
        joined(make_part(), make_part(**other))


def test_a_sum_that_could_not_be_read_again_is_an_error(make_part: MakePart, make_failure: MakeFailure) -> None:
    large = make_part(recoveries=2**63 - 1)
    with pytest.raises(ValueError, match="the results together: recoveries"):
        joined(large, make_part(recoveries=1))
    many = make_part(verdict="violated", failures=(make_failure(workloads=2**63 - 1),))
    with pytest.raises(ValueError, match="the results together: workloads"):
        joined(many, many)


def test_shards_of_different_parts_are_not_merged(make_run: MakeRun, make_part: MakePart) -> None:
    """Of a part that one shard was not asked for, a half would pass for the whole."""
    small, table = make_part(), make_part(name="table")
    first = make_run(small, table, shards=("1/2",))
    with pytest.raises(ValueError, match="different parts: 'all parts' and 'table'"):
        merged([first, make_run(table, shards=("2/2",), names=("table",))])


@pytest.mark.parametrize(("missing_in", "workloads"), [(1, 1), (2, 2)])
def test_a_shard_without_a_part_that_it_must_have(
    make_run: MakeRun, make_part: MakePart, missing_in: int, workloads: int
) -> None:
    """For example since it ran on another kernel. A part of few workloads has none for the last shards."""
    here, other = make_part(workloads=workloads), make_part(kernel="UML 6.1.170", workloads=workloads)
    parts = [(other,) if number == missing_in else (here,) for number in (1, 2)]
    runs = [make_run(*each, shards=(f"{number}/2",)) for number, each in enumerate(parts, 1)]
    with pytest.raises(ValueError, match=r"shard ./2 has no '.*', and another one has"):
        merged(runs)


def test_the_last_shards_may_have_nothing_of_a_part(make_run: MakeRun, make_part: MakePart) -> None:
    whole = merged([make_run(make_part(workloads=1), shards=("1/2",)), make_run(shards=("2/2",))])
    assert whole.verdict is Verdict.HOLDS


def shards_of(make_run: MakeRun, *parts: Part, **about: Any) -> list[GateRun]:
    """A shard for each of the parts."""
    return [make_run(part, shards=(f"{n}/{len(parts)}",), **about) for n, part in enumerate(parts, 1)]


def test_what_must_hold_is_put_to_the_test_in_some_shard(make_run: MakeRun, make_part: MakePart) -> None:
    never, once = (make_part(tested={"mounts": 3, "P5": count}, hold={"P5": None}) for count in (0, 1))
    assert merged(shards_of(make_run, never, once)).verdict is Verdict.HOLDS
    whole = merged(shards_of(make_run, never, never))
    (failure,) = whole.parts[0].failures
    assert (whole.verdict, failure.judge) == (Verdict.UNDECIDED, "P5")
    assert merged([whole]) == whole


def test_a_merge_knows_what_the_baseline_accepts_of_what_must_hold(make_run: MakeRun, make_part: MakePart) -> None:
    accepted = make_part(tested={"mounts": 1}, hold={"P5": "no workload renames"})
    assert merged(shards_of(make_run, accepted, accepted)).verdict is Verdict.HOLDS
    other = make_part(tested={"mounts": 1}, hold={"P5": None})
    assert merged(shards_of(make_run, accepted, other)).verdict is Verdict.UNDECIDED


def test_shards_of_which_different_things_must_hold_are_not_merged(make_run: MakeRun, make_part: MakePart) -> None:
    with pytest.raises(ValueError, match=r"hold of 'hunt-small on .*' is \['P5'\] and \[\]"):
        merged(shards_of(make_run, make_part(hold={"P5": None}), make_part()))


def test_a_shard_that_tested_nothing_is_a_share_of_a_whole_that_was_tested(
    make_run: MakeRun, make_part: MakePart, make_undecided: MakeFailure
) -> None:
    nothing = make_undecided(judge="", message=UNTESTED)
    empty = make_part(verdict="undecided", tested={"P5": 0}, failures=(nothing,))
    whole = merged(shards_of(make_run, empty, empty, make_part(tested={"P5": 2})))
    assert (whole.verdict, whole.parts[0].failures) == (Verdict.HOLDS, ())
    assert merged(shards_of(make_run, empty, empty)).verdict is Verdict.UNDECIDED


def test_a_shard_that_tested_nothing_stays_open_for_other_reasons(
    make_run: MakeRun, make_part: MakePart, make_undecided: MakeFailure
) -> None:
    failures = (make_undecided("c-00000000000000aa", message=UNTESTED), make_undecided())
    empty = make_part(verdict="undecided", tested={}, failures=failures)
    (part,) = merged(shards_of(make_run, empty, make_part())).parts
    assert (part.verdict, [each.cause for each in part.failures]) == ("undecided", [failures[1].cause])


def test_a_shard_that_was_interrupted_leaves_the_whole_undecided(make_run: MakeRun, make_part: MakePart) -> None:
    first, second = shards_of(make_run, make_part(), make_part())
    whole = merged([first.model_copy(update={"interrupted": True}), second])
    assert (whole.interrupted, whole.verdict) == (True, Verdict.UNDECIDED)
    assert not merged([first, second]).interrupted
