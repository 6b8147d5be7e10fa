"""A finding that was made by hand, with its files in a store, and its bundle."""

import hashlib
import io
import json
import tarfile
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash._core import Recording, intervals, write_recording
from postcrash.harness.auditing.judge import ABOUT
from postcrash.harness.examination.recording_metadata import about_target
from postcrash.harness.examination.session import Session
from postcrash.harness.findings.bundles.bundle import write_bundle
from postcrash.harness.findings.bundles.validation import BundleParts, id_of
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.store.json_codec import Json
from postcrash.store.records import Finding, recording_id, state_id
from postcrash.store.store import Store
from postcrash.targets import BaseImage, Target, image_id, target_named

from ....reports.conftest import DISK_SECTORS, MESSAGE, WORKLOAD, events, observation

ORIGINAL = target_named("ext4-original")
CONTENT = b"base".ljust(DISK_SECTORS * 512, b"\0")
BASE = hashlib.sha256(CONTENT).hexdigest()


class Here(Session):
    """A session on a machine with another guest than the finding's."""

    kernel: Kernel = SimpleNamespace(label="UML here")  # type: ignore[assignment]

    def guest(self, kernel: Kernel | None = None) -> str:
        return "here"


@dataclass(frozen=True)
class Made:
    """Makes a finding in `folder`, and others that differ from it."""

    folder: Path

    def metadata(self, **changed: Any) -> Json:
        known = {
            "base": image_id(BASE),
            "recorder": "crash-disk",
            "requested": "auto",
            "held": None,
            "device": "a disk",
        }
        return known | about_target(ORIGINAL) | changed

    def parts(self, metadata: Json | None = None, on: Target = ORIGINAL, **changed: Any) -> BundleParts:
        """The finding with its files, on the target `on`. Its id fits its content and what postcrash records."""
        recorded = metadata or self.metadata(**about_target(on))
        recording, base = self.folder / "made.pcr", self.folder / "made.img"
        write_recording(recording, DISK_SECTORS, json.dumps(recorded), events())
        base.write_bytes(CONTENT)
        recover = on.recovery(walk=True, fsck=False).by_kernel().to_wire()
        told = {"target": on.name, "recover": json.loads(json.dumps(recover)), **changed}
        finding = replace(self._finding(recording, base), **told)
        known = {name: recorded[name] for name in (ABOUT,) if name in recorded}
        return BundleParts(named(finding, on, self.metadata(**known)), recording, None, base, BASE)

    def _finding(self, path: Path, base: Path) -> Finding:
        recording = Recording(path)
        id, interval = recording_id(recording.digest), intervals(recording, base, "cache")[4]
        (component,) = [i for i, (sector, _, _) in enumerate(interval.components) if sector == 1000]
        choices = ((component, 1), (component + 1, 1))
        return Finding(
            id="",
            checker="P5",
            message=MESSAGE,
            target="",
            kernel="UML 6.1.176",
            model="cache",
            workload_name="replace",
            workload_text=WORKLOAD,
            recording=id,
            base=image_id(BASE),
            state=state_id(id, interval.index, choices),
            interval=interval.index,
            choices=choices,
            lost=tuple(interval.lost(choices)),
            torn=interval.torn(choices),
            started=interval.started,
            returned=interval.returned,
            observation=observation([[0, 5000, "zero"]]),
            casualty=None,
            recover={},
            guest="there",
        )


def named(finding: Finding, target: Target, recorded: Json) -> Finding:
    """The finding with the id of its content, or with a made-up id if it has nothing that can be named."""
    try:
        id = id_of(finding, target, BaseImage(Path(), recorded["base"]), recorded)
    except (ValueError, TypeError):
        id = "f-0123456789abcdef"
    return replace(finding, id=id)


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


@pytest.fixture
def here(tmp_path: Path) -> Here:
    """A session with an empty store."""
    return Here(tmp_path / "here")


@pytest.fixture
def finding(made: Made, here: Here) -> Finding:
    """A finding in the store of `here`."""
    parts = made.parts()
    here.store.keep_base(parts.base, image_id(BASE))
    here.store.adopt_recording(parts.recording, parts.finding.recording)
    here.store.put_finding(parts.finding)
    return parts.finding


@pytest.fixture
def bundle(finding: Finding, here: Here, tmp_path: Path) -> Path:
    """The bundle of `finding`."""
    path = tmp_path / "finding.tar.gz"
    with path.open("wb") as file:
        write_bundle(here, finding, file)
    return path


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store of another machine."""
    return Store(tmp_path / "there")


def files_of(store: Store) -> list[str]:
    """What is in a store besides its database."""
    return sorted(str(path.relative_to(store.folder)) for path in store.folder.rglob("*") if path.is_file())


def members_of(bundle: Path) -> dict[str, bytes]:
    """The members of a bundle, with their content."""
    with tarfile.open(bundle) as archive:
        files = {member.name: archive.extractfile(member) for member in archive}
        return {name: file.read() for name, file in files.items() if file is not None}


def packed(path: Path, members: dict[str, bytes]) -> Path:
    """An archive at `path` of these members."""
    with tarfile.open(path, mode="w:gz", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    return path
