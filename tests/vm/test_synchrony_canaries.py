"""An xsync that breaks one of its promises is found by the judges of external synchrony, and the real one is not."""

import shlex
import sys
from pathlib import Path

import pytest

from postcrash.harness.auditing.folder_plan import folder_plan
from postcrash.harness.auditing.synchrony import EXTERNAL_DURABILITY, judges_of_synchrony
from postcrash.harness.cli.progress import TerminalProgress
from postcrash.harness.examination.campaign import run_campaign
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.result import Examination
from postcrash.harness.examination.session import Session
from postcrash.harness.guests.binaries import find_binary
from postcrash.harness.guests.supervisor import MOUNT_POINT, show_checkout
from postcrash.model import Verdict, Workload
from postcrash.model.operation import WATCH, Operation
from postcrash.reports.explanation import explanation
from postcrash.targets import target_named

from .boxes import built

LATER = "import os, time; time.sleep(1); os.write(1, b'end' + bytes([10]))"
"""What comes last is said only when the leak, if there is one, has long been seen."""
SHARED = """
import ctypes, time
c = ctypes.CDLL(None); c.shmat.restype = ctypes.c_void_p
place = c.shmat(c.shmget(0xbeef, 4096, 0o1666), None, 0)
"""
OUTSIDE = {
    "inherited-pipe": "exec 7>&1",
    "unix-socket": """python3 -Sc "
import socket
s = socket.socket(socket.AF_UNIX); s.bind('/media/s'); s.listen()
print(s.accept()[0].recv(9).decode(), flush=True)" & while ! test -S /media/s; do sleep 0.1; done""",
    "bound-folder": "(while ! test -s /tmp/leak; do sleep 0.1; done; cat /tmp/leak) &",
    "shared-memory": f"""python3 -Sc "{SHARED}
while not ctypes.string_at(place): time.sleep(0.1)
print(ctypes.string_at(place).decode(), flush=True)" &""",
}
"""What listens outside, and says what it hears."""
LEAK = {
    "inherited-pipe": "echo leaked >&7",
    "unix-socket": """python3 -Sc "
import socket
s = socket.socket(socket.AF_UNIX); s.connect('/media/s'); s.send(b'leaked')" """,
    "bound-folder": "echo leaked >/tmp/leak",
    "shared-memory": f"""python3 -Sc "{SHARED}
ctypes.memmove(place, b'leaked', 7)" """,
}
"""How what the box has is told to what listens outside."""


def judged(store: Path, xsync: str, program: str, outside: str = ":", *, terminal: bool = False) -> Examination:
    """A program under that xsync, with something outside that listens. With `terminal`, xsync runs on one."""
    session, target = Session(store, explainer=explanation), target_named("ext4-journal")
    box = shlex.join([*shlex.split(xsync), "run", "--fs", MOUNT_POINT, *show_checkout(), "--"])
    traced = shlex.join([str(find_binary("postcrash-calls")), MOUNT_POINT, "-", "/bin/sh", "-c", program])
    boxed, terminals = f"{box} {traced}", ""
    if terminal:
        terminals = "mkdir -p /dev/pts; mount -t devpts d /dev/pts; mkfifo /media/nobody; "
        inside = shlex.quote(f"stty -onlcr; exec {traced}")
        # At the end of its input script(1) would type something, which the terminal may show.
        boxed = f"script -qec {shlex.quote(f'{box} sh -c {inside}')} /dev/null <>/media/nobody"
    # Nobody may be in the file system when it is given to the box.
    command = f"cd /; mount -t tmpfs t /media; {terminals}{outside}\nexec {boxed}"
    script = store.parent / "script.sh"
    script.write_text(command)
    workload = Workload("leak", (), (Operation(WATCH, value=f"cd /; . {script}", seconds=60),)).with_tail()
    plan = folder_plan(session, workload, target, Exploration(), judges_of_synchrony(), {})
    with TerminalProgress(None) as progress:
        (result,) = run_campaign([plan], session.crew(1), session.store, progress, fresh=True)
    return result


def canary(name: str) -> str:
    return f"env XSYNC_CANARY={name} {built('xsync-canary')}"


@pytest.mark.parametrize("name", LEAK)
def test_a_way_out_that_was_left_open_is_found(tmp_path: Path, name: str) -> None:
    program = f"echo kept >f; {LEAK[name]}; {shlex.join([sys.executable, '-Sc', LATER])}"
    result = judged(tmp_path / "store", canary(name), program, OUTSIDE[name])
    messages = [each.message for each in result.findings if each.checker == EXTERNAL_DURABILITY]
    assert any(
        message.startswith("'leaked' had left the machine, but openat f before it is lost") for message in messages
    )


@pytest.mark.parametrize("name", LEAK)
def test_a_way_out_that_is_closed_leaks_nothing(tmp_path: Path, name: str) -> None:
    program = f"echo kept >f; {LEAK[name]} 2>/dev/null; echo end"
    # What listens outside is ended with the box.
    result = judged(tmp_path / "store", str(built("xsync")), program, OUTSIDE[name])
    assert {each.verdict for each in result.rulings.values()} == {Verdict.HOLDS}, result.rulings


TOLD = "for n in 1 2 3; do head -c 100000 /dev/zero | tr '\\0' $n >$n; echo $n; done"


@pytest.mark.parametrize(
    ("name", "terminal"), [("early-output", False), ("running-commit", False), ("early-output", True)]
)
def test_an_output_that_does_not_wait_for_its_commit_is_found(tmp_path: Path, name: str, terminal: bool) -> None:
    result = judged(tmp_path / "store", canary(name), TOLD, terminal=terminal)
    assert result.rulings[EXTERNAL_DURABILITY].verdict is Verdict.VIOLATED


@pytest.mark.parametrize("terminal", [False, True])
def test_outputs_that_wait_for_their_commits_are_true(tmp_path: Path, terminal: bool) -> None:
    result = judged(tmp_path / "store", str(built("xsync")), TOLD, terminal=terminal)
    assert {each.verdict for each in result.rulings.values()} == {Verdict.HOLDS}, result.rulings
