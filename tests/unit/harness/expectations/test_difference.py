"""What one side has shown, and which part of an outcome it has not shown: every part of a tree counts."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from postcrash.harness.errors import CrashDiskEndedError, LostAtWork, OperationFailedError
from postcrash.harness.examination.examiner import examine
from postcrash.harness.examination.plan import Plan
from postcrash.harness.expectations import difference
from postcrash.harness.expectations.difference import DifferenceJudge, Reference, ReferenceOutcomes
from postcrash.harness.guests.events import ExplorationEvent
from postcrash.harness.hunting.causes import without_numbers
from postcrash.model import Entry, History, Observation, Tree, Verdict, parse_workload
from postcrash.model.choices import UndecidedBytes
from postcrash.model.observation import FsckResult
from postcrash.model.segments import Segment
from postcrash.store.store import Store
from postcrash.targets import target_named

from ..examination.conftest import interval_report
from ..examination.fake_machine import FakeMachine, pretended_plan

WORKLOAD = parse_workload("creat a\nsync", "w")
NOW, LATER = History(WORKLOAD, 1, 0), History(WORKLOAD, 1, 1)
ROOT = Entry(".", "dir", mode=0o755, nlink=2, inode=1)
FILE = Entry("a", "file", mode=0o644, nlink=1, inode=2, size=4, segments=(Segment(0, 4, "write:0"),))
KNOWN = (ROOT, FILE)


def outcome(*entries: Entry, errno: int = 0) -> Observation:
    return Observation(errno, Tree(entries))


def shown(*trees: tuple[Entry, ...]) -> ReferenceOutcomes:
    """A side that has shown each of these trees."""
    known = ReferenceOutcomes()
    for entries in trees:
        known.add(NOW, outcome(*entries))
    return known


def test_what_was_shown_at_an_instant_is_known_there_only() -> None:
    assert shown(KNOWN).has(NOW, outcome(*KNOWN))
    assert not shown(KNOWN).has(LATER, outcome(*KNOWN))


TWO_NAMES = (ROOT, replace(FILE, nlink=2), replace(FILE, path="b", nlink=2))


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (outcome(ROOT), "a is missing"),
        (outcome(*KNOWN, replace(FILE, path="b", inode=3)), "b is there"),
        (outcome(ROOT, replace(FILE, size=0, segments=())), "a has size 0, not 4"),
        (
            outcome(ROOT, replace(FILE, segments=(Segment(0, 2, "write:0"), Segment(2, 4, "zero")))),
            "a has bytes from 2 on that are zero",
        ),
        (outcome(ROOT, replace(FILE, nlink=2)), "a has link count 2, not 1"),
        (outcome(*TWO_NAMES), "b is there, a has link count 2, not 1"),
        (outcome(ROOT, replace(FILE, xattrs=(("user.x", "00"),))), "a has attributes user.x=00, not none"),
        (outcome(ROOT, replace(FILE, mode=0o600, size=0)), "a has size 0, not 4 and has mode 600, not 644"),
        (
            outcome(ROOT, Entry("a", "file", error=5)),
            "a is a file that cannot be read (errno 5), not a file of 4 bytes",
        ),
        (outcome(ROOT, Entry("a", "symlink", target="t")), "a is a symlink to t, not a file of 4 bytes"),
        (outcome(errno=117), "mounting fails with errno 117"),
        (
            outcome(*KNOWN, *(replace(FILE, path=name, inode=ord(name)) for name in "bcdef")),
            "b is there, c is there, d is there, 2 more names",
        ),
    ],
)
def test_whatever_differs_is_a_difference_and_told(found: Observation, told: str) -> None:
    known = shown(KNOWN)
    assert not known.has(NOW, found)
    assert ", ".join(known.differences(NOW, found)) == told


def test_a_name_that_was_taken_away_is_back() -> None:
    workload = parse_workload("creat a\n---\nrename a b\nfsync b", "w")
    moved, known = replace(FILE, path="b"), ReferenceOutcomes()
    known.add(History(workload, 3, 3), outcome(ROOT, moved))
    assert known.differences(History(workload, 3, 3), outcome(*KNOWN)) == ["b is missing", "a is back"]


def test_names_of_one_file_are_no_names_of_two() -> None:
    two_files = (ROOT, replace(FILE, nlink=2), replace(FILE, path="b", nlink=2, inode=3))
    assert shown(two_files).differences(NOW, outcome(*TWO_NAMES)) == ["b is the same file as a"]


def test_contents_that_were_shown_and_not_together_are_told() -> None:
    """Each block has each of its versions somewhere, and the tree is still none that was shown."""
    versions = ((Segment(0, 2, "zero"),), (Segment(0, 2, "write:0"),))
    later = tuple((segment._replace(start=2, end=4),) for (segment,) in versions)
    one = (UndecidedBytes(0, 2, 0, versions), UndecidedBytes(2, 4, 0, later))
    known = shown((ROOT, replace(FILE, segments=(), choices=one)))
    found = outcome(ROOT, replace(FILE, segments=(Segment(0, 2, "zero"), Segment(2, 4, "write:0"))))
    assert not known.has(NOW, found)
    assert known.differences(NOW, found) == ["files have contents that they never have together"]


def test_the_nearest_outcome_is_the_one_that_is_told_of() -> None:
    zeros, half = (Segment(0, 4, "zero"),), (Segment(0, 2, "write:0"), Segment(2, 4, "zero"))
    other = replace(FILE, path="b", inode=3)
    files = [(replace(FILE, segments=each), other) for each in (zeros, FILE.segments)]
    known = shown((ROOT,), *((ROOT, *each) for each in files))
    found = outcome(ROOT, FILE, replace(other, segments=half))
    assert known.nearest(NOW, found) == outcome(ROOT, *files[1])
    assert known.nearest(NOW, outcome(ROOT, replace(FILE, size=2))) == outcome(ROOT)
    assert known.nearest(LATER, found) is None


def test_differences_of_different_kinds_have_words_of_their_own() -> None:
    """Groups leave numbers out, so the words must tell a mode from a size and zeros from the bytes of free space."""
    kinds = (
        replace(FILE, mode=0o600),
        replace(FILE, size=0, segments=()),
        replace(FILE, nlink=3),
        replace(FILE, segments=(Segment(0, 4, "zero"),)),
        replace(FILE, segments=(Segment(0, 4, "stale"),)),
        replace(FILE, xattrs=(("user.x", "00"),)),
    )
    told = {without_numbers("; ".join(shown(KNOWN).differences(NOW, outcome(ROOT, kind)))) for kind in kinds}
    assert len(told) == len(kinds)


def test_two_files_are_not_two_names_of_one() -> None:
    one = replace(FILE, nlink=1)
    two = replace(FILE, path="b", inode=3)
    assert not shown((ROOT, one, two)).has(NOW, outcome(ROOT, one, replace(two, inode=2)))
    assert shown((ROOT, one, two)).has(NOW, outcome(ROOT, replace(one, inode=8), replace(two, inode=7)))


def test_what_an_fsck_has_left_is_no_outcome_of_mounting_alone() -> None:
    repaired = replace(outcome(*KNOWN), repair=FsckResult(0, ""))
    assert not shown(KNOWN).has(NOW, repaired)


def test_damage_to_the_files_of_an_aged_image_is_a_difference() -> None:
    damaged = replace(outcome(*KNOWN), aged=".aged/1 is missing")
    assert not shown(KNOWN).has(NOW, damaged)
    assert shown(KNOWN).differences(NOW, damaged) == ["of the files that fill the aged image, .aged/1 is missing"]


def of_unknown_origin(hash: str, source: str = "other") -> tuple[Entry, ...]:
    segments = (Segment(0, 2, source), Segment(2, 4, "other"))
    return ROOT, replace(FILE, segments=segments, hash=hash)


def test_bytes_of_unknown_origin_are_told_apart_by_their_hashes() -> None:
    known = shown(of_unknown_origin("01"), of_unknown_origin("02"))
    assert known.has(NOW, outcome(*of_unknown_origin("02")))
    assert not known.has(NOW, outcome(*of_unknown_origin("03")))
    assert known.differences(NOW, outcome(*of_unknown_origin("03"))) == ["a file has other bytes of unknown origin"]


def test_hashes_that_say_nothing_are_not_compared() -> None:
    """There is none if the kernel did not read the file, and the filler of free space differs from block to block."""
    assert shown(of_unknown_origin("01")).has(NOW, outcome(*of_unknown_origin("")))
    assert shown(of_unknown_origin("")).has(NOW, outcome(*of_unknown_origin("01")))
    assert shown(of_unknown_origin("01", "stale")).has(NOW, outcome(*of_unknown_origin("02", "stale")))
    known = replace(FILE, hash="01")
    assert shown((ROOT, known)).has(NOW, outcome(ROOT, replace(known, hash="02")))
    versions = ((Segment(0, 4, "zero"),), (Segment(0, 4, "other"),))
    unsettled = replace(FILE, segments=(), choices=(UndecidedBytes(0, 4, 0, versions),), hash="01")
    assert shown((ROOT, unsettled)).has(NOW, outcome(ROOT, replace(FILE, segments=versions[1], hash="02")))


TARGET = target_named("ext4-current")


def judge_against(
    machine: FakeMachine, folder: Path, monkeypatch: pytest.MonkeyPatch, repair: bool = False, guest: str = "any"
) -> DifferenceJudge:
    """A judge whose reference, the kernel of `guest`, runs on `machine`, on one disk only. Its store is in `folder`."""
    recover = TARGET.recovery(walk=True, fsck=False, repair=repair)
    plan = replace(pretended_plan(folder, TARGET, WORKLOAD, recoveries=(recover,)), guest=guest)
    monkeypatch.setattr(difference, "BOTH_DISKS", (None,))
    monkeypatch.setattr(DifferenceJudge, "_machine", lambda _: machine)
    settings: Any = None
    return DifferenceJudge(Reference("kernel:old", plan, settings, Store(folder / "store")))


RECORDED = [("started", 0), ("durable",)]
TREE = [{"path": ".", "type": "dir", "mode": 0o755, "nlink": 2, "inode": 1}]


def recovered(status: int | None) -> dict[str, Any]:
    """A report on a recovery, after a repair that ended with `status`."""
    repair = {} if status is None else {"repair": {"status": status, "output": ""}}
    return {"mount_errno": 0, "tree": TREE, "klog": [], "fsck": None, **repair}


def machine_that_shows(*reports: object) -> FakeMachine:
    events: Sequence[ExplorationEvent] = [interval_report(*(([], report) for report in reports))]
    return FakeMachine(RECORDED, explored=lambda _: events)


@pytest.mark.parametrize(
    ("status", "verdict", "said"),
    [
        (0, Verdict.HOLDS, ""),
        (1, Verdict.HOLDS, ""),
        (4, Verdict.VIOLATED, "there is no such instant; kernel:old never shows this"),
        (127, Verdict.UNDECIDED, "kernel:old: the program before the mount did not run: status 127"),
    ],
)
def test_what_nobody_would_see_of_the_reference_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, verdict: Verdict, said: str
) -> None:
    judge = judge_against(machine_that_shows(recovered(status)), tmp_path, monkeypatch, repair=True)
    opinion = judge.check(NOW, Observation.from_wire(recovered(0)))
    assert (opinion.verdict, opinion.message.startswith(said)) == (verdict, True)


def test_bytes_in_which_the_reference_itself_varies_are_undecided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def report(hash: str) -> dict[str, Any]:
        about = {"mode": 0o644, "nlink": 1, "inode": 2, "size": 4, "segments": [[0, 4, "other"]], "hash": hash * 16}
        return {**recovered(None), "tree": [*TREE, {"path": "a", "type": "file", **about}]}

    found = Observation.from_wire(report("3"))
    for reports, verdict in (["1"], Verdict.VIOLATED), (["1", "2"], Verdict.UNDECIDED), (["3"], Verdict.HOLDS):
        machine = machine_that_shows(*map(report, reports))
        judge = judge_against(machine, tmp_path, monkeypatch, guest="".join(reports))
        assert judge.check(NOW, found).verdict is verdict


class Counted(FakeMachine):
    """A machine that counts the workloads that it records."""

    runs = 0

    def record(self, *args: Any, **more: Any) -> Any:
        self.runs += 1
        return super().record(*args, **more)


def test_what_the_reference_shows_is_taken_from_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel under test is another one each time, and the reference stays the same."""
    events: Sequence[ExplorationEvent] = [interval_report(([], recovered(None)))]
    machine = Counted(RECORDED, explored=lambda _: events)
    never = Observation.from_wire({**recovered(None), "tree": [{**TREE[0], "mode": 0o700}]})

    def asked(guest: str) -> list[str]:
        judge = judge_against(machine, tmp_path, monkeypatch, guest=guest)
        instant = History(WORKLOAD, 1, 1)
        return [str(judge.check(instant, each)) for each in (Observation.from_wire(recovered(None)), never)]

    first = asked("stock")
    assert machine.runs == difference.RUNS_MAX
    assert (asked("stock"), machine.runs) == (first, difference.RUNS_MAX)
    assert (asked("stock, built otherwise"), machine.runs) == (first, 2 * difference.RUNS_MAX)


def test_a_finding_has_what_the_reference_shows_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = judge_against(machine_that_shows(recovered(None)), tmp_path, monkeypatch)
    changed = {**recovered(None), "tree": [{**TREE[0], "mode": 0o700}]}
    machine: Any = FakeMachine(RECORDED, explored=lambda _: [interval_report(([], changed))], shown=lambda _: changed)
    plan = pretended_plan(tmp_path, TARGET, WORKLOAD, judges=(judge,))
    (finding,) = examine(machine, plan, tmp_path / "run.pcr", lambda _: None).findings
    assert finding.reference_name == "kernel:old"
    assert Observation.from_wire(finding.reference_outcome) == Observation.from_wire(recovered(None))
    assert finding.explanation is not None
    root, *_ = finding.explanation.comparison
    assert (root.found, root.reference, root.differs) == (("directory", "mode 700"), ("directory", "mode 755"), True)


def test_what_the_reference_left_open_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that is less busy, its budget of seconds may be enough."""
    events: Sequence[ExplorationEvent] = [interval_report(([], None))]
    machine = Counted(RECORDED, explored=lambda _: events)
    runs = []
    for _ in range(2):
        judge = judge_against(machine, tmp_path, monkeypatch)
        assert judge.check(NOW, Observation.from_wire(recovered(None))).verdict is Verdict.UNDECIDED
        runs.append(machine.runs)
    assert runs[1] == 2 * runs[0] > 0


def test_what_was_not_recovered_completely_stays_undecided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An outcome that the reference did not show because it lost its guest may be one that it shows."""
    machine = machine_that_shows(None)
    first, again = (
        judge_against(machine, tmp_path, monkeypatch).check(NOW, Observation.from_wire(recovered(None)))
        for _ in range(2)
    )
    assert (first.verdict, again) == (Verdict.UNDECIDED, first)


LOST = LostAtWork("run", "the guest hangs", "", "", started=1, returned=1)


@pytest.mark.parametrize(
    ("theirs", "reason"),
    [
        (LOST, "kernel:old: its guest is lost too, after 'creat a': the guest hangs: what comes after is not compared"),
        (replace(LOST, returned=0), "kernel:old: its guest is lost too, in 'creat a': the guest hangs: what"),
        (replace(LOST, started=2), ""),
        (None, ""),
    ],
)
def test_a_guest_that_both_lose_in_the_run_is_no_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, theirs: LostAtWork | None, reason: str
) -> None:
    marks = [*RECORDED, ("returned", 0, 0), ("started", 1)]
    recorded = marks[: theirs.started + theirs.returned + 1] if theirs else marks
    machine = FakeMachine(recorded, lost=[theirs] * 2 if theirs else [])
    said = judge_against(machine, tmp_path, monkeypatch).why_no_change(WORKLOAD, LOST)
    assert said.startswith(reason) and bool(said) == bool(reason)


@pytest.mark.parametrize(
    ("report", "reason"), [(None, "kernel:old: a crash state could not be recovered: the guest hangs"), ({}, "")]
)
def test_a_guest_that_both_lose_in_recovery_is_no_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, report: Any, reason: str
) -> None:
    machine = machine_that_shows(report if report is None else recovered(None))
    assert judge_against(machine, tmp_path, monkeypatch).why_no_change(WORKLOAD, None) == reason


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        (OperationFailedError("no", "exchange", 95, 3), ""),
        (OperationFailedError("a later one fails", "exchange", 95, 4), "on kernel:old a later one fails"),
        (OperationFailedError("it fails otherwise", "exchange", 22, 3), "on kernel:old it fails otherwise"),
        (None, "kernel:old runs it"),
    ],
)
def test_an_operation_that_only_this_kernel_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, theirs: OperationFailedError | None, said: str
) -> None:
    judge = judge_against(FakeMachine([*RECORDED, ("returned", 0, 0)], fails=theirs), tmp_path, monkeypatch)
    assert judge.what_instead(WORKLOAD, None, OperationFailedError("no", "exchange", 95, 3)) == said


def test_what_a_lost_reference_would_do_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = FakeMachine([*RECORDED, ("returned", 0, 0)], lost=[LOST])
    judge = judge_against(machine, tmp_path, monkeypatch)
    said = judge.what_instead(WORKLOAD, None, OperationFailedError("no", "exchange", 95, 3))
    assert said == "on kernel:old the workload does not come to its end"


def test_the_reference_is_asked_about_the_disk_on_which_the_operation_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disks = list[int | None]()

    def examined(_: DifferenceJudge, plan: Plan) -> OperationFailedError:
        disks.append(plan.how.held)
        return OperationFailedError("no", "exchange", 95, 3)

    judge = judge_against(FakeMachine(RECORDED), tmp_path, monkeypatch)
    monkeypatch.setattr(DifferenceJudge, "_examined", examined)
    for held in None, 1, 7:
        assert judge.what_instead(WORKLOAD, held, OperationFailedError("no", "exchange", 95, 3)) == ""
    assert disks == [None, 1, 7]


def test_a_crash_disk_that_ends_while_it_starts_leaves_it_undecided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ends(FakeMachine):
        def boot(self) -> None:
            raise CrashDiskEndedError("the crash disk process has ended")

        def close(self) -> None: ...

    monkeypatch.setattr(difference, "Machine", lambda _: Ends([]))
    monkeypatch.setattr(difference, "settings_for_recorders", lambda settings, _: settings)
    nothing: Any = None
    target = target_named("ext4-current")
    plan = pretended_plan(tmp_path, target, WORKLOAD, recoveries=(target.recovery(walk=True, fsck=False),))
    with DifferenceJudge(Reference("kernel:old", plan, nothing, Store(tmp_path / "store"))) as judge:
        opinion = judge.check(NOW, outcome(*KNOWN))
    assert opinion.verdict is Verdict.UNDECIDED
    assert "the crash disk process has ended" in str(opinion)


def test_a_comparison_that_was_stopped_starts_no_guest_for_the_threads_that_it_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[FakeMachine]()

    class Stops(FakeMachine):
        """A machine whose comparison is stopped in its first run."""

        def boot(self) -> None:
            made.append(self)

        def close(self) -> None: ...

        def record(self, *_: object, **__: object) -> NoReturn:
            judge.stop()
            raise CrashDiskEndedError("the crash disk process has ended")

    monkeypatch.setattr(difference, "Machine", lambda _: Stops([]))
    monkeypatch.setattr(difference, "settings_for_recorders", lambda settings, _: settings)
    nothing: Any = None
    plan = pretended_plan(tmp_path, TARGET, WORKLOAD, recoveries=(TARGET.recovery(walk=True, fsck=False),))
    with DifferenceJudge(Reference("kernel:old", plan, nothing, Store(tmp_path / "store"))) as judge:
        assert "the crash disk process has ended" in str(judge.check(NOW, outcome(*KNOWN)))
        later = History(parse_workload("creat b\nsync", "later"), 1, 0)
        assert "the comparison was stopped" in str(judge.check(later, outcome(*KNOWN)))
        assert len(made) == 1
        other = threading.Thread(target=judge.check, args=(NOW, outcome(*KNOWN)))
        other.start()
        other.join()
    assert len(made) == 2
