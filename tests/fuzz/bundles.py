"""Bundles as somebody makes them who means harm: digests and ids fit, whatever else is changed.

A fuzzer changes what stands before the digests: a JSON object with a finding and the metadata of its recordings, or the
tar within the gzip. `sealed` and `packed` make the bundle of it.
"""

import gzip
import io
import json
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from postcrash._core import Recording, intervals, write_recording
from postcrash.harness.examination.recording_metadata import about_target
from postcrash.harness.findings.bundles.archive import write_archive
from postcrash.harness.findings.bundles.bundle import BASE, BELOW, FINDING, FORMAT, MANIFEST, RECORDING
from postcrash.harness.findings.bundles.import_bundle import import_bundle
from postcrash.harness.findings.bundles.validation import BundleParts, id_of
from postcrash.model.units import SECTOR_BYTES
from postcrash.store.consoles import Casualty
from postcrash.store.json_codec import Json
from postcrash.store.records import Finding, recording_id
from postcrash.store.store import Store
from postcrash.targets import BaseImage, file_digest, image_id, target_named

from .sound import DISK_SECTORS, EVENTS, OBSERVATION, WORKLOAD

_TARGET = target_named("ext4-original")
_OF_WORKLOAD, _OF_RECORDING, _BASE_ID = "@WORKLOAD", "@RECORDING", "@BASE"
"""Stand for ids in the JSON object."""


def read(file: Path) -> None:
    """Put the finding of a bundle into an empty store."""
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        store = Store(folder)
        try:
            import_bundle(file, store)
        finally:
            store.close()


def contents(folder: Path) -> list[bytes]:
    """Findings of a crash, of a crash within recovery, and of a lost guest, with the metadata of their recordings."""
    image = folder / "image"
    image.write_bytes(bytes(DISK_SECTORS * SECTOR_BYTES))
    write_recording(folder / "made.pcr", DISK_SECTORS, "{}", EVENTS)
    known = intervals(Recording(folder / "made.pcr"), image, "cache")
    last, choices = known[-1], ((0, 1),)
    recover = json.loads(json.dumps(_TARGET.recovery(walk=True, fsck=False).by_kernel().to_wire()))
    about = ("P5", "A is gone", _TARGET.name, "UML 6.1", "cache", "w", WORKLOAD, _OF_RECORDING)
    losses = tuple(last.lost(choices)), last.torn(choices)
    instant = last.started, last.returned
    place = last.index, choices, *losses, *instant
    state = f"{_OF_RECORDING}/{last.index}/0.1"
    crash = Finding("", *about, _BASE_ID, state, *place, OBSERVATION, None, recover, guest="there")
    within = replace(crash, base=f"{_OF_WORKLOAD}/{last.index}/0.1")
    lost = Finding(
        "",
        *about,
        base=_BASE_ID,
        state="",
        interval=last.index,
        choices=(),
        lost=(),
        torn=0,
        started=last.started,
        returned=last.returned,
        observation=None,
        casualty=Casualty("it hangs"),
        recover={},
    )
    metadata = {"base": _BASE_ID, "recorder": "crash-disk", "requested": "auto", "held": None, **about_target(_TARGET)}
    return [
        json.dumps({"finding": finding.to_json(), "recorded": metadata, "below": below, "manifest": {}}).encode()
        for finding, below in ((crash, False), (within, True), (replace(lost, checker="guest"), False))
    ]


def sealed(content: bytes) -> bytes:
    """The bundle of a JSON object of `contents` that may have been changed. What is none stays as it is."""
    try:
        told = json.loads(content)
        with tempfile.TemporaryDirectory() as folder:
            members = list(_members(told, Path(folder)))
        return _archive(members)
    except Exception:  # whatever the change is, it has come to something that is no bundle
        return content


def tars(folder: Path) -> list[bytes]:
    """The tars of bundles."""
    return [gzip.decompress(sealed(content)) for content in contents(folder)]


def packed(content: bytes) -> bytes:
    """The tar in gzip, with the checksums of its headers."""
    made = bytearray(content)
    for at in range(0, len(made) - tarfile.BLOCKSIZE + 1, tarfile.BLOCKSIZE):
        header = made[at : at + tarfile.BLOCKSIZE]
        if header[257:262] == b"ustar":
            made[at + 148 : at + 156] = b"%06o\0 " % sum(header[:148] + b" " * 8 + header[156:])
    return gzip.compress(bytes(made), 1)


def _members(told: Json, folder: Path) -> Iterator[tuple[str, bytes]]:
    base, recording, below = (folder / name for name in (BASE, RECORDING, BELOW))
    base.write_bytes(bytes(DISK_SECTORS * SECTOR_BYTES))
    ids = {_BASE_ID: image_id(file_digest(base))}
    of_workload = below if told["below"] else recording
    ids[_OF_WORKLOAD] = _recorded(of_workload, _with_ids(told["recorded"], ids))
    ids[_OF_RECORDING] = _recorded(recording, {"device": "crash disk"}) if told["below"] else ids[_OF_WORKLOAD]
    finding = _with_ids(told["finding"], ids)
    parts = BundleParts(
        Finding.from_json(finding), recording, below if told["below"] else None, base, file_digest(base)
    )
    recorded = json.loads(Recording(of_workload).metadata)
    named = replace(parts.finding, id=id_of(parts.finding, _TARGET, BaseImage(base, ids[_BASE_ID]), recorded))
    facts = replace(parts, finding=named).facts()
    yield MANIFEST, json.dumps({"format": FORMAT, **facts, **told["manifest"]}).encode()
    yield FINDING, json.dumps({**finding, "id": named.id}).encode()
    for path in (recording, below, base):
        if path.exists():
            yield path.name, path.read_bytes()


def _recorded(place: Path, metadata: Json) -> str:
    write_recording(place, DISK_SECTORS, json.dumps(metadata), EVENTS)
    return recording_id(Recording(place).digest)


def _with_ids(value: Any, ids: dict[str, str]) -> Any:
    text = json.dumps(value)
    for word, id in ids.items():
        text = text.replace(word, id)
    return json.loads(text)


def _archive(members: list[tuple[str, bytes]]) -> bytes:
    out = io.BytesIO()
    write_archive(out, [(name, len(content), io.BytesIO(content)) for name, content in members])
    return out.getvalue()
