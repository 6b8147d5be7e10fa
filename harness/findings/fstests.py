"""Makes a test of fstests from a finding: its power cut and its description."""

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
    store: Store, finding: Finding, target: Target, name: str, statement: str, script: Reproducer | None, kernel: str
) -> WrittenTest:
    """Returns the test called `name`. `script` is the one that was run on `kernel`. Raises NoCommandError."""
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
    script_cut = _shown_cut(script)
    if script_cut is not None:
        cut, is_whole = script_cut, True
    description = FstestsTest(
        name=name,
        year=datetime.datetime.now(datetime.UTC).year,
        message=finding.message,
        statement=statement,
        found_by=_found_by(finding, target),
        script_result=_script_result(script, kernel) if script_cut is not None else "This test has not been run.",
        lost=tuple(write.words for write in finding.explanation.lost) if finding.explanation else (),
        is_whole=is_whole,
    )
    workload = parse_workload(finding.workload_text, finding.workload_name)
    return WrittenTest(
        fstest(description, target, workload, simulate(workload), symptom_of(finding), cut), description.golden
    )


def _shown_cut(script: Reproducer | None) -> Cut | None:
    """Returns the power cut with which the script showed the violation, if a test of fstests can make it."""
    if script is None or not script.shown or (isinstance(script.cut, LogCut) and script.cut.lost):
        return None
    return script.cut


def _script_result(script: Reproducer | None, kernel: str) -> str:
    assert script is not None
    return (
        f"A script with this power cut showed it on {kernel}, {script.shown} of {len(script.codes)} times. This test "
        "itself has not been run."
    )


def _found_by(finding: Finding, target: Target) -> str:
    options = f", mount -o {target.options}" if target.options else ""
    return f"Found by postcrash ({finding.id}) on {finding.kernel}, with {' '.join(target.mkfs)}{options}"
