"""The metadata of a finding's recording: how it was made, on which target, and on which base image."""

import json
from dataclasses import asdict

from postcrash._core import Recording
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.crash_in_recovery import state_below
from postcrash.harness.examination.provenance import Provenance
from postcrash.harness.wire import WireError
from postcrash.store.json_codec import Json
from postcrash.store.records import Finding
from postcrash.store.store import NotInStoreError, Store
from postcrash.targets import BaseImage, Target, TargetFileError, target_of

_FIELDS = "target_fields"


def provenance(store: Store, finding: Finding) -> Provenance:
    """How the finding's workload was recorded.

    Raises StoreError if the recording is not in the store, and UsageError if it is damaged.
    """
    try:
        return Provenance.from_wire(_metadata(store, finding))
    except WireError as error:
        raise UsageError(f"the recording of {finding.id}: {error}") from error


def _metadata(store: Store, finding: Finding) -> Json:
    """The metadata of the recording of the finding's workload.

    Raises StoreError if the recording is not in the store, and UsageError if it is damaged.
    """
    return _metadata_of(store, state_below(finding) or finding.recording)


def _metadata_of(store: Store, recording: str) -> Json:
    try:
        return dict(json.loads(Recording(store.recording_path(recording)).metadata))
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from error


def about_target(target: Target) -> Json:
    """Metadata that describe the target in full, because users have targets of their own."""
    return {"target": target.name, _FIELDS: asdict(target)}


def recorded_target(store: Store, finding: Finding) -> Target | None:
    """The target of a finding as its recording describes it. None if the recording is gone or does not describe it.

    Raises UsageError if the recording or the description is damaged.
    """
    try:
        return described_target(_metadata(store, finding), finding.id)
    except NotInStoreError:
        return None


def target_of_recording(store: Store, recording: str) -> Target | None:
    """The target that a recording describes. Otherwise as `recorded_target`."""
    try:
        return described_target(_metadata_of(store, recording), recording)
    except NotInStoreError:
        return None


def described_target(metadata: Json, id: str) -> Target | None:
    """The target that the metadata of a recording describe, None if they do not. Raises UsageError, which has `id`."""
    if _FIELDS not in metadata:
        return None
    try:
        return target_of(metadata[_FIELDS], f"the recording of {id}")
    except TargetFileError as error:
        raise UsageError(str(error)) from None


def recorded_base(store: Store, finding: Finding) -> BaseImage:
    """The base image on which a finding's workload was recorded, from the store. So none is made anew.

    Raises StoreError if the recording or the image is not in the store, and UsageError if the recording is damaged.
    """
    id = provenance(store, finding).base
    return BaseImage(store.base_path(id), id)
