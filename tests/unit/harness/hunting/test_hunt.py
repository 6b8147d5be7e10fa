"""What a hunt runs, what it takes from the store, and how findings are grouped. The machines only pretend."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from errno import EOPNOTSUPP
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest

from postcrash.harness.budget import Budget
from postcrash.harness.errors import OperationFailedError
from postcrash.harness.examination.campaign import FinishedPlan
from postcrash.harness.examination.result import Examination, Ruling
from postcrash.harness.hunting import hunt as hunts
from postcrash.harness.hunting.first_looks import FIRST_LOOK, FIRST_LOOKS
from postcrash.harness.hunting.hunt_result import HuntResult
from postcrash.harness.hunting.probes import Probe
from postcrash.harness.hunting.run_hunt import run_hunt
from postcrash.harness.hunting.space_hunt import Selection, spread
from postcrash.model import NO_TIME_FOR_MORE_LOOKS, Verdict, Workload
from postcrash.store.records import Finding
from postcrash.store.store import Store

from .pretence import CREW, DEFAULT, SPACE, Behaviour, Pretence, Run, Silent, clean, plan, renames_break, walks


def test_nothing_found_holds_and_is_not_run_again(run: Run) -> None:
    first, ran = run(clean)
    assert first.verdict is Verdict.HOLDS
    assert (first.run + first.same + first.alike, first.run) == (328, len(ran))
    assert (first.counts["covered"], first.counts["recoveries"]) == (4 * first.run, first.run)
    again, ran = run(clean)
    assert (again, ran) == (first, [])


def test_a_hunt_counts_where_each_judge_was_put_to_the_test(run: Run) -> None:
    tested, _ = run(clean, sample=5)
    assert (tested.verdict, tested.tested) == (Verdict.HOLDS, {"durability": tested.run})


def test_a_hunt_in_which_no_premise_was_true_is_undecided(run: Run) -> None:
    vacuous, _ = run(clean, relevant=False)
    assert (vacuous.verdict, vacuous.tested, vacuous.undecided) == (Verdict.UNDECIDED, {}, {})
    again, ran = run(clean)
    assert (again, ran) == (vacuous, [])


def test_a_clean_run_leaves_counts_only(run: Run, tmp_path: Path) -> None:
    run(clean)
    assert list((tmp_path / "store/recordings").iterdir()) == []
    assert all(row["certificates"] == [] for row in Store(tmp_path / "store").runs())


def test_shards_are_all_of_it_and_share_nothing() -> None:
    shards = [Selection(SPACE, shard=(i, 5)).numbers() for i in range(1, 6)]
    assert sorted(number for shard in shards for number in shard) == list(range(328))


@pytest.mark.parametrize("selected", [{}, {"symmetry": False}, {"sample": 100}])
def test_all_shards_run_what_a_hunt_without_shards_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, selected: dict[str, Any]
) -> None:
    """Also of workloads that are alike, which may be in different shards. Each shard has a store of its own."""

    def ran(shard: tuple[int, int]) -> HuntResult:
        pretence = Pretence(renames_break)
        monkeypatch.setattr(hunts, "examine_all", pretence)
        selection = Selection(SPACE, shard=shard, **selected)
        result = run_hunt(selection, walks(tmp_path), CREW, Store(tmp_path / f"{shard}"), Silent())
        assert result.run + result.same + result.alike == selection.count
        names.update(pretence.ran)
        return result

    names: Counter[str] = Counter()
    whole = ran((1, 1))
    expected, names = names, Counter()
    shards = [ran((number, 4)) for number in range(1, 5)]
    assert names == expected
    (group,) = whole.groups.values()
    assert sum(each.count for shard in shards for each in shard.groups.values()) == group.count


def test_a_sample_is_drawn_by_its_seed() -> None:
    drawn = Selection(SPACE, sample=20, seed=3).numbers()
    assert drawn == Selection(SPACE, sample=20, seed=3).numbers() != Selection(SPACE, sample=20, seed=4).numbers()
    assert len(set(drawn)) == 20
    assert Selection(SPACE, sample=1000).numbers() == range(328)


def test_of_workloads_that_are_alike_one_is_run(run: Run) -> None:
    reduced, _ = run(clean)
    everything, ran = run(clean, symmetry=False)
    assert reduced.alike > 0
    assert everything.alike == 0
    assert everything.run == reduced.run + reduced.alike
    assert len(ran) == reduced.alike


def test_findings_of_one_cause_are_one_group_of_which_the_smallest_is_kept(run: Run, tmp_path: Path) -> None:
    result, _ = run(renames_break, symmetry=False)
    (group,) = result.groups.values()
    assert result.verdict is Verdict.VIOLATED
    assert (group.cause.checker, group.cause.message) == ("durability", "PATH is missing")
    store = Store(tmp_path / "store")
    kept = store.finding(group.finding)
    sizes = [len(found.workload_text.splitlines()) for found in store.findings()]
    assert len(kept.workload_text.splitlines()) == min(sizes)
    assert len(sizes) < group.count
    assert all(store.recording_path(found.recording).exists() for found in store.findings())


def test_groups_come_from_the_store_too(run: Run) -> None:
    first, _ = run(renames_break)
    again, ran = run(renames_break)
    assert (again.groups, ran) == (first.groups, [])


def test_what_another_hunt_did_not_keep_is_run_again(run: Run, tmp_path: Path) -> None:
    whole, _ = run(renames_break, symmetry=False)
    (group,) = whole.groups.values()
    second = next(number for number in range(group.size[1] + 1, 328) if renames_break(SPACE[number]))
    part, ran = run(renames_break, symmetry=False, shard=(second + 1, 328))
    (alone,) = part.groups.values()
    assert ran == [SPACE[second].name]
    assert Store(tmp_path / "store").finding(alone.finding).workload_name == SPACE[second].name


def test_the_first_finding_of_each_group_is_told_at_once_and_can_be_looked_up_then(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")

    class Looking(Silent):
        def found(self, finding: Finding) -> None:
            super().found(finding)
            assert store.finding(finding.id).message == finding.message

    progress = Looking()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hunts, "examine_all", Pretence(renames_break))
        result = run_hunt(Selection(SPACE), walks(tmp_path), CREW, store, progress)
    (group,) = result.groups.values()
    assert len(progress.told) == 1 < group.count


def test_what_there_was_no_time_for_is_counted_and_nothing_holds(run: Run) -> None:
    begun = count()

    def slow(_workload: Workload) -> list[str]:
        if next(begun) == 7:
            raise TimeoutError
        return []

    short, ran = run(slow)
    assert short.verdict is Verdict.UNDECIDED
    assert short.not_run == 328 - short.run - short.same - short.alike > 300
    assert (len(ran), short.run, short.interrupted) == (short.run + 1, short.run, False)
    whole, more = run(clean)
    assert (whole.verdict, whole.not_run) == (Verdict.HOLDS, 0)
    assert (len(more), more[0]) == (whole.run - short.run, ran[-1])


def test_no_workload_is_begun_when_the_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretence = Pretence(clean)
    monkeypatch.setattr(hunts, "examine_all", pretence)
    result = run_hunt(Selection(SPACE), walks(tmp_path), CREW, Store(tmp_path / "store"), Silent(), until=0.0)
    assert (pretence.ran, result.not_run, result.verdict) == ([], 328, Verdict.UNDECIDED)


def test_an_interrupted_hunt_says_what_it_had_found(run: Run) -> None:
    begun = count()

    def interrupted(workload: Workload) -> list[str]:
        if next(begun) == 200:
            raise KeyboardInterrupt
        return renames_break(workload)

    part, _ = run(interrupted, symmetry=False)
    assert (part.interrupted, part.verdict, len(part.groups)) == (True, Verdict.VIOLATED, 1)
    assert part.not_run == 328 - part.run - part.same > 0
    whole, _ = run(renames_break, symmetry=False)
    fresh, _ = run(renames_break, symmetry=False)
    assert (whole, whole.interrupted, whole.not_run) == (fresh, False, 0)


class Slow(Pretence):
    """Every third workload has more crash states than a first look covers."""

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__(behaviour)
        self.states = lambda workload: 4 if int(workload.name[-3:]) % 3 else 1000


def looked(
    folder: Path,
    pretence: Pretence,
    store: str = "store",
    budget: Budget = DEFAULT,
    enough: int | None = FIRST_LOOK,
) -> HuntResult:
    """A hunt whose workloads get a first look, unless the budget is no more than that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hunts, "examine_all", pretence)
        kept, asked = Store(folder / store), replace(plan(folder), enough=enough)
        asked = replace(asked, how=replace(asked.how, budget=budget))
        try:
            return run_hunt(Selection(SPACE), {Probe.WALK: asked}, CREW, kept, Silent())
        finally:
            kept.close()


def test_each_workload_gets_a_first_look_before_any_gets_a_second_one(tmp_path: Path) -> None:
    pretence = Slow(clean)
    result = looked(tmp_path, pretence)
    first = pretence.looks.count(FIRST_LOOK)
    assert pretence.looks == [FIRST_LOOK] * first + [None] * (len(pretence.ran) - first)
    assert len(set(pretence.ran[:first])) == first == result.run
    assert {int(name[-3:]) % 3 for name in pretence.ran[first:]} == {0}
    assert (result.verdict, result.counts["covered"]) == (Verdict.HOLDS, result.counts["states"])
    assert looked(tmp_path, again := Slow(clean)) == result
    assert again.ran == []


def test_the_same_is_found_without_first_looks(tmp_path: Path) -> None:
    twice = looked(tmp_path, pretence := Slow(renames_break))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FIRST_LOOKS, Probe.WALK, 20_000)
        once = looked(tmp_path, Slow(renames_break), "other")
    assert (twice.groups.keys(), twice.run, twice.tested) == (once.groups.keys(), once.run, once.tested)
    assert twice.cut_short == once.cut_short > 0
    assert twice.verdict is once.verdict is Verdict.VIOLATED
    second = [name for name, look in zip(pretence.ran, pretence.looks, strict=True) if look is None]
    assert second and not any(renames_break(SPACE.whole(int(name[-3:]))) for name in second)


def test_without_time_for_second_looks_the_first_ones_count_and_are_not_made_again(tmp_path: Path) -> None:
    begun = count()

    def over(_workload: Workload) -> list[str]:
        if next(begun) == 300:
            raise TimeoutError
        return []

    short = looked(tmp_path, pretence := Slow(over))
    assert pretence.looks[-1] is None
    assert (short.verdict, short.not_run) == (Verdict.UNDECIDED, 0)
    assert {each.words for each in short.open_questions()} == {NO_TIME_FOR_MORE_LOOKS}
    assert short.has_more_to_do and short.first_looks == sum(short.undecided.values())
    whole = looked(tmp_path, rest := Slow(clean))
    assert (whole.verdict, set(rest.looks), whole.run) == (Verdict.HOLDS, {None}, short.run)
    assert (short.first_looks, whole.has_more_to_do) == (len(rest.ran), False)


def test_violated_workloads_that_are_explored_to_their_end_do_not_keep_the_others_waiting(tmp_path: Path) -> None:
    """A gate names every cause, so no violation is enough. What a first look found counts though the time is over."""
    once = looked(tmp_path, Pretence(renames_break), "other", enough=None)
    begun = count()

    def over(workload: Workload) -> list[str]:
        if next(begun) == 300:
            raise TimeoutError
        return renames_break(workload)

    short = looked(tmp_path, pretence := Slow(over), enough=None)
    first = pretence.looks.count(FIRST_LOOK)
    assert pretence.looks[:first] == [FIRST_LOOK] * first and len(set(pretence.ran[:first])) == first
    assert (short.verdict, short.groups, short.not_run) == (Verdict.VIOLATED, once.groups, 0)
    assert {each.words for each in short.open_questions()} == {NO_TIME_FOR_MORE_LOOKS}
    whole = looked(tmp_path, rest := Slow(renames_break), enough=None)
    assert (whole.groups, whole.run, whole.has_more_to_do) == (once.groups, once.run, False)
    assert (set(rest.looks), len(rest.ran)) == ({None}, short.first_looks)
    assert looked(tmp_path, again := Slow(renames_break), enough=None) == whole
    assert again.ran == []


def test_what_a_first_look_kept_is_kept_by_the_second_one_too(tmp_path: Path) -> None:
    """A smaller workload may have come in between. Without it, the same command would run the workload again."""
    whole = looked(tmp_path, Slow(renames_break), enough=None)
    assert whole.groups
    assert looked(tmp_path, again := Slow(renames_break), enough=None) == whole
    assert again.ran == []


def test_the_results_of_a_hunt_with_a_small_budget_are_no_first_looks(tmp_path: Path) -> None:
    """They are whole: their findings and refusals would be forgotten if the time ended before the second looks."""

    def refuses_links(workload: Workload) -> list[str] | OperationFailedError:
        words = {operation.word for operation in workload.operations}
        return OperationFailedError("no", "link", EOPNOTSUPP) if "link" in words else renames_break(workload)

    def over(_workload: Workload) -> list[str]:
        raise TimeoutError

    small = looked(tmp_path, Pretence(refuses_links), budget=replace(DEFAULT, recoveries=FIRST_LOOK))
    assert (small.verdict, bool(small.lacking)) == (Verdict.VIOLATED, True)
    assert looked(tmp_path, Pretence(over)).verdict is Verdict.UNDECIDED


def test_a_hunt_that_left_out_crash_states_does_not_hold() -> None:
    whole = HuntResult(run=1, tested=Counter(durability=1), counts=Counter(states=5, covered=5))
    assert whole.verdict is Verdict.HOLDS
    for left_out in ("states", "states_within"):
        assert replace(whole, counts=whole.counts + Counter({left_out: 1})).verdict is Verdict.UNDECIDED


def test_what_varied_in_a_first_look_leaves_the_hunt_undecided(tmp_path: Path) -> None:
    class Varying(Slow):
        def __call__(self, *asked: Any, **more: Any) -> Iterator[FinishedPlan]:
            for done in super().__call__(*asked, **more):
                if isinstance(done.result, Examination) and done.plan.first_look == FIRST_LOOK:
                    done.result.varying.append("two recoveries of one crash state differ")
                yield done

    result = looked(tmp_path, Varying(clean))
    assert result.verdict is Verdict.UNDECIDED
    assert sum(result.undecided.values()) > 0


class Unsure(Pretence):
    """`left_open` says what judges cannot tell of a finished plan."""

    def __init__(self, left_open: Callable[[FinishedPlan], dict[str, Ruling]]) -> None:
        super().__init__(clean)
        self._left_open = left_open

    def __call__(self, *asked: Any, **more: Any) -> Iterator[FinishedPlan]:
        for done in super().__call__(*asked, **more):
            assert isinstance(done.result, Examination)
            done.result.rulings |= self._left_open(done)
            yield done


def test_what_other_judges_leave_open_on_the_other_disk_counts_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def left_open(done: FinishedPlan) -> dict[str, Ruling]:
        names = ("a", "b") if done.plan.how.held else ("a",)
        return {name: Ruling(Verdict.UNDECIDED, relevant=True, reason="cannot tell") for name in names}

    monkeypatch.setattr(hunts, "examine_all", Unsure(left_open))
    result = run_hunt(
        Selection(SPACE, disks=(None, 1), sample=3),
        walks(tmp_path),
        CREW,
        Store(tmp_path / "store"),
        Silent(),
    )
    assert result.undecided == {"a: cannot tell": 3, "a, b: cannot tell": 3}


def test_what_is_undecided_is_told_as_it_was_said_of_the_smallest_workload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers make no other question. Which crash interval was covered how far is not told at all."""

    def left_open(done: FinishedPlan) -> dict[str, Ruling]:
        ruling = Ruling()
        ruling.undecided(f"operation {1000 - done.number}: cannot tell")
        ruling.undecided(f"crash interval {done.number}: 1 of 2^{done.number} crash states; too large")
        return {"a": ruling}

    monkeypatch.setattr(hunts, "examine_all", Unsure(left_open))
    result = run_hunt(Selection(SPACE, sample=9), walks(tmp_path), CREW, Store(tmp_path / "store"), Silent())
    first, second = result.open_questions()
    assert (first.pattern, first.workloads) == ("operation N: cannot tell", 9)
    _, smallest = min((len(SPACE.whole(each).operations), each) for each in Selection(SPACE, sample=9).numbers())
    assert first.words == f"operation {1000 - smallest}: cannot tell"
    assert second.words == "crash states were left out: too large"


@pytest.mark.parametrize("size", [1, 2, 3, 12, 328, 1266, 3798])
def test_each_beginning_is_spread_over_the_whole(size: int) -> None:
    order = list(spread(size))
    assert sorted(order) == list(range(size))
    for length in (5, 21, 89):
        if length < size:
            places = sorted(order[:length])
            assert max(after - before for before, after in pairwise(places)) < 4 * size / length
