"""What `kernel:NAME` stands for: its base image, and the recorder that both kernels have."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash._core import Recording, write_recording
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.planner import make_plan
from postcrash.harness.examination.recording import AUTO, CRASH_DISK, DM_LOG_WRITES
from postcrash.harness.examination.session import Session
from postcrash.harness.expectations import reference
from postcrash.harness.expectations.difference import DifferenceJudge
from postcrash.harness.expectations.expectation import Expectation
from postcrash.model.judge import Judge
from postcrash.reports.explanation import explanation
from postcrash.store.kernel_build import ComparedWith, KernelBuild
from postcrash.store.records import recording_id
from postcrash.targets import BaseImage, Target, target_named

BASE = "b-0123456789abcdef"
TARGET = target_named("ext4-current")
BUILT = KernelBuild("0" * 64, "stock")


class Here(Session):
    """A session that cannot run anything: the base images that it is asked to make are counted."""

    kernel: Any = SimpleNamespace(label="here", path=Path("here"), engine=None)
    other: Any = SimpleNamespace(label="other", path=Path("other"), engine=None)
    made = 0

    def base(self, _: Target, kernel: Any = None) -> BaseImage:
        self.made += 1
        return BaseImage(Path("made"), f"b-made-{(kernel or self.kernel).label}")

    def guest(self, *_: object) -> str:
        return "guest"

    def build(self, *_: object) -> KernelBuild:
        return BUILT

    def kernel_for(self, *_: object) -> Any:
        return self.other

    def root_of(self, *_: object) -> Path:
        return Path("root")

    def require_programs(self, *_: object) -> None:
        pass


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    monkeypatch.setattr(reference, "settings_for", lambda *_: None)
    having(monkeypatch, "here", "other")
    return Here(tmp_path / "store", explainer=explanation)


def having(monkeypatch: pytest.MonkeyPatch, *labels: str) -> None:
    """Have the kernels with these labels have dm-log-writes, and no others."""
    monkeypatch.setattr(reference, "has_log_writes", lambda kernel: kernel.label in labels)
    monkeypatch.setattr(reference, "lacks_log_writes", lambda kernel: kernel.label not in labels)


def judge_of(here: Here, checker: str, compared: ComparedWith | None = None) -> DifferenceJudge:
    """The judge of a finding whose base image is in the store."""
    path, image = here.store.scratch(), here.store_folder / "image"
    write_recording(path, 64, json.dumps({"base": BASE, "recorder": "crash-disk", "held": None}), [])
    id = recording_id(Recording(path).digest)
    here.store.adopt_recording(path, id)
    image.write_bytes(b"image")
    here.store.keep_base(image, BASE)
    about = {"checker": checker, "reference_name": checker.removeprefix("same-as:"), "compared": compared}
    finding: Any = SimpleNamespace(**about, id="f-0123456789abcdef", recording=id, base=BASE, is_repaired=False)
    with reference.judges_of(here, finding, TARGET, Exploration("cache")) as (judge,):
        assert isinstance(judge, DifferenceJudge)
        return judge


def test_another_kernel_has_the_findings_own_base_image(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(here, "same_kernel", lambda *_: SimpleNamespace(label="here", path=Path("here"), engine=None))
    plan = judge_of(here, "same-as:kernel:other", compared()).reference.plan
    assert (plan.base, here.made) == (BaseImage(here.store.base_path(BASE), BASE), 0)


def test_a_finding_that_does_not_say_what_it_was_compared_with_is_refused(here: Here) -> None:
    """What the name stands for today may be another build, and would never show the difference."""
    with pytest.raises(UsageError, match="nothing says on which build of kernel:other it was compared"):
        judge_of(here, "same-as:kernel:other")


def compared(target: str = "") -> ComparedWith:
    return ComparedWith("UML 6.1.176", "1" * 64, BUILT, target)


def test_a_finding_is_compared_with_the_build_that_it_was_compared_with(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name can stand for another build by now."""
    before = SimpleNamespace(label="UML 6.1.176", path=Path("before"), engine=None)
    having(monkeypatch, "here", before.label)
    asked = ("UML 6.1.176", "1" * 64, BUILT)
    monkeypatch.setattr(here, "same_kernel", lambda *about: before if about == asked else None)
    assert judge_of(here, "same-as:kernel:other", compared()).reference.plan.kernel == before.label


def test_what_a_finding_was_compared_with_can_be_gone(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(here, "same_kernel", lambda *_: None)
    said = r"the kernel other with which it was compared is not here any more: UML 6\.1\.176 \(stock, sha256:0{12}\)"
    with pytest.raises(UsageError, match=said):
        judge_of(here, "same-as:kernel:other", compared())
    with pytest.raises(UsageError, match="the target xfs with which it was compared is not as it was"):
        judge_of(here, "same-as:target:xfs", compared("2" * 64))
    assert judge_of(here, "same-as:target:xfs", compared(target_named("xfs").digest()))


def test_another_target_has_a_base_image_of_its_own(here: Here) -> None:
    plan = judge_of(here, "same-as:target:xfs", compared(target_named("xfs").digest())).reference.plan
    assert (plan.target.name, plan.base.id, here.made) == ("xfs", "b-made-here", 1)


def test_in_a_hunt_another_kernel_has_the_base_image_of_the_kernel_that_is_compared(here: Here) -> None:
    """Each kernel would age an image in its own way, and the finding's image is that of the session's kernel."""
    assert reference.reference_named(here, "kernel:other", TARGET, Exploration()).plan.base.id == "b-made-here"


def recorders(here: Here, asked: str, expected: str = "kernel:other") -> tuple[str, str]:
    """The recorders of the plan whose outcomes are judged, and of the reference's plan."""
    how = Exploration(recorder=asked)
    with reference.opened(here, Expectation.named(expected), TARGET, how) as opened:
        (judge,) = judges = opened.judges(TARGET, how.model)
        assert isinstance(judge, DifferenceJudge)
        plan = make_plan(here, TARGET, judges, (TARGET.recovery(walk=True, fsck=False),), how)
        return plan.how.recorder, judge.reference.plan.how.recorder


@pytest.mark.parametrize(
    ("have", "asked", "used"),
    [
        (("here", "other"), AUTO, AUTO),
        ((), AUTO, AUTO),
        (("here",), AUTO, CRASH_DISK),
        (("other",), AUTO, CRASH_DISK),
        (("here",), CRASH_DISK, CRASH_DISK),
        (("other",), DM_LOG_WRITES, DM_LOG_WRITES),
    ],
)
def test_both_kernels_have_one_recorder(
    here: Here, monkeypatch: pytest.MonkeyPatch, have: tuple[str, ...], asked: str, used: str
) -> None:
    having(monkeypatch, *have)
    assert recorders(here, asked) == (used, used)


def test_the_crash_disk_for_both_kernels_is_told_once(
    here: Here, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reference._tell_recorder.cache_clear()
    recorders(here, AUTO)
    assert capsys.readouterr().err == ""
    having(monkeypatch, "here")
    recorders(here, AUTO)
    recorders(here, AUTO)
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert (
        "only one of here and kernel:other has dm-log-writes: both are recorded on crash disk over virtio-blk" in told
    )


def test_a_reference_without_the_recorder_that_was_asked_for_is_refused(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    having(monkeypatch, "here")
    with pytest.raises(UsageError, match="kernel:other: other has no dm-log-writes, and both kernels need the same"):
        recorders(here, DM_LOG_WRITES)
    assert recorders(here, DM_LOG_WRITES, "target:xfs") == (DM_LOG_WRITES, DM_LOG_WRITES)


def test_without_a_reference_the_recorder_is_the_one_that_was_asked_for(here: Here) -> None:
    judges: tuple[Judge, ...] = Expectation.named("documents").judges(TARGET, "cache")
    recovery = TARGET.recovery(walk=True, fsck=False)
    plans = [make_plan(here, TARGET, judges, (recovery,), Exploration(recorder=asked)) for asked in (AUTO, CRASH_DISK)]
    assert [plan.how.recorder for plan in plans] == [AUTO, CRASH_DISK]


def test_a_target_is_not_compared_with_one_that_is_repaired_otherwise(here: Here) -> None:
    """Each repaired outcome would be one that the other never shows."""
    both = Exploration(recovery="both")
    with pytest.raises(UsageError, match=r"target:btrfs: .* only one of ext4-current and btrfs is repaired"):
        reference.reference_named(here, "target:btrfs", TARGET, both)
    reference.reference_named(here, "target:btrfs", TARGET, Exploration())
    reference.reference_named(here, "target:ext4-writeback", TARGET, both)
