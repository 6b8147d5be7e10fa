"""What the recording of a finding says of itself: how it was made, and on which target."""

import json
from dataclasses import asdict
from typing import Any

from postcrash._core import Recording
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.crash_in_recovery import state_below
from postcrash.reports.store.plain import Json
from postcrash.reports.store.records import Finding
from postcrash.reports.store.store import NotInStoreError, Store
from postcrash.targets import Target, TargetFileError, target_of

_FIELDS = "target_fields"


def recorded_how(store: Store, finding: Finding) -> dict[str, Any]:
    """The metadata of the recording of the finding's workload: `held`, `recorder` and more.

    Raises StoreError if the recording is not in the store, and UsageError if it is damaged.
    """
    path = store.recording_path(state_below(finding) or finding.recording)
    try:
        return dict(json.loads(Recording(path).metadata))
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from error


def about_target(target: Target) -> Json:
    """What a recording's metadata say of its target: all that is known, because users have targets of their own."""
    return {"target": target.name, _FIELDS: asdict(target)}


def recorded_target(store: Store, finding: Finding) -> Target | None:
    """The target of a finding as its recording describes it. None if the recording is gone or does not describe it.

    Raises UsageError if the recording or the description is damaged.
    """
    try:
        fields = recorded_how(store, finding).get(_FIELDS)
    except NotInStoreError:
        return None
    if fields is None:
        return None
    try:
        return target_of(fields, f"the recording of {finding.id}")
    except TargetFileError as error:
        raise UsageError(str(error)) from None
