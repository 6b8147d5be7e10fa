"""A finding as a test of fstests: which power cut it makes, and what it says of itself."""

import datetime
from dataclasses import dataclass

from postcrash._core import Recording, intervals
from postcrash.harness.examination.crash_in_recovery import source_of
from postcrash.harness.findings.reproduce import (
    Reproducer,
    cut_for_fstests,
    require_one_crash,
    require_shell,
    symptom_of,
)
from postcrash.model import parse_workload, simulate
from postcrash.reports.script.fstests import FstestsTest, fstest
from postcrash.reports.script.shell_operations import NoCommandError
from postcrash.reports.script.shell_script import Cut, LogCut
from postcrash.store.records import Finding
from postcrash.store.store import Store
from postcrash.targets import Target


@dataclass(frozen=True, slots=True)
class WrittenTest:
    """A test and its golden output."""

    text: str
    golden: str


def fstests_test(
    store: Store, finding: Finding, target: Target, name: str, statement: str, tried: Reproducer | None, kernel: str
) -> WrittenTest:
    """The test called `name`. `tried` is the script that was tried on `kernel`, if one was. Raises NoCommandError."""
    require_shell(finding)
    require_one_crash(finding)
    if finding.reference_name:
        raise NoCommandError(
            f"no rule is broken: only {finding.reference_name} does otherwise, and a test needs a rule"
        )
    with source_of(store, finding) as (source, _):
        recording = Recording(source.recording)
        interval = intervals(recording, source.base, finding.model)[finding.interval]
        cut, is_whole = cut_for_fstests(finding, recording, interval)
    shown = _shown_cut(tried)
    if shown is not None:
        cut, is_whole = shown, True
    about = FstestsTest(
        name=name,
        year=datetime.datetime.now(datetime.UTC).year,
        message=finding.message,
        statement=statement,
        found_by=_found_by(finding, target),
        tried=_tried(tried, kernel) if shown is not None else "This test has not been run.",
        lost=tuple(write.words for write in finding.explanation.lost) if finding.explanation else (),
        is_whole=is_whole,
    )
    workload = parse_workload(finding.workload_text, finding.workload_name)
    return WrittenTest(fstest(about, target, workload, simulate(workload), symptom_of(finding), cut), about.golden)


def _shown_cut(tried: Reproducer | None) -> Cut | None:
    """The power cut that showed the violation, if a test of fstests can make it too."""
    if tried is None or not tried.shown or (isinstance(tried.cut, LogCut) and tried.cut.lost):
        return None
    return tried.cut


def _tried(tried: Reproducer | None, kernel: str) -> str:
    assert tried is not None
    return (
        f"A script with this power cut showed it on {kernel}, {tried.shown} of {len(tried.codes)} times. This test "
        "itself has not been run."
    )


def _found_by(finding: Finding, target: Target) -> str:
    options = f", mount -o {target.options}" if target.options else ""
    return f"Found by postcrash ({finding.id}) on {finding.kernel}, with {' '.join(target.mkfs)}{options}"
