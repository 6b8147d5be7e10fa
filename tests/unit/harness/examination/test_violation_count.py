"""Crash states that break a judge are counted exactly: each instant, each version that was left open, or not at all."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from postcrash._core import Interval, Recording, intervals, write_recording
from postcrash.harness.examination import violation_count as tally
from postcrash.harness.examination.certificate import Certificate
from postcrash.harness.examination.violation_count import violating
from postcrash.model import History, Observation, Verdict, parse_workload
from postcrash.model.judge import Opinion
from postcrash.model.segments import BYTES

from .conftest import RECOVER, interval_report

SECTORS = 4096
LAST = 1
"""The number of the interval that certificates are about."""
WORKLOAD = parse_workload("creat a\nsync\n", "w")
INSTANTS = [{"event": 3, "started": 1, "returned": 0}, {"event": 4, "started": 1, "returned": 1}]


@dataclass
class Picky:
    """A judge that objects to what it is told to object to, and remembers what it was asked."""

    objects: Callable[[History, Observation], bool]
    asked: int = 0
    name = "picky"
    version = ""
    depends_on = ("returned",)

    looks_at = ("walk",)

    def check(self, history: History, observation: Observation) -> Opinion:
        self.asked += 1
        verdict = Verdict.VIOLATED if self.objects(history, observation) else Verdict.UNDECIDED
        return Opinion(verdict, True, "")


def always(_history: History, _observation: Observation) -> bool:
    return True


Known = Callable[[int], list[Interval]]


@pytest.fixture
def known(tmp_path: Path) -> Known:
    """The crash intervals of a recording of so many writes. The last interval can lose each of them."""

    def made(writes: int) -> list[Interval]:
        events: list[tuple[Any, ...]] = [("durable",), ("started", 0)]
        events += [("write", number, 8 * number, b"\x01" * 4096, False, False) for number in range(writes)]
        base, path = tmp_path / "base.img", tmp_path / "made.pcr"
        base.write_bytes(bytes(SECTORS * 512))
        write_recording(path, SECTORS, "{}", events)
        found = intervals(Recording(path), base, "cache")
        assert (len(found), found[LAST].states) == (2, 2**writes)
        return found

    return made


def shown(*segments: Any, size: int = 2) -> dict[str, Any]:
    root = {"path": ".", "type": "dir", "mode": 0o755, "nlink": 2, "inode": 0, "size": 0}
    file = {
        "path": "a",
        "type": "file",
        "mode": 0o644,
        "nlink": 1,
        "inode": 1,
        "size": size,
        "segments": list(segments),
    }
    return {"mount_errno": 0, "tree": [root, file], "klog": [], "fsck": None}


FINE, BROKEN = shown([0, 2, "zero"]), shown([0, 2, "error:5"])


def left_open(component: int, at: int = 1) -> dict[str, Any]:
    """The byte at this place, which is 0 or 255."""
    versions = [[[at, at + 1, f"bytes:{byte}"]] for byte in ("00", "ff")]
    return {"start": at, "end": at + 1, "component": component, "versions": versions}


def certificate(*runs: Any, **fields: Any) -> Certificate:
    told = {"index": LAST, "states": "8", "covered": "8", "instants": INSTANTS, **fields}
    return Certificate.of(interval_report(*runs, **told), RECOVER)


def counted(certificates: list[Certificate], known: list[Interval], judge: Picky) -> tuple[int, int]:
    """The crash states that break the judge, and those that were covered."""
    found = violating(certificates, known, WORKLOAD, judge)
    assert found is not None
    return found.broken, found.covered


def is_broken(_history: History, observation: Observation) -> bool:
    return observation.tree["a"].segments[0].source.startswith("error")


def ends_in_ff(_history: History, observation: Observation) -> bool:
    return observation.tree["a"].segments[-1].source == f"{BYTES}00ff"


def test_each_execution_stands_for_all_states_that_agree_with_it(known: Known) -> None:
    """Two of eight states lose the first two pieces, at two instants."""
    told = certificate((((0, 0),), FINE), (((0, 1), (1, 1)), BROKEN), (((0, 1), (1, 0)), FINE))
    assert counted([told], known(3), Picky(is_broken)) == (4, 16)


def test_a_judge_is_asked_about_each_instant_and_once_about_an_outcome(known: Known) -> None:
    told = replace(certificate((((0, 0),), BROKEN)), executions=((((0, 0),), 0), (((0, 1),), 0)))
    judge = Picky(lambda history, observation: history.returned == 1)
    assert counted([told], known(3), judge) == (8, 16)
    assert judge.asked == 2


def test_versions_that_were_left_open_are_judged_one_by_one(known: Known) -> None:
    told = certificate((((0, 1),), shown([0, 1, "bytes:00"], left_open(2))), (((0, 0),), FINE))
    judge = Picky(ends_in_ff)
    assert counted([told], known(3), judge) == (4, 16)
    assert judge.asked == 6


def test_several_open_components_have_every_combination(known: Known) -> None:
    told = certificate((((0, 1),), shown(left_open(1, 0), left_open(2))), instants=INSTANTS[:1])
    judge = Picky(ends_in_ff)
    assert counted([told], known(3), judge) == (1, 8)
    assert judge.asked == 4


def test_a_lost_guest_breaks_no_judge(known: Known) -> None:
    assert counted([certificate(((), None))], known(3), Picky(always)) == (0, 16)


def test_what_a_judge_cannot_see_is_not_counted(known: Known) -> None:
    """Neither recoveries that it does not want, nor crashes within recovery."""
    seen = certificate(((), BROKEN))
    unseen = replace(seen, recover=replace(RECOVER, walk=False))
    within = certificate(((), BROKEN), within={"interval": 0, "choices": [], "observation": FINE})
    judge = Picky(always)
    assert counted([unseen, within], known(3), judge) == (0, 0)
    assert judge.asked == 0
    assert counted([unseen, seen, within], known(3), judge) == (16, 16)


def test_recoveries_are_those_that_the_judge_looked_at(known: Known) -> None:
    """A state is not a recovery: one recovery covers many states, at each instant."""
    seen = certificate(((), BROKEN), recoveries=3)
    within = certificate(((), BROKEN), within={"interval": 0, "choices": [], "observation": FINE}, recoveries=5)
    others = [replace(seen, recover=replace(RECOVER, walk=False)), within]
    assert violating([seen, seen, *others], known(3), WORKLOAD, Picky(always)) == (32, 32, 6)


def test_what_was_left_out_is_not_counted_as_covered(known: Known) -> None:
    told = certificate((((0, 1),), BROKEN), covered="4", left_out="4 of 8")
    assert counted([told], known(3), Picky(always)) == (8, 8)


def test_nothing_is_counted_if_it_would_take_too_long(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    told = certificate((((0, 1),), shown([0, 1, "bytes:00"], left_open(2))), (((0, 0),), FINE))
    monkeypatch.setattr(tally, "JUDGED_MAX", 6)
    assert counted([told], known(3), Picky(ends_in_ff)) == (4, 16)
    monkeypatch.setattr(tally, "JUDGED_MAX", 5)
    assert violating([told], known(3), WORKLOAD, Picky(ends_in_ff)) is None


def test_very_many_versions_end_early(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "JUDGED_MAX", 10)
    judge = Picky(always)
    told = certificate(((), shown(*(left_open(number, number) for number in range(12)), size=12)))
    assert violating([told], known(12), WORKLOAD, judge) is None
    assert judge.asked < 20
