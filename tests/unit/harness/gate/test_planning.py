"""What the parts of a gate's file stand for: on which targets, kernels and models, and with which workloads."""

from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from postcrash.harness.errors import HarnessError, UsageError
from postcrash.harness.examination.session import Session
from postcrash.harness.expectations.contract import Contract, HeldProperty
from postcrash.harness.gate import planning as module
from postcrash.harness.gate.configuration import load
from postcrash.harness.gate.gate import Gate, run_gate
from postcrash.harness.gate.planning import PlannedPart, Planner, labelled
from postcrash.harness.hunting.list_hunt import ListSelection
from postcrash.harness.hunting.random_hunt import RandomSelection
from postcrash.harness.hunting.space_hunt import Selection, Shard
from postcrash.properties import property_named
from postcrash.targets import TARGETS, Target


class NamedKernel(str):
    """A kernel that is only a name: `patched-6.1` is another build of 6.1, and `same-6.1` has the content of `6.1`."""

    name = ""

    @property
    def label(self) -> str:
        return f"UML {self.rpartition('-')[2]}"


@pytest.fixture(autouse=True)
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel called old has only ext4; each other one has everything."""

    def kernels_for(session: object, name: str | None, targets: Iterable[Target]) -> dict[Target, Any]:
        kernel = NamedKernel(name or "default")
        return {target: None if name == "old" and target.fstype != "ext4" else kernel for target in targets}

    monkeypatch.setattr(module, "kernels_for", kernels_for)
    monkeypatch.setattr(Session, "guest", lambda _, kernel: kernel.removeprefix("same-"))


def planned(folder: Path, text: str, shard: Shard = (1, 1), name: str = "a") -> list[PlannedPart]:
    file = folder / "postcrash.toml"
    file.write_text(text)
    return list(Planner(Session(folder / "store"), load(file), file, shard).parts(name))


def texts(part: PlannedPart) -> list[str]:
    workloads = part.workloads
    if isinstance(workloads, Selection):
        return [workloads.space.whole(number).to_text() for number in workloads.numbers()]
    assert isinstance(workloads, ListSelection)
    return [workload.to_text() for workload in workloads.workloads]


def test_each_target_kernel_and_model_is_a_part(tmp_path: Path) -> None:
    text = (
        'targets = ["ext4-current", "xfs"]\nkernels = ["old", "new"]\nmodels = ["cache", "torn"]\n[parts.a]\nhunt = 1\n'
    )
    parts = planned(tmp_path, text)
    assert [(each.target.name, each.kernel_name, each.kernel, each.how.model) for each in parts] == [
        *[("ext4-current", "old", "old", model) for model in ("cache", "torn")],
        *[("xfs", "old", None, model) for model in ("cache", "torn")],
        *[("ext4-current", "new", "new", model) for model in ("cache", "torn")],
        *[("xfs", "new", "new", model) for model in ("cache", "torn")],
    ]


def test_all_targets_and_own_ones(tmp_path: Path) -> None:
    assert len(planned(tmp_path, 'targets = ["all"]\n[parts.a]\nhunt = 1\n')) == len(TARGETS)
    (tmp_path / "own.toml").write_text('fstype = "ext4"\nmkfs = ["/sbin/mke2fs", "-t", "ext4"]\n')
    with pytest.raises(HarnessError, match=r"own\.toml"):
        planned(tmp_path, 'targets = ["own.toml"]\n[parts.a]\nhunt = 1\n')


SECTIONS = ("hunt = 1", "hunt = 1\nlimit = 7", 'properties = ["P1", "P5"]', 'corpus = "ops"')


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_shards_are_the_whole_and_have_nothing_twice(tmp_path: Path, section: str, count: int) -> None:
    (tmp_path / "ops").mkdir()
    for number in range(3):
        (tmp_path / "ops" / f"{number}.ops").write_text(f"creat a{number}\n")
    text = f'targets = ["btrfs"]\n[parts.a]\n{section}\n'
    whole = texts(planned(tmp_path, text)[0])
    shards = [texts(planned(tmp_path, text, (number, count))[0]) for number in range(1, count + 1)]
    assert sorted(chain(*shards)) == sorted(whole)
    assert len(whole) == 7 or "limit" not in section


def test_shards_of_random_workloads_draw_others(tmp_path: Path) -> None:
    text = 'targets = ["btrfs"]\n[parts.a]\nrandom = 7\nseed = 3\n'
    chosen = [planned(tmp_path, text, (number, 2))[0].workloads for number in (1, 2)]
    assert all(isinstance(each, RandomSelection) for each in chosen)
    assert sum(each.count or 0 for each in chosen) == 7
    assert len({each.seed for each in chosen if isinstance(each, RandomSelection)}) == 2


def test_workloads_of_properties_are_their_families(tmp_path: Path) -> None:
    (part,) = planned(tmp_path, 'targets = ["btrfs"]\n[parts.a]\nproperties = ["P5"]\n')
    family = [workload.with_tail(checkpoint=False).to_text() for workload in property_named("P5").workloads()]
    assert texts(part) == family


def test_workloads_that_are_about_other_file_systems_are_left_out(tmp_path: Path) -> None:
    for name in ("all", "xfs-1"):
        (tmp_path / f"{name}.ops").write_text("creat a\n")
    parts = planned(tmp_path, 'targets = ["btrfs", "xfs"]\n[parts.a]\ncorpus = "."\n')
    assert [each.workloads.count for each in parts] == [1, 2]


def test_one_file_is_a_corpus_too(tmp_path: Path) -> None:
    (tmp_path / "one.ops").write_text("creat a\n")
    assert planned(tmp_path, 'targets = ["xfs"]\n[parts.a]\ncorpus = "one.ops"\n')[0].workloads.count == 1


def test_a_folder_without_a_workload_for_a_target(tmp_path: Path) -> None:
    (tmp_path / "xfs-1.ops").write_text("creat a\n")
    with pytest.raises(UsageError, match=r"no workload of \. is about btrfs"):
        planned(tmp_path, 'targets = ["xfs", "btrfs"]\n[parts.a]\ncorpus = "."\n')


@pytest.mark.parametrize("content", [None, "creat", "unlink a\n"])
def test_workloads_that_cannot_be_run(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "one.ops").write_text(content)
    with pytest.raises(UsageError, match=r"one\.ops"):
        planned(tmp_path, 'targets = ["xfs"]\n[parts.a]\ncorpus = "one.ops"\n')


def test_disks_budgets_and_kinds_of_recovery(tmp_path: Path) -> None:
    text = 'targets = ["xfs"]\nfsck = true\ndisks = "one"\n[parts.a]\nhunt = 1\nbudget = "7,3s"\n[parts.b]\nhunt = 1\n'
    (first,), (second,) = planned(tmp_path, text), planned(tmp_path, text + 'disks = "both"\nfsck = false\n', name="b")
    assert (first.how.budget.recoveries, first.how.budget.seconds) == (7, 3)
    assert (first.workloads.disks, second.workloads.disks) == ((None,), (None, 1))
    assert (set(first.kinds), set(second.kinds)) == ({"walk", "fsck"}, {"walk"})


def test_an_application_and_its_variants(tmp_path: Path) -> None:
    (tmp_path / "app.toml").write_text('run = "echo {n}"\ncheck = "true"\n[parameters]\nn = ["1", "2"]\n')
    text = 'targets = ["xfs"]\n[parts.a]\napplication = "app.toml[n=2]"\n'
    text += '[parts.b]\napplication = "app.toml"\nevery = true\n'
    (one,), both = planned(tmp_path, text), planned(tmp_path, text, name="b")
    assert (one.name, one.workloads.count) == ("a", 1)
    assert isinstance(one.workloads, ListSelection) and one.workloads.one_look
    assert "echo 2" in texts(one)[0]
    assert [each.name for each in both] == ["b: app[n=1]", "b: app[n=2]"]


def test_an_application_is_recovered_as_its_part_or_the_gate_says(tmp_path: Path) -> None:
    (tmp_path / "app.toml").write_text('run = "echo"\ncheck = "true"\n')
    text = 'targets = ["ext4-current"]\nrecovery = "both"\n[parts.a]\napplication = "app.toml"\n'
    text += '[parts.b]\napplication = "app.toml"\nrecovery = "repair"\n'
    assert [planned(tmp_path, text, name=name)[0].how.recovery for name in "ab"] == ["both", "repair"]


def test_the_first_shard_runs_an_application(tmp_path: Path) -> None:
    (tmp_path / "app.toml").write_text('run = "echo"\ncheck = "true"\n')
    text = 'targets = ["xfs"]\n[parts.a]\napplication = "app.toml"\n'
    assert [planned(tmp_path, text, (number, 2))[0].workloads.count for number in (1, 2)] == [1, 0]


def test_groups_of_properties_that_must_hold(tmp_path: Path) -> None:
    (part,) = planned(tmp_path, 'targets = ["xfs"]\nhold = ["hotdep13"]\n[parts.a]\nhunt = 1\n')
    assert part.hold == ("P1", "P2", "P2-null", "P3", "P4", "P5")


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ('application = "replace-shell"\nhold = ["P5"]', "leave hold out"),
        ('application = "replace-shell"\nexpect = "documents"', "leave expect out"),
        ('application = "no-such"', "no-such"),
        ('application = "replace-shell[x=1]"', "x"),
        ('corpus = "."', r"has no file whose name ends in \.ops"),
        ('hunt = 1\ntargets = ["ext5"]', "ext5"),
    ],
)
def test_names_that_stand_for_nothing(tmp_path: Path, section: str, said: str) -> None:
    with pytest.raises(HarnessError, match=said):
        planned(tmp_path, f'targets = ["xfs"]\n[parts.a]\n{section}\n')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('targets = ["ext5"]\n[parts.a]\nhunt = 1', r"postcrash\.toml:1: targets: unknown target 'ext5'"),
        ('targets = ["xfs"]\n[parts.a]\nhunt = 1\ntargets = ["ext5"]', r":4: parts\.a\.targets: unknown target 'ext5'"),
        ('targets = ["xfs"]\n[parts.a]\ncorpus = "absent"', r":3: parts\.a\.corpus: .*absent: No such file"),
        (
            'targets = ["xfs"]\n[parts.a]\ncorpus = "."',
            r":3: parts\.a\.corpus: .* has no file whose name ends in \.ops",
        ),
        ('targets = ["xfs"]\n[parts.a]\napplication = "sqlit"', r":3: parts\.a\.application: unknown application"),
        ('targets = ["xfs"]\nexpect = "target:ext5"\n[parts.a]\nhunt = 1', ":2: expect: unknown target 'ext5'"),
        (
            'targets = ["xfs"]\n[parts.a]\nhunt = 1\nexpect = "kernel:no"',
            ":4: parts.a.expect: no kernel is called 'no'",
        ),
        (
            'targets = ["xfs"]\nexpect = "target:btrfs"\n[parts.a]\nhunt = 1\nhold = ["P5"]',
            ":2: expect: target:btrfs compares trees only: leave hold out",
        ),
        (
            'targets = ["xfs"]\nexpect = "target:btrfs"\n[parts.a]\nhunt = 1\ndepth = 2',
            ":2: expect: target:btrfs compares first recoveries only: leave depth out",
        ),
    ],
)
def test_an_error_names_the_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        planned(tmp_path, text)


def test_a_kernel_that_is_not_there_is_an_error_of_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "kernels_for", lambda session, name, targets: list(session.kernels_called(name)))
    with pytest.raises(UsageError, match=r":4: parts\.a\.kernels: no kernel of version 9\.9"):
        planned(tmp_path, 'targets = ["xfs"]\n[parts.a]\nhunt = 1\nkernels = ["9.9"]\n')


def test_a_kernel_that_has_two_names_is_an_error_of_their_line(tmp_path: Path) -> None:
    text = 'targets = ["xfs", "ext4-current"]\n[parts.a]\nhunt = 1\nkernels = ["old", "6.1", "same-6.1"]\n'
    said = r":4: parts\.a\.kernels: '6\.1' and 'same-6\.1' are the same UML 6\.1: leave one out"
    with pytest.raises(UsageError, match=said):
        planned(tmp_path, text)
    assert len(planned(tmp_path, text.replace(', "same-6.1"', ""))) == 4


def test_two_builds_of_one_version_are_two_kernels(tmp_path: Path) -> None:
    text = 'targets = ["xfs"]\n[parts.a]\nhunt = 1\nkernels = ["6.1", "patched-6.1", "7.2"]\n'
    parts = labelled(planned(tmp_path, text))
    assert [each.key[2] for each in parts] == ["UML 6.1 (6.1)", "UML 6.1 (patched-6.1)", "UML 7.2"]
    assert [each.key[2] for each in labelled(parts[1:])] == ["UML 6.1", "UML 7.2"]


def test_two_targets_of_one_name(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.toml").write_text(f'name = "own"\nlike = "xfs"\ntitle = "{name}"\n')
    with pytest.raises(UsageError, match=r":1: targets: 2 targets are called own"):
        planned(tmp_path, 'targets = ["one.toml", "two.toml"]\n[parts.a]\nhunt = 1\n')


def contract(folder: Path, model: str = "cache", name: str = "P5") -> None:
    """Write held.json, which says that the property `name` held on xfs."""
    held = {"xfs": {name: HeldProperty(states="1", workloads=1, recoveries=1)}}
    (folder / "held.json").write_text(
        Contract(format="postcrash contract 1", kernel="UML 6.1", model=model, held=held).to_text()
    )


@pytest.mark.parametrize(
    ("about", "section", "said"),
    [
        ({}, 'targets = ["btrfs"]', r":2: expect: .*held\.json says nothing about btrfs; it has xfs"),
        ({}, 'models = ["torn"]', r":2: expect: .*held\.json is about device model cache, not torn"),
        ({"name": "P77"}, "", r":2: expect: .*held\.json: no property is called 'P77'"),
    ],
)
def test_a_contract_that_does_not_fit_is_an_error_before_anything_runs(
    tmp_path: Path, about: dict[str, Any], section: str, said: str
) -> None:
    contract(tmp_path, **about)
    with pytest.raises(UsageError, match=said):
        planned(tmp_path, f'targets = ["xfs"]\nexpect = "contract:held.json"\n[parts.a]\nhunt = 1\n{section}\n')


def test_a_contract_need_not_be_about_what_no_kernel_can_run_and_about_applications(tmp_path: Path) -> None:
    contract(tmp_path)
    (tmp_path / "app.toml").write_text('run = "echo"\ncheck = "true"\n')
    whole = 'expect = "contract:held.json"\n[parts.a]\n'
    assert len(planned(tmp_path, f'targets = ["xfs"]\n{whole}hunt = 1\n')) == 1
    assert len(planned(tmp_path, f'targets = ["btrfs"]\nkernels = ["old"]\n{whole}hunt = 1\n')) == 1
    assert len(planned(tmp_path, f'targets = ["btrfs"]\n{whole}application = "app.toml"\n')) == 1


def test_a_reference_that_cannot_run_a_target_is_an_error_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "kernels_called", lambda session, name: iter([name]))
    monkeypatch.setattr(Session, "kernel_for", lambda session, name, target: None)
    with pytest.raises(UsageError, match=r":2: expect: no kernel called 5\.4 can run target xfs"):
        planned(tmp_path, 'targets = ["xfs"]\nexpect = "kernel:5.4"\n[parts.a]\nhunt = 1\n')


@pytest.mark.parametrize("length", [1, 300])
def test_a_corpus_that_cannot_be_there(tmp_path: Path, length: int) -> None:
    with pytest.raises(UsageError, match=r":3: parts\.a\.corpus: .*(No such file|too long)"):
        planned(tmp_path, f'targets = ["xfs"]\n[parts.a]\ncorpus = "{"x" * length}"\n')


def test_a_reason_without_words_is_refused_before_anything_runs(tmp_path: Path) -> None:
    nobody: Any = None
    with pytest.raises(UsageError, match="--accept"):
        run_gate(Gate(tmp_path / "absent.toml", accept="  "), Session(tmp_path / "store"), nobody)


def test_files_of_kernels_are_seen_from_the_file(tmp_path: Path) -> None:
    text = 'targets = ["xfs"]\nkernels = ["./linux", "6.1"]\n[parts.a]\nhunt = 1\n'
    parts = planned(tmp_path, text)
    kernels: list[Any] = [each.kernel for each in parts]  # the fixture has names in their place
    assert kernels == [str(tmp_path / "linux"), "6.1"]
    assert [each.kernel_name for each in parts] == ["./linux", "6.1"]
