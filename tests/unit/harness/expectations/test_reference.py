"""The kernel that a finding is compared with has the finding's base image: no mkfs is run to see it again."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash._core import Recording, write_recording
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.expectations import reference
from postcrash.harness.expectations.difference import DifferenceJudge
from postcrash.harness.session import Session
from postcrash.reports.store.records import recording_id
from postcrash.targets import BaseImage, target_named

BASE = "b-0123456789abcdef"
TARGET = target_named("ext4-current")


class Here(Session):
    """A session that cannot run anything: the base images that it is asked to make are counted."""

    kernel: Any = SimpleNamespace(label="here", path=Path("here"), engine=None)
    made = 0

    def base(self, *_: object) -> BaseImage:
        self.made += 1
        return BaseImage(Path("made"), "b-made")

    def guest(self, *_: object) -> str:
        return "guest"

    def kernel_for(self, *_: object) -> Any:
        return self.kernel

    def root_of(self, *_: object) -> Path:
        return Path("root")

    def require_programs(self, *_: object) -> None:
        pass


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    monkeypatch.setattr(reference, "settings_for", lambda *_: None)
    return Here(tmp_path / "store")


def judge_of(here: Here, checker: str) -> DifferenceJudge:
    """The judge of a finding whose base image is in the store."""
    path, image = here.store.scratch(), here.store_folder / "image"
    write_recording(path, 64, json.dumps({"base": BASE}), [])
    id = recording_id(Recording(path).digest)
    here.store.adopt_recording(path, id)
    image.write_bytes(b"image")
    here.store.keep_base(image, BASE)
    finding: Any = SimpleNamespace(checker=checker, recording=id, base=BASE, is_repaired=False)
    with reference.judges_of(here, finding, TARGET, Exploration("cache")) as (judge,):
        assert isinstance(judge, DifferenceJudge)
        return judge


def test_another_kernel_has_the_findings_own_base_image(here: Here) -> None:
    plan = judge_of(here, "same-as:kernel:other").reference.plan
    assert (plan.base, here.made) == (BaseImage(here.store.base_path(BASE), BASE), 0)


def test_another_target_has_a_base_image_of_its_own(here: Here) -> None:
    plan = judge_of(here, "same-as:target:xfs").reference.plan
    assert (plan.target.name, plan.base.id, here.made) == ("xfs", "b-made", 1)
