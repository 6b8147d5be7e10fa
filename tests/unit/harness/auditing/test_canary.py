"""Checks that cannot fail are noticed."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from postcrash.harness.auditing.canary import why_untested
from postcrash.harness.auditing.function_judge import FunctionJudge
from postcrash.model import History, Verdict

from .test_function_judge import RAN, observed


def canary(check: Callable[[Path, Sequence[str]], object], **end: bytes) -> str:
    """What is said of a check, if `f` held 0 when nothing was acknowledged, and `end` when all was."""
    judge = FunctionJudge(check)
    for returned, files in ((1, {"f": b"0\n"}), (4, end)):
        assert judge.check(History(RAN, returned, returned), observed(**files)).verdict is Verdict.HOLDS
    return why_untested(judge)


def is_durable(folder: Path, acknowledged: Sequence[str]) -> None:
    assert "two" not in acknowledged or (folder / "f").read_bytes() == b"2\n"


def is_whole(folder: Path, _acknowledged: Sequence[str]) -> None:
    for file in folder.iterdir():
        assert file.read_bytes().startswith((b"0", b"2"))


def is_there(folder: Path, _acknowledged: Sequence[str]) -> None:
    assert (folder / "f").exists()


def is_gone(folder: Path, acknowledged: Sequence[str]) -> None:
    assert "two" not in acknowledged or not (folder / "f").exists()


@pytest.mark.parametrize(
    ("check", "end"), [(is_durable, {"f": b"2\n"}), (is_whole, {"f": b"2\n"}), (is_there, {"f": b""}), (is_gone, {})]
)
def test_a_check_that_objects_to_some_damage_can_fail(check: Callable[..., None], end: dict[str, bytes]) -> None:
    assert canary(check, **end) == ""


def test_a_check_that_accepts_everything_is_noticed() -> None:
    assert canary(lambda folder, acknowledged: True, f=b"2\n") == (
        "the check cannot fail: it also accepts an empty folder, empty files, files of other bytes, "
        "the folder as it was at the start"
    )
    assert "at the start" not in canary(lambda folder, acknowledged: True, f=b"0\n")
    assert why_untested(FunctionJudge(is_there)) == "the check was asked about no folder"
