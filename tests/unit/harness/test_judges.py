"""What judges say of a state that does not mount, and which recoveries show what they look at."""

import pytest

from postcrash.harness.judges import Judge, all_judges, is_shown, judges_named, kind_of, recoveries_for
from postcrash.model import History, Observation, Verdict, parse_workload
from postcrash.targets import target_named

EIO = 5
HISTORY = History(parse_workload("creat a\nfsync a\n", "w"), 2, 2)
NOT_MOUNTED = Observation.from_wire({"mount_errno": EIO, "tree": [], "klog": [], "fsck": None, "used": None})
JUDGES = {judge.name: judge for judge in all_judges()}


@pytest.mark.parametrize(
    "judge", [judge for name, judge in JUDGES.items() if name not in ("mounts", "kernel-log", "fsck")]
)
def test_nothing_holds_on_a_state_that_does_not_mount(judge: Judge) -> None:
    opinion = judge.opinion(HISTORY, NOT_MOUNTED)
    assert (opinion.verdict, opinion.relevant) == (Verdict.UNDECIDED, False)
    assert "does not mount (errno 5)" in opinion.message


def test_that_it_does_not_mount_is_a_violation() -> None:
    assert JUDGES["mounts"].opinion(HISTORY, NOT_MOUNTED).verdict is Verdict.VIOLATED


@pytest.mark.parametrize(("name", "kinds"), [("ext4-current", ["walk", "fsck", "use"]), ("nilfs2", ["walk", "use"])])
def test_what_has_no_fsck_is_not_recovered_for_it(name: str, kinds: list[str]) -> None:
    target = target_named(name)
    assert [kind_of(kind) for kind in recoveries_for(all_judges(), target)] == kinds
    (fsck,) = judges_named(["fsck"])
    assert is_shown(fsck, target) == ("fsck" in kinds)
