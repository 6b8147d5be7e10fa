"""Findings with all that a report tells of them: names, the moments of everything, and the shell script."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from postcrash._core import Recording
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.crash_in_recovery import source_of
from postcrash.harness.examination.session import Session
from postcrash.harness.findings.naming import with_objections
from postcrash.harness.findings.reproduce import reproducers_of
from postcrash.reports.explanation.explanation import ExplanationError, explain
from postcrash.reports.explanation.timeline import timeline
from postcrash.reports.page.story import Story
from postcrash.reports.script.shell_operations import NoCommandError
from postcrash.store.records import Finding
from postcrash.store.store import Store, StoreError
from postcrash.targets import Target


def told(findings: Iterable[Finding], session: Session) -> list[Story]:
    """The stories of findings. If a finding's recording is gone or damaged, its story has only what the finding has."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda finding: _told(finding, _target(finding, session), session.store), findings))


def _target(finding: Finding, session: Session) -> Target | None:
    try:
        return session.target_of(finding)
    except UsageError:
        return None


def _opened(path: Path) -> Recording:
    """The recording. Raises StoreError where it cannot be read."""
    try:
        return Recording(path)
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: {error}") from error


def _told(finding: Finding, target: Target | None, store: Store) -> Story:
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
    finding = with_objections(finding, target)
    try:
        return Story(finding, moments, reproducers_of(finding, target, store)[0].text)
    except NoCommandError as error:
        return Story(finding, moments, no_script=str(error))
