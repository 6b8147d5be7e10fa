"""Lost guests: the note on each one, and the finding if one workload loses two guests."""

from dataclasses import replace
from pathlib import Path

from postcrash._core import Recording, intervals
from postcrash.harness.errors import LostAtWork
from postcrash.harness.examination.comparison import comparison_among
from postcrash.harness.examination.crash_in_recovery import SameRecovery
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.provenance import Provenance
from postcrash.harness.examination.result import Examination, Ruling
from postcrash.model import Verdict, Workload
from postcrash.model.operation import PROGRAMS
from postcrash.store.consoles import Casualty, console_file
from postcrash.store.records import Finding, recording_id

LOST_GUEST_JUDGE = "guest"
"""The judge that a finding names if running a workload or recovering a crash state kills or hangs every guest."""
_RECOVERIES = {"trust": "in the recovery of the base image", "recovery": "in the recovery of a crash state"}


def note(during: str, lost: Casualty) -> str:
    """One sentence: what the guest was doing, what happened, and where the console is."""
    return f"{during}: {lost.what}; the guest was replaced (console: {console_file(lost)} in the store)"


def activity_of(workload: Workload, lost: LostAtWork) -> str:
    """What the guest was doing when it was lost."""
    if lost.during != "run":
        return _RECOVERIES[lost.during]
    started, returned = lost.started, lost.returned
    measured = range(len(workload.setup), len(workload.operations))
    program = next((number for number in measured if workload.operations[number].word in PROGRAMS), None)
    if program is not None and started > program + 1:  # the number of its acknowledgements is not known
        return f"in '{workload.operations[program]}', or after it"
    if started > returned:
        operation = workload.operations[started - 1]
        return f"in '{operation}'" if started > len(workload.setup) else f"in the set-up, in '{operation}'"
    if started == len(workload.operations):
        return "after the last operation, while the file system was unmounted"
    if started == 0:
        return "before the first operation, while the file system was mounted"
    if started == len(workload.setup):
        return "while the set-up was made durable"
    return f"after '{workload.operations[started - 1]}'"


def add_lost_guest(result: Examination, workload: Workload, lost: LostAtWork) -> None:
    """Note a guest that was lost while the workload ran, and have its console kept."""
    result.lost_guests.append(lost.casualty)
    result.notes.append(note(activity_of(workload, lost), lost.casualty))


def examination_of_lost_run(plan: Plan, recording: Path, lost: LostAtWork) -> Examination:
    """The examination of a workload that lost two guests: one finding. All other judges are undecided.

    If the plan compares with a reference that loses guests too, there is no finding.
    `recording` has what the last guest did until it was lost.
    """
    where = activity_of(plan.workload, lost)
    message = f"{where}: {lost.what}"
    contents = Recording(recording)
    finding = _finding(plan, contents, lost, message)
    result = Examination(finding.recording, plan.base.id, plan.how.model, plan.kernel, plan.guest)
    result.device = Provenance.of(contents).device
    reason = f"the workload did not come to its end: {message}"
    names = [judge.name for judge in plan.judges] + [SameRecovery.name] * (plan.how.depth > 1)
    result.rulings = {name: Ruling(Verdict.UNDECIDED, reason=reason) for name in names}
    ruling = unless_reference_loses_guests(plan, Ruling(Verdict.VIOLATED, relevant=True, reason=message), lost)
    result.rulings[LOST_GUEST_JUDGE] = ruling
    result.findings = [finding] * (ruling.verdict is Verdict.VIOLATED)
    return result


def unless_reference_loses_guests(plan: Plan, ruling: Ruling, lost: LostAtWork | None) -> Ruling:
    """The ruling on guests lost by the plan's workload. It is undecided if a judge compares and sees no difference.

    `lost` is as in `Comparison.why_no_change`.
    """
    comparison = comparison_among(plan.judges)
    reason = comparison.why_no_change(plan.workload, lost) if comparison is not None else ""
    return Ruling(Verdict.UNDECIDED, relevant=True, reason=reason, unknown=[reason]) if reason else ruling


def _finding(plan: Plan, contents: Recording, lost: LostAtWork, message: str) -> Finding:
    # There is no crash interval before the set-up is durable. The last interval ends where the recording ends.
    known = intervals(contents, plan.base.path, plan.how.model)
    finding = plan.finding(
        LOST_GUEST_JUDGE,
        message,
        None,
        within_recovery=False,
        recording=recording_id(contents.digest),
        base=plan.base.id,
        state="",
        interval=max(len(known) - 1, 0),
        choices=(),
        lost=(),
        torn=0,
        started=lost.started,
        returned=lost.returned,
        observation=None,
        casualty=lost.casualty,
    )
    if not known:
        return finding
    return replace(finding, explanation=plan.explainer.explain(finding, contents, plan.base.path))
