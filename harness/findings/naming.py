"""Findings as they are shown: the file system's own tools name the writes that the crash lost."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from postcrash._core import Recording
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.crash_in_recovery import source_of
from postcrash.harness.examination.recorded import recorded_target
from postcrash.model import SimulationError, WorkloadError
from postcrash.reports.explanation.explanation import ExplanationError, explain
from postcrash.reports.store.records import Finding
from postcrash.reports.store.store import NotInStoreError, Store
from postcrash.targets import UnknownTargetError, target_named


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
    return replace(finding, explanation=explanation)
