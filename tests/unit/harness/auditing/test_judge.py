"""The judge of an audit: what its check says, how often it is asked, and what it cannot tell."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from postcrash.apps import Application, Folder
from postcrash.harness.auditing.judge import ApplicationJudge
from postcrash.model import Entry, History, Observation, Segment, Tree, Verdict, parse_workload

RAN = parse_workload("run put\nsays one\nsays two\nends\n", "w")
ROOT = Entry(".", "dir", 0o755)


def observed(content: bytes) -> Observation:
    segments = (Segment(0, len(content), f"bytes:{content.hex()}"),)
    return Observation(0, Tree([ROOT, Entry("f", "file", 0o644, inode=2, size=len(content), segments=segments)]))


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[ApplicationJudge]:
    """Its check wants as many lines in `f` as were acknowledged."""
    check = '[ $(wc -l <f) -ge $(wc -l <"$POSTCRASH_ACKNOWLEDGED") ] || { echo a line is lost; exit 1; }'
    with ApplicationJudge(Application(name="a", run="put", check=check, folder=tmp_path)) as judge:
        yield judge


@pytest.mark.parametrize(
    ("returned", "content", "verdict"),
    [
        (1, b"x", Verdict.HOLDS),
        (2, b"1\n", Verdict.HOLDS),
        (2, b"x", Verdict.VIOLATED),
        (3, b"1\n", Verdict.VIOLATED),
        (4, b"1\n2\n", Verdict.HOLDS),
    ],
)
def test_the_check_gets_what_had_been_said(
    asked: ApplicationJudge, returned: int, content: bytes, verdict: Verdict
) -> None:
    opinion = asked.check(History(RAN, returned, returned), observed(content))
    assert (opinion.verdict, opinion.message) == (verdict, "" if verdict is Verdict.HOLDS else "a line is lost")


def test_a_check_has_the_memory_and_the_disk_that_its_application_gives_it() -> None:
    """It fails where the file is larger than the disk, and where a program needs more memory than there is."""
    check = "head -c 20m /dev/zero >f && dd if=/dev/zero of=/dev/null bs=200M count=1"
    ends = []
    for memory, disk in ((512, 32), (512, 16), (128, 32)):
        application = Application(name="a", run="put", check=check, check_memory_mib=memory, check_disk_mib=disk)
        with ApplicationJudge(application) as judge:
            ends.append(judge.ask(Folder.of(Tree([ROOT])), ()).status)
    assert ends == [0, None, 1]


def test_a_check_that_failed_is_asked_anew(asked: ApplicationJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """So what is confirmed has failed twice. One that passed is not."""
    runs = []
    honest = asked._sandbox.run

    def counted(*given: Any) -> Any:
        runs.append(given)
        return honest(*given)

    monkeypatch.setattr(asked._sandbox, "run", counted)
    for content in (b"x", b"x", b"1\n", b"1\n"):
        asked.check(History(RAN, 2, 2), observed(content))
    assert len(runs) == 3
    assert asked.folders == 2


def test_checks_end_with_their_time(tmp_path: Path) -> None:
    with ApplicationJudge(Application(name="a", run="put", check="true", folder=tmp_path), seconds=0.0) as judge:
        first, second = (judge.check(History(RAN, 2, 2), observed(content)) for content in (b"x", b"y"))
    assert (first.verdict, first.is_last) == (Verdict.HOLDS, False)
    assert (second.verdict, second.is_last, second.message) == (
        Verdict.UNDECIDED,
        True,
        "the budget has no time for more checks",
    )


def test_what_does_not_mount_is_undecided(asked: ApplicationJudge) -> None:
    assert asked.check(History(RAN, 2, 2), Observation(5, Tree([]))).verdict is Verdict.UNDECIDED
