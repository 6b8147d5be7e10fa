"""The mixture of the default hunt, on machines that only pretend."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from postcrash.corpus import for_recovery
from postcrash.harness.examination.exploration import BOTH_DISKS
from postcrash.harness.hunting import hunt as hunts
from postcrash.harness.hunting.default_hunt import DefaultSelection, DefaultSpace
from postcrash.harness.hunting.first_looks import FIRST_LOOKS
from postcrash.harness.hunting.hunt_result import HuntResult
from postcrash.harness.hunting.probes import Plans, Probe
from postcrash.harness.hunting.run_hunt import run_hunt
from postcrash.model import Verdict, Workload
from postcrash.store.store import Store
from postcrash.targets import target_named

from .pretence import CREW, Pretence, Silent, clean, plan, renames_break

EXT4, XFS, NILFS = target_named("ext4-current"), target_named("xfs"), target_named("nilfs2")
SPACE = DefaultSpace(EXT4, tuple(Probe))


def plans(folder: Path) -> Plans:
    walk = plan(folder)
    return {
        Probe.WALK: walk,
        Probe.FSCK: replace(walk, recoveries=(EXT4.recovery(walk=False, fsck=True),)),
        Probe.CRASH: replace(walk, how=replace(walk.how, depth=2)),
    }


def hunted(folder: Path, pretence: Pretence, name: str = "store", **selected: object) -> HuntResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hunts, "examine_all", pretence)
        store = Store(folder / name)
        selection = replace(DefaultSelection(SPACE, limit=120, disks=BOTH_DISKS), **selected)  # type: ignore[arg-type]
        result = run_hunt(selection, plans(folder), CREW, store, Silent())
        store.close()
    return result


def first(count: int, space: DefaultSpace = SPACE) -> Sequence[tuple[Probe, Workload]]:
    return list(islice(space.in_order(), count))


def test_each_source_has_its_turn_soon_and_all_are_run_in_the_end() -> None:
    assert Counter(probe for probe, _ in first(18)) == {Probe.WALK: 16, Probe.FSCK: 1, Probe.CRASH: 1}
    everything = list(SPACE.in_order())
    assert len(everything) == len(SPACE) == sum(SPACE.counts.values())
    assert Counter(probe for probe, _ in everything)[Probe.FSCK] == 100
    names = {workload.name.partition("-")[0] for _, workload in everything[:20]}
    assert {"full", "ace"} < names
    assert {each.name for each in SPACE.corpus} <= {workload.name for _, workload in everything}


def test_the_order_is_the_same_each_time() -> None:
    assert first(200) == first(200, DefaultSpace(EXT4, tuple(Probe)))


def test_the_corpus_begins_with_recovery_and_goes_on_with_what_found_bugs() -> None:
    corpus = {each.name for each in SPACE.corpus}
    order = list(dict.fromkeys(workload.name for _, workload in SPACE.in_order() if workload.name in corpus))
    recovery = {each.name for each in for_recovery()}
    assert set(order[: len(recovery)]) == recovery
    assert max(map(order.index, ("generic-640", "generic-784"))) < len(order) / 2


def test_the_corpus_is_that_of_the_file_system() -> None:
    assert any(workload.name.startswith("xfs-") for workload in DefaultSpace(XFS, [Probe.WALK]).corpus)
    assert not any(workload.name.startswith("xfs-") for workload in SPACE.corpus)


def test_what_is_walked_is_run_on_both_disks_and_the_rest_on_one(tmp_path: Path) -> None:
    pretence = Pretence(clean)
    result = hunted(tmp_path, pretence)
    probed = Counter(probe for probe, _ in first(120))
    walked = 120 - result.alike - result.same - probed[Probe.FSCK] - probed[Probe.CRASH]
    looks = {
        FIRST_LOOKS[Probe.WALK]: 2 * walked,
        **{FIRST_LOOKS[each]: probed[each] for each in (Probe.FSCK, Probe.CRASH)},
    }
    assert Counter(pretence.looks) == looks
    assert result.run == 120 - result.alike - result.same
    assert result.verdict is Verdict.HOLDS
    assert hunted(tmp_path, again := Pretence(clean)) == result
    assert again.ran == []


def test_each_probe_has_a_first_look_of_its_own(tmp_path: Path) -> None:
    pretence = Pretence(clean)
    hunted(tmp_path, pretence)
    assert set(pretence.looks) == set(FIRST_LOOKS.values())


def test_shards_together_run_what_one_hunt_runs(tmp_path: Path) -> None:
    whole = Pretence(renames_break)
    result = hunted(tmp_path, whole)
    parts = [Pretence(renames_break) for _ in range(3)]
    shards = [hunted(tmp_path, part, f"s{n}", shard=(n + 1, 3)) for n, part in enumerate(parts)]
    assert sorted(name for part in parts for name in part.ran) == sorted(whole.ran)
    assert sum(shard.run for shard in shards) == result.run
    assert {cause for shard in shards for cause in shard.groups} == set(result.groups)
