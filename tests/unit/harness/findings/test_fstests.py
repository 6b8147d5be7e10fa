"""Which power cut a test of fstests makes: by what the crash of a finding lost."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash._core import Interval, Recording, intervals, write_recording
from postcrash.harness.findings.fstests import fstests_test
from postcrash.harness.findings.reproduce import Reproducer, cut_for_fstests
from postcrash.reports.script.shell_operations import NoCommandError
from postcrash.reports.script.shell_script import Cut, FlakeyCut, LogCut
from postcrash.targets import target_named

SECTORS = 64
WORKLOAD = "creat A\n---\ncreat B\nfsync B\n"
DATA = bytes(4096)
EVENTS: list[tuple[Any, ...]] = [
    *(("started", 0), ("returned", 0, 0), ("durable",), ("started", 1), ("returned", 1, 0), ("started", 2)),
    *(("write", 1, 8, DATA, False, False), ("complete", 1), ("flush", 2), ("complete", 2)),
    *(("write", 3, 16, DATA, False, False), ("write", 4, 24, DATA, False, False), ("complete", 3), ("complete", 4)),
    *(("flush", 5), ("complete", 5), ("returned", 2, 0)),
    *(("write", 6, 32, DATA, False, False), ("complete", 6)),
]
"""The fsync flushes twice: with one write before the first flush, and two before the second. One write comes later."""
ROOT = {"path": ".", "type": "dir", "mode": 0o755, "nlink": 2, "inode": 0, "size": 0}
SEEN: dict[str, Any] = {"klog": [], "fsck": None}
UNMOUNTED, EMPTY = {"mount_errno": 5, "tree": [], **SEEN}, {"mount_errno": 0, "tree": [ROOT], **SEEN}


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Recording, list[Interval]]:
    base, path = tmp_path / "base.img", tmp_path / "made.pcr"
    base.write_bytes(bytes(SECTORS * 512))
    write_recording(path, SECTORS, "{}", EVENTS)
    recording = Recording(path)
    return recording, intervals(recording, base, "cache")


def finding(
    lost: tuple[int, ...],
    checker: str = "P5",
    observation: Any = EMPTY,
    started: int = 3,
    returned: int = 2,
    torn: int = 0,
    model: str = "cache",
) -> Any:
    return SimpleNamespace(
        **{"lost": lost, "torn": torn, "checker": checker, "observation": observation, "model": model},
        **{"workload_text": WORKLOAD, "workload_name": "w", "started": started, "returned": returned},
        **{"id": "f-0123456789abcdef", "base": "b-0123456789abcdef", "reference_name": ""},
    )


def cut(recorded: tuple[Recording, list[Interval]], pieces: int, crash: Any) -> tuple[Cut, bool]:
    """The cut of a crash in the first crash interval of the fsync, or after it, with so many pieces in flight."""
    recording, known = recorded
    instant = (crash.started, crash.returned)
    interval = next(
        each for each in known if len(each.pieces) == pieces and instant in [told[1:] for told in each.instants]
    )
    return cut_for_fstests(crash, recording, interval)


def test_a_crash_that_lost_nothing_is_a_replay_up_to_the_next_flush(recorded: Any) -> None:
    assert cut(recorded, 1, finding(())) == (LogCut(3, 0), True)
    assert cut(recorded, 2, finding(())) == (LogCut(3, 1), True)
    assert cut(recorded, 1, finding((), started=3, returned=3)) == (LogCut(3, 0, (), is_inside=False), True)


def test_or_dm_flakey_where_a_crash_between_operations_shows_it(recorded: Any) -> None:
    assert cut(recorded, 1, finding((), "mounts", UNMOUNTED)) == (FlakeyCut(3), True)
    assert cut(recorded, 1, finding((), "mounts", UNMOUNTED, 3, 3)) == (FlakeyCut(3), True)


def test_a_crash_that_lost_all_is_a_replay_up_to_the_flush_before(recorded: Any) -> None:
    assert cut(recorded, 1, finding((0,), "mounts", UNMOUNTED)) == (LogCut(3, -1), True)
    assert cut(recorded, 2, finding((0, 1))) == (LogCut(3, 0), True)
    assert cut(recorded, 1, finding((0,), started=3, returned=3)) == (LogCut(3, -1, (), is_inside=False), True)


def test_a_crash_that_lost_a_part_cannot_be_made(recorded: Any) -> None:
    assert cut(recorded, 2, finding((1,), "mounts", UNMOUNTED)) == (LogCut(3, 1), False)
    assert cut(recorded, 2, finding((0, 1), torn=1))[1] is False


def test_no_replay_ends_where_a_write_completes(recorded: Any, tmp_path: Path) -> None:
    recording, _ = recorded
    through = recording, intervals(recording, tmp_path / "base.img", "through")
    assert cut(through, 1, finding(())) == (LogCut(3, 0), False)
    assert cut(through, 2, finding((0, 1)))[1] is False


def written(store: Any, crash: Any, tried: Reproducer | None) -> str:
    return fstests_test(
        store,
        crash,
        target=target_named("ext4-current"),
        name="999",
        statement="It is so.",
        script=tried,
        kernel="UML 6.1",
    ).text


@pytest.fixture
def store(tmp_path: Path, recorded: Any) -> Any:
    """A store with the recording and its base image."""
    paths = {"recording_path": tmp_path / "made.pcr", "base_path": tmp_path / "base.img"}
    return SimpleNamespace(**{name: lambda _, path=path: path for name, path in paths.items()})


def crashed(recorded: Any, lost: tuple[int, ...]) -> Any:
    crash = finding(lost, "mounts", UNMOUNTED)
    crash.interval = next(each.index for each in recorded[1] if len(each.pieces) == 2)
    crash.recording, crash.message, crash.kernel = "r-0123456789abcdef", "it does not mount", "UML 6.1"
    crash.is_repaired, crash.explanation = False, None
    return crash


def test_a_power_cut_that_was_tried_and_showed_it_is_taken(recorded: Any, store: Any) -> None:
    crash = crashed(recorded, (1,))
    untried = written(store, crash, None)
    assert "weaker check" in unwrapped(untried) and "This test has not been run." in untried
    shown = unwrapped(written(store, crash, Reproducer("", FlakeyCut(3), (1, 1, 0))))
    assert (
        "A script with this power cut showed it on UML 6.1, 2 of 3 times. This test itself has not been run." in shown
    )
    assert "_flakey_drop_and_remount" in shown and "weaker" not in shown


@pytest.mark.parametrize("cut_made", [FlakeyCut(3), LogCut(3, 1, (SimpleNamespace(words="w"),))])  # type: ignore[arg-type]
def test_one_that_did_not_or_that_fstests_cannot_make_is_not(recorded: Any, store: Any, cut_made: Cut) -> None:
    codes = (0,) if isinstance(cut_made, FlakeyCut) else (1,)
    text = written(store, crashed(recorded, (1,)), Reproducer("", cut_made, codes))
    assert "weaker check" in unwrapped(text) and "This test has not been run." in text


def test_what_no_test_can_show_is_refused(recorded: Any, store: Any) -> None:
    crash = crashed(recorded, ())
    crash.model = "lying"
    with pytest.raises(NoCommandError, match="whose flushes do not persist"):
        written(store, crash, None)
    crash.model, crash.base = "cache", "r-0123456789abcdef/3/-"
    with pytest.raises(NoCommandError, match="a second time, within recovery"):
        written(store, crash, None)


def unwrapped(text: str) -> str:
    return " ".join(line.removeprefix("#").strip() for line in text.splitlines())
