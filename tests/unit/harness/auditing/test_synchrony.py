"""The judges of external synchrony, on a program that really ran under the tracer."""

import base64
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from postcrash.apps.protocol import TraceError, unpacked
from postcrash.apps.protocol.trace import NameSlot
from postcrash.harness.auditing.synchrony import EXTERNAL_DURABILITY, EXTERNAL_ORDER, judges_of_synchrony
from postcrash.harness.guests.binaries import find_binary
from postcrash.model import Entry, History, Observation, Segment, Tree, Verdict, Workload
from postcrash.model.judge import Opinion
from postcrash.model.operation import ENDS, SAYS, WATCH, Operation

pytestmark = pytest.mark.slow

PROGRAM = "for n in a b; do echo $n >$n; echo done $n; done; echo c >c; echo done a"
ROOT = Entry(".", "dir", 0o755)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The lines of the program, and its packed trace."""
    folder = tmp_path_factory.mktemp("folder")
    command = [str(find_binary("postcrash-calls")), str(folder), "-", "sh", "-c", PROGRAM]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=True)
    return ran.stdout.splitlines()


def traced(folder: Path, program: str, *there: str) -> list[str]:
    """What a program says in a folder with these folders in it, and its packed trace."""
    for name in there:
        (folder / name).mkdir()
    command = [str(find_binary("postcrash-calls")), str(folder), "-", "sh", "-c", program]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.splitlines()


def test_names_that_look_like_ours_are_the_programs(tmp_path: Path) -> None:
    """Only what the harness has put there is left out, and only under its whole name."""
    there = (".aged", ".aged-data", ".postcrash", "lost+found", "lost+found2")
    protocol = unpacked(traced(tmp_path, "true >.nilfs", *there))[1]
    names = {slot.name for slot in protocol.base if isinstance(slot, NameSlot) and slot.folder == protocol.root}
    assert names == {".aged-data", "lost+found", "lost+found2"}
    assert [each.slot.name for each in protocol.changes if isinstance(each.slot, NameSlot)] == [".nilfs"]


def test_a_program_that_changes_what_is_not_listed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"the program changes \.aged, which is not listed"):
        unpacked(traced(tmp_path, "rmdir .aged", ".aged"))


@pytest.mark.parametrize(
    ("unlisted", "found", "verdict"),
    [
        (("lost+found",), (), Verdict.VIOLATED),
        ((), ("lost+found",), Verdict.VIOLATED),
        ((), ("lost+found", "lost+found/f"), Verdict.HOLDS),
        ((), (), Verdict.VIOLATED),
    ],
)
def test_what_is_in_lost_and_found_is_judged(
    tmp_path: Path, unlisted: tuple[str, ...], found: tuple[str, ...], verdict: Verdict
) -> None:
    said = traced(tmp_path, "true >lost+found/f; echo done", "lost+found")
    lines = [Operation(SAYS, value=line) for line in said]
    workload = Workload("w", (), (Operation(WATCH, value="x"), *lines, Operation(ENDS)))
    entries = [Entry(path, "file" if "/" in path else "dir", inode=number) for number, path in enumerate(found, 2)]
    observation = Observation(0, Tree([ROOT, *entries]), unlisted=unlisted)
    durability, order = judges_of_synchrony()
    assert durability.check(History(workload, 3, 2), observation).verdict is verdict
    is_whole = bool(unlisted or found)
    assert (order.check(History(workload, 3, 2), observation).verdict is Verdict.HOLDS) == is_whole


def opinions(said: list[str], outputs: int, files: str, *, ended: bool = False) -> dict[str, Opinion]:
    """What both judges say if so many outputs had left, and a crash leaves these files with their own names in them."""
    lines = [Operation(SAYS, value=line) for line in said]
    workload = Workload("w", (), (Operation(WATCH, value="x"), *lines, Operation(ENDS)))
    returned = len(workload.ops) if ended else 1 + outputs
    entries = [
        Entry(name, "file", 0o600, inode=number, size=2, segments=(Segment(0, 2, f"bytes:{ord(name):02x}0a"),))
        for number, name in enumerate(files, 2)
    ]
    history = History(workload, min(returned + 1, len(workload.ops)), returned)
    return {judge.name: judge.check(history, Observation(0, Tree([ROOT, *entries]))) for judge in judges_of_synchrony()}


@pytest.mark.parametrize(
    ("outputs", "files", "durability", "order"),
    [
        (0, "", Verdict.HOLDS, Verdict.HOLDS),
        (1, "", Verdict.VIOLATED, Verdict.HOLDS),
        (1, "a", Verdict.HOLDS, Verdict.HOLDS),
        (1, "ab", Verdict.HOLDS, Verdict.HOLDS),
        (1, "b", Verdict.VIOLATED, Verdict.VIOLATED),
        (0, "b", Verdict.HOLDS, Verdict.VIOLATED),
        (2, "a", Verdict.VIOLATED, Verdict.HOLDS),
        (2, "ab", Verdict.HOLDS, Verdict.HOLDS),
        (2, "ac", Verdict.VIOLATED, Verdict.VIOLATED),
        # The same line is said again, and then rests on more.
        (3, "ab", Verdict.VIOLATED, Verdict.HOLDS),
        (3, "abc", Verdict.HOLDS, Verdict.HOLDS),
    ],
)
def test_what_an_output_rests_on(
    said: list[str], outputs: int, files: str, durability: Verdict, order: Verdict
) -> None:
    found = opinions(said, outputs, files)
    assert (found[EXTERNAL_DURABILITY].verdict, found[EXTERNAL_ORDER].verdict) == (durability, order)
    assert found[EXTERNAL_DURABILITY].relevant == bool(outputs)
    assert found[EXTERNAL_ORDER].relevant


def test_the_end_of_the_program_rests_on_everything(said: list[str]) -> None:
    assert opinions(said, 0, "abc", ended=True)[EXTERNAL_DURABILITY].verdict is Verdict.HOLDS
    lost = opinions(said, 0, "ab", ended=True)[EXTERNAL_DURABILITY]
    assert lost.message == "'the exit status' had left the machine, but openat c before it is lost"


def test_a_line_that_nobody_is_known_to_have_said_rests_on_everything(said: list[str]) -> None:
    found = opinions(["leaked", *said], 1, "ab")[EXTERNAL_DURABILITY]
    told = "'leaked' had left the machine, but openat c before it is lost; nobody is known to have said 'leaked'"
    assert found.message == told


def test_nobody_knows_which_of_several_equal_lines_was_lost(said: list[str]) -> None:
    """The first of them is, and the second one is taken for it, which rests on less."""
    lost_first = said[1:]
    assert said[0] == said[2] == "done a"
    found = opinions(lost_first, 2, "ab")[EXTERNAL_DURABILITY]
    assert (found.verdict, found.message) == (
        Verdict.UNDECIDED,
        "'done a' was said more often than it left the machine",
    )
    assert opinions(lost_first, 2, "a")[EXTERNAL_DURABILITY].verdict is Verdict.VIOLATED
    assert opinions(lost_first, 1, "ab")[EXTERNAL_DURABILITY].verdict is Verdict.HOLDS


def test_what_does_not_mount_is_undecided(said: list[str]) -> None:
    workload = Workload("w", (), tuple(Operation(SAYS, value=line) for line in said))
    for judge in judges_of_synchrony():
        assert judge.check(History(workload, 0, 0), Observation(5, Tree([]))).verdict is Verdict.UNDECIDED


def test_a_file_that_nobody_made_is_out_of_order(said: list[str]) -> None:
    assert opinions(said, 0, "abcz")[EXTERNAL_ORDER].message == "something is there that the program never made"


PACKED = base64.b64encode(zlib.compress(b"{}\n")).decode()


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], "found none"),
        (["done"], "found none"),
        (["postcrash-trace 2", PACKED], "expected 2 lines, found 1"),
        (["postcrash-trace 1", "*"], "expected a packed trace"),
        (["postcrash-trace 1", base64.b64encode(b"no zlib").decode()], "expected a packed trace"),
        (["postcrash-trace 1", PACKED[:12]], "cut off"),
        (["postcrash-trace 1", PACKED], "expected a step"),
    ],
)
def test_a_trace_that_is_damaged_is_refused(lines: list[str], reason: str) -> None:
    with pytest.raises(TraceError, match=reason):
        unpacked(lines)


def test_a_trace_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[unpacked.__module__], "FILE_BYTES_MAX", 100)
    bomb = base64.b64encode(zlib.compress(bytes(10_000))).decode()
    with pytest.raises(TraceError, match="more than 100 bytes"):
        unpacked(["postcrash-trace 1", bomb])


def test_no_trace_means_undecided() -> None:
    workload = Workload("w", (), (Operation(WATCH, value="x"), Operation(ENDS)))
    for judge in judges_of_synchrony():
        assert judge.check(History(workload, 2, 2), Observation(0, Tree([ROOT]))).verdict is Verdict.UNDECIDED
