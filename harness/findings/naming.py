"""Findings as they are shown: with the names that the file system's own tools give to the writes that the crash lost.

A finding of a comparison also has what other judges object to.
"""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from postcrash._core import Recording
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.crash_in_recovery import source_of
from postcrash.harness.examination.recording_metadata import recorded_target
from postcrash.harness.expectations.objections import objections
from postcrash.model import SimulationError, WorkloadError
from postcrash.reports.explanation.explanation import ExplanationError, explain
from postcrash.store.records import Finding
from postcrash.store.store import NotInStoreError, Store
from postcrash.targets import Target, UnknownTargetError, target_named


def named(findings: Iterable[Finding], store: Store) -> list[Finding]:
    """The findings with names. A finding stays as it is if its recording is gone, or its target is not known.

    Raises UsageError if a finding does not fit its recording.
    """
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda finding: _named(finding, store), findings))


def _named(finding: Finding, store: Store) -> Finding:
    try:
        target = recorded_target(store, finding) or target_named(finding.target)
        with source_of(store, finding) as (source, _):
            explanation = explain(finding, Recording(source.recording), source.base, target.fstype)
    except (UnknownTargetError, NotInStoreError):
        return finding
    except (ExplanationError, WorkloadError, SimulationError) as error:
        raise UsageError(f"{finding.id} does not fit {finding.recording}: {error}") from error
    return with_objections(replace(finding, explanation=explanation), target)


def with_objections(finding: Finding, target: Target) -> Finding:
    """The finding, in whose explanation stands what judges that compare nothing object to."""
    if finding.explanation is None:
        return finding
    told = tuple(objection.text for objection in objections(finding, target))
    return replace(finding, explanation=replace(finding.explanation, objections=told))
