"""A boot goes on unless the repair before the mount asks for a person."""

import pytest

from postcrash.checkers.boot_repair import BootRepair
from postcrash.model import FsckResult, History, Observation, Tree, Verdict, parse_workload
from postcrash.model.exit_status import why_boot_stops
from postcrash.model.judge import CannotTellError, violated

HISTORY = History(parse_workload("creat a", "litmus"), 1, 1)


def repaired(status: int, output: str = "") -> Observation:
    return Observation(0, Tree(), repair=FsckResult(status, output))


@pytest.mark.parametrize("status", [0, 1, 2, 3])
def test_whatever_was_corrected_lets_the_boot_go_on(status: int) -> None:
    assert BootRepair().examine(HISTORY, repaired(status)).verdict is Verdict.HOLDS
    assert why_boot_stops(repaired(status)) == ""


@pytest.mark.parametrize("status", [4, 5, 8, 12, 255])
def test_errors_that_are_left_stop_it(status: int) -> None:
    """What the program printed is not in the message, so that findings of one cause stay together."""
    expected = violated(f"exit status {status}: the boot needs a person")
    assert BootRepair().examine(HISTORY, repaired(status, "inode 12 is bad")) == expected
    assert why_boot_stops(repaired(status)) == f"the boot stops at exit status {status} of the program before the mount"


@pytest.mark.parametrize(
    ("status", "output", "reason"),
    [
        (137, "", "was killed by signal 9"),
        (127, "", "did not run: status 127"),
        (2, "Usage: fsck", "did not run: status 2"),
    ],
)
def test_a_program_that_did_not_get_to_the_end_decides_nothing(status: int, output: str, reason: str) -> None:
    with pytest.raises(CannotTellError, match=f"the program before the mount {reason}"):
        BootRepair().examine(HISTORY, repaired(status, output))
    assert why_boot_stops(repaired(status, output)).startswith(f"the program before the mount {reason}")


def test_without_a_repair_nothing_is_known_and_nothing_stops() -> None:
    without = Observation(0, Tree(), fsck=FsckResult(4, "bad"))
    with pytest.raises(CannotTellError, match="nothing was run before the mount"):
        BootRepair().examine(HISTORY, without)
    assert why_boot_stops(without) == ""
    assert not BootRepair().check(HISTORY, without).relevant
    assert BootRepair().check(HISTORY, repaired(0)).relevant


def test_a_boot_is_judged_though_the_mount_failed() -> None:
    failed = Observation(117, Tree(), repair=FsckResult(4, ""))
    assert BootRepair().needs == "anything"
    assert BootRepair().examine(HISTORY, failed) == violated("exit status 4: the boot needs a person")
