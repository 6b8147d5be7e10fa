"""Collects the details that a report shows for each finding.

These are the names that the file system's own tools give to lost writes, what other judges object to if the finding is
of a comparison, the timeline, and the shell script.
"""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from postcrash._core import Recording
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.crash_in_recovery import source_of
from postcrash.harness.examination.recording_metadata import recorded_target
from postcrash.harness.examination.session import Session
from postcrash.harness.expectations.objections import objections
from postcrash.harness.findings.reproduce import reproducers_of
from postcrash.model import SimulationError, WorkloadError
from postcrash.reports.explanation.explanation import ExplanationError, explain
from postcrash.reports.explanation.timeline import timeline
from postcrash.reports.page.story import Story
from postcrash.reports.script.shell_operations import NoCommandError
from postcrash.store.records import Finding
from postcrash.store.store import NotInStoreError, Store, StoreError
from postcrash.targets import Target, UnknownTargetError, target_named


def with_block_names(findings: Iterable[Finding], store: Store) -> list[Finding]:
    """Returns the findings with explanations that name blocks, and with objections.

    A finding stays as it is if its recording is gone or its target is unknown. Raises UsageError if a finding does not
    fit its recording.
    """
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda finding: _with_block_names(finding, store), findings))


def _with_block_names(finding: Finding, store: Store) -> Finding:
    try:
        target = recorded_target(store, finding) or target_named(finding.target)
        with source_of(store, finding) as (source, _):
            explanation = explain(finding, Recording(source.recording), source.base, target.fstype)
    except (UnknownTargetError, NotInStoreError):
        return finding
    except (ExplanationError, WorkloadError, SimulationError) as error:
        raise UsageError(f"{finding.id} does not fit {finding.recording}: {error}") from error
    return _with_objections(replace(finding, explanation=explanation), target)


def _with_objections(finding: Finding, target: Target) -> Finding:
    """Adds to the explanation what judges that compare nothing object to."""
    assert finding.explanation is not None
    lines = tuple(objection.text for objection in objections(finding, target))
    return replace(finding, explanation=replace(finding.explanation, objections=lines))


def stories_of(findings: Iterable[Finding], session: Session) -> list[Story]:
    """Returns the story of each finding. It has only the finding if the recording is missing or damaged."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda finding: _story(finding, _target(finding, session), session.store), findings))


def _target(finding: Finding, session: Session) -> Target | None:
    try:
        return session.target_of(finding)
    except UsageError:
        return None


def _story(finding: Finding, target: Target | None, store: Store) -> Story:
    try:
        with source_of(store, finding) as (source, _):
            recording = _opened(source.recording)
            explanation = explain(finding, recording, source.base, target.fstype if target else None)
            moments = timeline(finding, recording, source.base)
    except (StoreError, ExplanationError):
        return Story(finding)
    finding = replace(finding, explanation=explanation)
    if target is None:
        return Story(finding, moments, no_script=f"nobody knows the target {finding.target} any more")
    finding = _with_objections(finding, target)
    try:
        return Story(finding, moments, reproducers_of(finding, target, store)[0].text)
    except NoCommandError as error:
        return Story(finding, moments, no_script=str(error))


def _opened(path: Path) -> Recording:
    """Opens the recording. Raises StoreError if it cannot be read."""
    try:
        return Recording(path)
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: {error}") from error
