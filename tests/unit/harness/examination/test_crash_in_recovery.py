"""Crashes within recovery: what the first recovery showed, the disk of the state that was recovered, and the judge."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash._core import BELOW, Recording, intervals, state_bytes, write_recording
from postcrash.harness.errors import GuestLostError
from postcrash.harness.examination.crash_in_recovery import (
    FirstCrash,
    SameRecovery,
    first_observation,
    image_of,
    judge_again,
    judge_of,
    record_recovery,
    source_of,
    state_below,
)
from postcrash.harness.guests.events import ExecutionReport, RecoveredState
from postcrash.harness.guests.machine import Source
from postcrash.model import Entry, History, Observation, Segment, Tree, Verdict, parse_workload
from postcrash.model.segments import BYTES
from postcrash.store.consoles import Casualty
from postcrash.store.records import recording_id, state_id
from postcrash.store.store import NotInStoreError, Store

from .conftest import RECOVER, interval_report

EIO = 5
SECTORS = 4096
BASE = "b-0123456789abcdef"
HISTORY = History(parse_workload("creat a\nsync\n", "w"), 2, 1)
ROOT = Entry(".", "dir", nlink=2, inode=1)
FILE = Entry("a", "file", nlink=1, inode=2, size=2, segments=(Segment(0, 2, "zero"),))
UNREADABLE = Entry("a", "file", nlink=1, inode=2, error=EIO)
NOT_MOUNTED = Observation(EIO, Tree())


def seen(*entries: Entry) -> Observation:
    return Observation(0, Tree([ROOT, *entries]))


def wire(*segments: Any) -> dict[str, Any]:
    root = {"path": ".", "type": "dir", "mode": 0o755, "nlink": 2, "inode": 0, "size": 0}
    file = {"path": "a", "type": "file", "mode": 0o644, "nlink": 1, "inode": 1, "size": 2, "segments": list(segments)}
    return {"mount_errno": 0, "tree": [root, file], "klog": [], "fsck": None}


def left_open(component: int, at: int) -> dict[str, Any]:
    """The byte at this place, which is 0 or 255."""
    versions = [[[at, at + 1, f"bytes:{byte}"]] for byte in ("00", "ff")]
    return {"start": at, "end": at + 1, "component": component, "versions": versions}


@pytest.mark.parametrize(
    ("first", "second", "verdict", "relevant"),
    [
        (seen(FILE), seen(FILE), Verdict.HOLDS, True),
        (seen(FILE), seen(), Verdict.VIOLATED, True),
        (seen(), seen(FILE), Verdict.VIOLATED, True),
        (seen(FILE), NOT_MOUNTED, Verdict.VIOLATED, True),
        (NOT_MOUNTED, seen(FILE), Verdict.VIOLATED, True),
        (NOT_MOUNTED, NOT_MOUNTED, Verdict.HOLDS, False),
        (seen(UNREADABLE), seen(UNREADABLE), Verdict.UNDECIDED, True),
        (seen(FILE, replace(UNREADABLE, path="b")), seen(replace(UNREADABLE, path="b")), Verdict.VIOLATED, True),
    ],
)
def test_a_recovery_after_a_crash_within_recovery_shows_the_same(
    first: Observation, second: Observation, verdict: Verdict, relevant: bool
) -> None:
    opinion = SameRecovery(first).check(HISTORY, second)
    assert (opinion.verdict, opinion.relevant) == (verdict, relevant)
    assert bool(opinion.message) == (verdict is not Verdict.HOLDS)


def test_what_could_not_be_read_of_the_first_recovery_may_have_been_different() -> None:
    """The second one shows the error too, or it would differ. Another judge reports it."""
    unread = SameRecovery(seen(UNREADABLE)).check(HISTORY, seen(UNREADABLE))
    assert "a cannot be read" in unread.message


def test_trees_are_compared_whatever_the_operations() -> None:
    judge = SameRecovery(seen(FILE))
    assert RECOVER.shows(judge.looks_at) and not replace(RECOVER, walk=False).shows(judge.looks_at)
    assert judge.depends_on == ()


def test_a_report_names_the_first_crash_or_there_was_none() -> None:
    within = {"interval": 3, "choices": [[4, 1]], "observation": wire([0, 2, "zero"])}
    assert FirstCrash.of(interval_report()) is None
    assert FirstCrash.of(interval_report(within=within)) == FirstCrash(3, ((4, 1),))


def test_a_crash_within_recovery_settles_more_of_the_first_state() -> None:
    """Its own components are about what the recovery wrote, which is no part of the first state."""
    crashed = FirstCrash(3, ((4, 1),))
    assert crashed.settled(()) == [(4, 1)]
    assert crashed.settled(((0, 2), (BELOW, 1), (BELOW | 7, 3))) == [(4, 1), (0, 1), (7, 3)]


def test_what_the_interrupted_recovery_would_have_shown() -> None:
    within = RecoveredState(0, (), wire(left_open(0, 0), left_open(7, 1)))
    found = first_observation(within, ((0, 1), (7, 0), (BELOW | 7, 1))).tree["a"]
    assert found.segments == (Segment(1, 2, "bytes:ff"),)
    assert [choice.component for choice in found.choices] == [BELOW]
    settled = first_observation(within, ((BELOW, 1), (BELOW | 7, 1))).tree["a"]
    assert "".join(segment.source.removeprefix(BYTES) for segment in settled.segments) == "ffff"
    assert settled.choices == ()


def test_contents_are_the_same_however_they_are_cut() -> None:
    choice = {"start": 1, "end": 2, "component": 7, "versions": [[[1, 2, "bytes:00"]], [[1, 2, "bytes:ff"]]]}
    first = first_observation(RecoveredState(0, (), wire([0, 1, "bytes:aa"], choice)), ((BELOW | 7, 0),))
    for content, verdict in (("aa00", Verdict.HOLDS), ("aaff", Verdict.VIOLATED)):
        second = Observation.from_wire(wire([0, 2, f"bytes:{content}"]))
        assert SameRecovery(first).check(HISTORY, second).verdict is verdict


@pytest.mark.parametrize(
    ("base", "below"), [(BASE, None), ("r-0123456789abcdef/3/0.1", "r-0123456789abcdef"), ("r-0123456789abcdef", None)]
)
def test_the_base_of_a_finding_says_whether_there_were_two_crashes(base: str, below: str | None) -> None:
    finding: Any = SimpleNamespace(base=base)
    assert state_below(finding) == below


class Stored:
    """A store with a base image, and a recording of two writes on it."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder / "store")
        base = folder / "base.img"
        base.write_bytes(b"\x07" * SECTORS * 512)
        path = self.store.scratch()
        events: list[tuple[Any, ...]] = [("durable",), ("started", 0)]
        events += [("write", number, 8 * number, bytes([number + 1]) * 4096, False, False) for number in range(2)]
        write_recording(path, SECTORS, f'{{"base": "{BASE}", "recorder": "crash-disk", "held": null}}', events)
        self.id = recording_id(Recording(path).digest)
        self.path = self.store.adopt_recording(path, self.id)
        self.store.keep_base(base, BASE)
        self.base = self.store.base_path(BASE)
        self.last = intervals(Recording(self.path), self.base, "cache")[-1]

    def image(self, choices: tuple[tuple[int, int], ...]) -> bytes:
        """The disk of the state `choices` of the last interval."""
        asked = (self.last.index, choices, 0, SECTORS)
        return state_bytes(Recording(self.path), self.base, "cache", *asked)


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    return Stored(tmp_path)


def test_a_finding_of_one_crash_has_one_source(stored: Stored) -> None:
    finding: Any = SimpleNamespace(recording=stored.id, base=BASE, model="cache")
    with source_of(stored.store, finding) as (source, under):
        assert (source, under) == (Source(stored.path, stored.base, "cache"), None)


def test_a_finding_of_two_crashes_has_the_disk_of_the_first_for_its_base(stored: Stored) -> None:
    choices = ((1, 1),)
    base = state_id(stored.id, stored.last.index, choices)
    finding: Any = SimpleNamespace(recording=stored.id, base=base, model="cache")
    with source_of(stored.store, finding) as (source, under):
        assert under == Source(stored.path, stored.base, "cache")
        assert source.recording == stored.path
        image = Path(source.base).read_bytes()
    assert image == stored.image(choices)
    assert image != stored.image(())
    assert not Path(source.base).exists()


def test_a_finding_without_what_it_was_found_with_is_refused(stored: Stored) -> None:
    absent = "r-" + "0" * 16
    for recording, base in ((absent, BASE), (stored.id, "b-" + "0" * 16), (stored.id, f"{absent}/1/-")):
        finding: Any = SimpleNamespace(recording=recording, base=base, model="cache")
        with pytest.raises(NotInStoreError), source_of(stored.store, finding):
            pass


def test_the_recovery_is_recorded_on_the_settled_state(stored: Stored, tmp_path: Path) -> None:
    asked = list[Any]()
    machine: Any = SimpleNamespace(record_recovery=lambda *given: asked.append(given))
    source, out = Source(stored.path, stored.base, "cache"), tmp_path / "out.pcr"
    crashed = FirstCrash(stored.last.index, ((0, 1),))
    made = record_recovery(machine, source, crashed, ((BELOW | 1, 1), (0, 0)), out, recover=RECOVER, history=HISTORY)
    assert made == Source(out, image_of(out), "cache")
    assert image_of(out).parent == out.parent and image_of(out) != out
    assert image_of(out).read_bytes() == stored.image(((0, 1), (1, 1))) == b"\x07" * SECTORS * 512
    assert [given[:5] for given in asked] == [(image_of(out), RECOVER, out, 2, 1)]


class Recovering:
    """A machine that recovers states as it is told, and remembers which."""

    def __init__(self, report: ExecutionReport) -> None:
        self._report, self.asked = report, list[Any]()

    def execute(self, *given: Any) -> ExecutionReport:
        self.asked.append(given)
        return self._report


def test_the_judge_compares_with_a_recovery_whose_files_the_kernel_read(stored: Stored) -> None:
    machine: Any = Recovering(ExecutionReport(wire([0, 2, "zero"]), (), None))
    under = Source(stored.path, stored.base, "cache")
    judge = judge_of(machine, under, 1, ((0, 1),), RECOVER)
    assert judge.first == Observation.from_wire(wire([0, 2, "zero"]))
    finding: Any = SimpleNamespace(base=state_id(stored.id, 1, ((0, 1),)), recovery=RECOVER)
    assert judge_again(machine, under, finding) == judge
    assert RECOVER.map
    assert machine.asked == [(under, 1, ((0, 1),), replace(RECOVER, map=False))] * 2


def test_a_guest_that_is_lost_now_was_not_lost_then(stored: Stored) -> None:
    machine: Any = Recovering(ExecutionReport(None, (), Casualty("the guest hangs", "console", "stacks")))
    with pytest.raises(GuestLostError) as caught:
        judge_of(machine, Source(stored.path, stored.base, "cache"), 1, (), RECOVER)
    assert "the guest hangs" in str(caught.value)
