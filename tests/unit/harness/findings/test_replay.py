"""The verdict on a state that is recovered once more: it fails, it does not fail, or nobody can tell."""

from types import SimpleNamespace
from typing import Any

import pytest

from postcrash.harness.examination.judges import judges_named
from postcrash.harness.findings.replay import recovered
from postcrash.harness.guests.events import ExecutionReport
from postcrash.model import Verdict
from postcrash.store.consoles import Casualty

from ..examination.conftest import RECOVER

EIO = 5
(FSCK,) = judges_named(["fsck"])
LOST = ExecutionReport(None, (), Casualty("the guest hangs"))


def shown(**more: Any) -> ExecutionReport:
    return ExecutionReport({"mount_errno": 0, "tree": None, "klog": [], "klog_whole": True, **more}, (), None)


@pytest.mark.parametrize(
    ("executed", "judge", "verdict"),
    [
        (shown(fsck={"status": 4, "output": "bad"}), FSCK, Verdict.VIOLATED),
        (shown(fsck={"status": 0, "output": ""}), FSCK, Verdict.HOLDS),
        (shown(fsck={"status": 139, "output": ""}), FSCK, Verdict.UNDECIDED),
        (shown(mount_errno=EIO), FSCK, Verdict.UNDECIDED),
        (LOST, FSCK, Verdict.UNDECIDED),
        (LOST, None, Verdict.VIOLATED),
        (shown(), None, Verdict.HOLDS),
    ],
)
def test_what_cannot_be_judged_does_not_count_as_fine(executed: ExecutionReport, judge: Any, verdict: Verdict) -> None:
    machine = SimpleNamespace(execute=lambda *_: executed)
    finding = SimpleNamespace(
        **{"interval": 0, "choices": (), "recovery": RECOVER, "started": 1, "returned": 1},
        **{"workload_text": "creat a\n", "workload_name": "w"},
    )
    assert recovered(machine, None, finding, judge)[0] is verdict  # type: ignore[arg-type]
