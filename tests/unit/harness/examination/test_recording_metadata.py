"""What a recording says of its target and its base image: both are known again, and what is broken is refused."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash._core import Recording, write_recording
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.recording_metadata import about_target, recorded_base, recorded_target
from postcrash.store.records import recording_id
from postcrash.store.store import Store, StoreError
from postcrash.targets import BaseImage, Rule, Target, target_named

RULE = Rule(statement="It may lose names.", source="its manual", denies=("names-*",))
BASE = "b-0123456789abcdef"
HOW = {"base": BASE, "recorder": "crash-disk", "held": None}
MINE = replace(target_named("ext4-current"), name="mine", options="commit=1", rules={"loses-names": RULE})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def recorded(store: Store) -> Callable[[dict[str, Any]], Any]:
    """A finding whose recording has these metadata."""

    def make(metadata: dict[str, Any]) -> Any:
        path = store.scratch()
        write_recording(path, 64, json.dumps(metadata), [])
        id = recording_id(Recording(path).digest)
        store.adopt_recording(path, id)
        return SimpleNamespace(id="f-0123456789abcdef", recording=id, base=BASE)

    return make


@pytest.mark.parametrize("target", [MINE, target_named("fuse2fs"), target_named("btrfs")])
def test_a_target_is_known_again(store: Store, recorded: Callable[..., Any], target: Target) -> None:
    assert recorded_target(store, recorded(about_target(target))) == target


def test_without_a_description_or_a_recording_it_is_not_known(store: Store, recorded: Callable[..., Any]) -> None:
    finding = recorded({"target": "mine"})
    assert recorded_target(store, finding) is None
    store.recording_path(finding.recording).unlink()
    assert recorded_target(store, finding) is None


@pytest.mark.parametrize(
    "wrong",
    [
        *(7, [], {}),
        *({**asdict(MINE), **change} for change in ({"size_mib": 10**9}, {"mkfs": "rm -rf"}, {"colour": "red"})),
    ],
)
def test_a_description_that_is_damaged_is_refused(store: Store, recorded: Callable[..., Any], wrong: Any) -> None:
    (key,) = about_target(MINE).keys() - {"target"}
    with pytest.raises(UsageError, match=r"the recording of f-0123456789abcdef: "):
        recorded_target(store, recorded({key: wrong}))


def test_the_base_image_is_the_one_in_the_store(store: Store, recorded: Callable[..., Any], tmp_path: Path) -> None:
    finding = recorded(HOW)
    with pytest.raises(StoreError, match=f"there is no base image {BASE}"):
        recorded_base(store, finding)
    (image := tmp_path / "image").write_bytes(b"image")
    store.keep_base(image, BASE)
    assert recorded_base(store, finding) == BaseImage(store.base_path(BASE), BASE)


def test_a_base_image_is_nowhere_else(store: Store, recorded: Callable[..., Any]) -> None:
    with pytest.raises(StoreError, match="expected a base image's id"):
        recorded_base(store, recorded({**HOW, "base": "../../etc/passwd"}))
