"""What the tracer sees of real programs."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from postcrash.apps.needs.assumptions import implications_of
from postcrash.apps.protocol import Protocol, TraceError, read_trace
from postcrash.apps.protocol.states import Slots, State
from postcrash.apps.protocol.trace import BlockSlot, NameSlot, SizeSlot
from postcrash.harness.guests.binaries import find_binary

from ..conftest import Traced

pytestmark = pytest.mark.slow


def told(protocol: Protocol) -> list[str]:
    """The steps, with what they change."""
    lines = []
    for step in protocol.steps:
        parts = []
        for change in protocol.changes[step.first : step.end]:
            match change.slot:
                case NameSlot(_, name):
                    parts.append(f"{'+' if change.value else '-'}{name}")
                case SizeSlot():
                    parts.append(f"={change.value!r}")
                case BlockSlot(_, block):
                    parts.append(f"#{block}")
        parts += (
            ["durable"] * len(step.durable) + ["all durable"] * step.everything + [f"says {x}" for x in step.outputs]
        )
        lines.append(" ".join([step.call, *parts]))
    return lines


def test_more_is_said_in_one_call_than_the_pipe_holds(traced: Traced) -> None:
    """The call ends only once somebody has read the beginning."""
    protocol = traced("put('a', 'x'); os.write(1, (b'y' * 99 + b'\\n') * 20000); os.fsync(put('b', 'x'))")
    (step,) = (step for step in protocol.steps if step.outputs)
    assert (step.call, set(step.outputs), len(step.outputs)) == ("write", {"y" * 99}, 20000)
    assert [step.call for step in protocol.steps][-1] == "fsync"


KILLED = """
for _ in range(50):
    child = os.fork()
    if child == 0:
        os.write(os.open('f', os.O_CREAT | os.O_WRONLY), bytes(100 << 20))
    while not (os.path.exists('f') and os.stat('f').st_size):
        pass
    os.kill(child, 9)
    os.waitpid(child, 0)
    if os.stat('f').st_size < 100 << 20:
        break
    os.unlink('f')
os.write(1, b'%d' % os.stat('f').st_size + b'\\n')
"""


def test_what_a_killed_thread_had_written_is_noted_before_others_go_on(traced: Traced) -> None:
    """Its call never ends. Whoever looks at the file sees a part of it."""
    protocol = traced(KILLED)
    (said,) = (step for step in protocol.steps if step.outputs)
    before = protocol.changes[: said.first]
    sizes = [change.value for change in before if isinstance(change.slot, SizeSlot)]
    assert sizes[-1] == int(said.outputs[0]) < 100 << 20


CASES = [
    ("put('a', 'x' * 10)", ["openat +a", "pwrite64 =10 #0"]),
    ("put('a', 'x' * 9000)", ["openat +a", "pwrite64 =4096 =8192 =9000 #0 #1 #2"]),
    ("put('a', 'x', 5000); os.truncate('a', 10)", ["openat +a", "pwrite64 =4096 =5001 #1", "truncate =10"]),
    ("os.fsync(put('a', 'x')); sync('.')", ["openat +a", "pwrite64 =1 #0", "fsync durable", "fsync durable"]),
    ("put('a', 'x'); os.sync()", ["openat +a", "pwrite64 =1 #0", "sync all durable"]),
    ("os.mkdir('d'); os.mkdir('d/e'); os.rename('d', 'f')", ["mkdir +d", "mkdir +e", "rename -d +f"]),
    ("put('a', ''); os.link('a', 'b'); os.unlink('a')", ["openat +a", "link +b", "unlink -a"]),
    ("os.symlink('x', 'a'); os.mkfifo('p')", ["symlink +a", "mknodat +p"]),
    ("put('a', 'x', flags=os.O_CREAT | os.O_WRONLY | os.O_DSYNC)", ["openat +a", "pwrite64 =1 #0 durable"]),
    ("put('a', 'x'); os.write(1, b'one\\ntwo\\n')", ["openat +a", "pwrite64 =1 #0", "write says one says two"]),
    ("f = put('a', 'x'); os.unlink('a'); os.write(f, b'y')", ["openat +a", "pwrite64 =1 #0", "unlink -a", "write #0"]),
    (
        "f = os.open('m', os.O_CREAT | os.O_RDWR); os.ftruncate(f, 9000); m = mmap.mmap(f, 9000); m[0] = 7; m.flush()\n"
        "m[8999] = 7; print(1, flush=True)",
        ["openat +m", "ftruncate =9000", "store #0", "msync durable", "store #2", "write says 1"],
    ),
    (
        "r, w = os.pipe()\nif os.fork() == 0:\n    os.read(r, 1); put('a', 'x'); os._exit(0)\n"
        "os.write(w, b'.'); os.wait(); put('b', 'y')",
        ["openat +a", "pwrite64 =1 #0", "openat +b", "pwrite64 =1 #0"],
    ),
    ("import socket; socket.socket(socket.AF_UNIX).bind('s')", ["bind +s"]),
    ("a = put('a', 'xyz'); os.copy_file_range(os.open('a', 0), put('b', ''), 3)", None),
]


@pytest.mark.parametrize(("program", "steps"), CASES)
def test_steps_are_what_the_program_does(traced: Traced, program: str, steps: list[str] | None) -> None:
    """Looking at everything after every call shows nothing else."""
    found = told(traced(program))
    assert steps is None or found == steps
    assert told(traced(program, always=True)) == found


THROUGH_MEMORY = """
import ctypes
file = os.open('m', os.O_CREAT | os.O_RDWR); os.ftruncate(file, 4096); m = mmap.mmap(file, 4096)
if os.fork() == 0:
    place = ctypes.addressof(ctypes.c_char.from_buffer(m))
    os.pwrite(os.open(f'/proc/{os.getppid()}/mem', os.O_RDWR), b'x', place); os._exit(0)
os.wait(); os.rename('m', 'n')
"""


def test_what_is_stored_through_the_memory_of_another_process_is_a_store(traced: Traced) -> None:
    assert told(traced(THROUGH_MEMORY)) == ["openat +m", "ftruncate =4096", "store #0", "rename -m +n"]


def test_the_last_state_is_what_the_program_left(traced: Traced, tmp_path: Path) -> None:
    before = "put('old', 'x' * 5000); os.mkdir('d'); put('d/keep', 'k')"
    protocol = traced("os.rename('old', 'd/new'); put('d/new', 'yy', 4095); os.truncate('d/keep', 0)", before)
    state = State(Slots(protocol), len(protocol.changes), frozenset(range(len(protocol.changes))))
    nothing = State(Slots(protocol), 0, frozenset())
    inode = next(change.before for change in protocol.changes if change.before)
    assert state.content(inode) == b"x" * 4095 + b"yy" + b"x" * 903
    assert nothing.content(inode) == b"x" * 5000
    assert [slot.name for slot in nothing.seen if isinstance(slot, NameSlot)] == ["d", "old", "keep", "new"]


PUT_IN_C = """#include <fcntl.h>
#include <unistd.h>
static void put(int file) {
    (void)!write(file, "x", 1);
}
int main(void) {
    put(open("a", O_CREAT | O_WRONLY, 0644));
    return 0;
}
"""


def test_calls_have_their_places_in_the_source(tmp_path: Path) -> None:
    """Also without frame pointers, as distributions build."""
    source, program, folder = tmp_path / "put.c", tmp_path / "put", tmp_path / "folder"
    source.write_text(PUT_IN_C)
    folder.mkdir()
    subprocess.run(["cc", "-g", "-O0", "-fomit-frame-pointer", "-o", program, source], check=True)
    command = [str(find_binary("postcrash-calls")), str(folder), str(tmp_path / "trace"), str(program)]
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    made, written = read_trace(tmp_path / "trace").steps
    assert [place.rpartition("/")[2] for place in made.places] == ["put.c:7"]
    assert [place.rpartition("/")[2] for place in written.places] == ["put.c:4", "put.c:7"]
    assert [frame.function for frame in written.stack if frame.line] == ["put", "main"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "[]",
        "[" * 100_000,
        '{"call":"begin","thread":0,"stack":[],"effects":[],"durable":[],"everything":false,"outputs":[]}',
        '{"call":"begin","thread":0,"stack":[],"effects":[],"durable":[1],"everything":false,"outputs":[],"more":1}',
        '{"call":"begin","thread":0,"stack":[],"effects":[{"kind":"size","inode":2,"size":-1}],"durable":[1],'
        '"everything":false,"outputs":[]}',
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "trace").write_text(text)
    with pytest.raises(TraceError, match="trace:1: expected a step"):
        read_trace(tmp_path / "trace")


def test_a_file_that_grows_without_end_is_too_many_changes(tmp_path: Path) -> None:
    """Such a size would be as many changes as there are blocks up to it."""
    begin = '{"call":"begin","thread":0,"stack":[],"effects":[],"durable":[DURABLE],"everything":false,"outputs":[]}'
    root = begin.replace("DURABLE", '{"inode":1,"start":0,"end":null,"own":false}')
    grown = '{"kind":"size","inode":2,"size":9223372036854775807},{"kind":"block","inode":2,"block":0,"bytes":"00"}'
    step = begin.replace("DURABLE", "").replace('"effects":[]', f'"effects":[{grown}]')
    (tmp_path / "trace").write_text(f"{root}\n{step}\n")
    with pytest.raises(TraceError, match="trace:2: more than 4000 names, sizes and blocks are changed"):
        read_trace(tmp_path / "trace")


def test_directories_within_themselves_have_names_of_bounded_length(tmp_path: Path) -> None:
    names = [{"kind": "name", "folder": 2, "name": "x" * 200, "inode": 2}] * 1000
    line = {"thread": 0, "stack": [], "everything": False, "outputs": []}
    root = {"call": "begin", "effects": [], "durable": [{"inode": 1, "start": 0, "end": None, "own": False}], **line}
    steps = [root, {"call": "rename", "effects": names, "durable": [], **line}]
    (tmp_path / "trace").write_text("".join(f"{json.dumps(step)}\n" for step in steps))
    (step,) = read_trace(tmp_path / "trace").steps
    assert len(step.about) < 3000


def test_an_open_that_waits_for_another_program_holds_up_nobody(traced: Traced) -> None:
    """Who opens a FIFO waits for its other end. A shell gives O_CREAT when it does so."""
    program = """
import time
os.mkfifo('p')
if os.fork() == 0:
    os.open('p', os.O_WRONLY | os.O_CREAT)
    os._exit(0)
time.sleep(1)
put('a', 'one')
os.open(os.path.abspath('p'), os.O_RDONLY)
"""
    assert "pwrite64" in [step.call for step in traced(program).steps]


def read_lines(folder: Path, *lines: dict[str, Any]) -> Protocol:
    """The protocol of steps in files with inodes 1 (the folder) and 2."""
    plain = {"call": "x", "thread": 0, "stack": [], "effects": [], "durable": [], "everything": False, "outputs": []}
    root = {"durable": [{"inode": 1, "start": 0, "end": None, "own": False}]}
    (folder / "trace").write_text("".join(json.dumps(plain | line) + "\n" for line in (root, *lines)))
    return read_trace(folder / "trace")


def test_a_flush_does_not_cover_what_others_change_while_it_is_under_way(tmp_path: Path) -> None:
    def grown(size: int) -> dict[str, Any]:
        return {"effects": [{"kind": "size", "inode": 2, "size": size}]}

    flush = {"durable": [{"inode": 2, "start": 0, "end": None, "own": False}]}
    protocol = read_lines(tmp_path, grown(5), grown(7), flush | {"during": 1}, flush)
    assert [step.known for step in protocol.steps] == [0, 1, 1, 2]
    covered = {each.returned: each.then for each in implications_of(protocol)[""] if each.returned is not None}
    assert covered == {2: {0}, 3: {0, 1}}
    with pytest.raises(TraceError, match="trace:2: expected a step"):
        read_lines(tmp_path, flush | {"during": 1})


@pytest.mark.parametrize(
    ("before", "program", "is_seen"),
    [
        ("", "os.setxattr(put('a', 'x'), 'user.done', b'1')", True),
        ("os.setxattr(put('a', 'x'), 'user.done', b'1')", "put('b', 'x')", True),
        ("", "os.mkdir('d'); os.setxattr('d', 'user.done', b'1'); os.removexattr('d', 'user.done')", True),
        ("", "put('a', 'x')", False),
    ],
)
def test_extended_attributes_are_noted(traced: Traced, before: str, program: str, is_seen: bool) -> None:
    protocol = traced(program, before)
    assert bool(protocol.attributed) == is_seen


CLONE_UNTRACED = 0x00800000


def run_traced(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run a Python program under the tracer, in the folder `folder` within `folder`."""
    (folder / "folder").mkdir()
    command = [str(find_binary("postcrash-calls")), str(folder / "folder"), str(folder / "trace")]
    command += [sys.executable, "-S", "-c", program]
    return subprocess.run(command, cwd=folder / "folder", capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("number", "argument"),
    [
        (56, f"{CLONE_UNTRACED | 17}"),
        (435, f"struct.pack('QQQQQQQQ', {CLONE_UNTRACED}, 0, 0, 0, 17, 0, 0, 0)"),
    ],
    ids=["clone", "clone3"],
)
def test_a_process_that_cannot_be_followed_is_refused(tmp_path: Path, number: int, argument: str) -> None:
    """What it does would be missing in the protocol."""
    program = f"""
import ctypes, os, struct
child = ctypes.CDLL(None).syscall({number}, {argument}, {64 if number == 435 else 0}, 0, 0, 0)
if child == 0:
    open("by-the-child", "w").close()
    os._exit(0)
os.waitpid(child, 0)
"""
    ran = run_traced(tmp_path, program)
    assert ran.returncode != 0
    assert "cannot be followed (CLONE_UNTRACED)" in ran.stderr
    assert not (tmp_path / "folder" / "by-the-child").exists()


IN_SECRET_MEMORY = f"""
import ctypes, mmap, os, struct
secret = ctypes.CDLL(None).syscall(447, 0)
if secret < 0:
    os._exit(9)
os.ftruncate(secret, 4096)
page = mmap.mmap(secret, 4096)
page[:64] = struct.pack("QQQQQQQQ", {CLONE_UNTRACED}, 0, 0, 0, 17, 0, 0, 0)
place = ctypes.addressof(ctypes.c_char.from_buffer(page))
if not ctypes.CDLL(None).syscall(435, ctypes.c_void_p(place), 64):
    os._exit(0)
open("by-the-parent", "w").close()
"""


def test_a_process_that_nobody_was_told_of_is_refused_whatever_its_call_said(tmp_path: Path) -> None:
    """The tracer cannot read what the kernel reads here. It might also have read it too soon."""
    ran = run_traced(tmp_path, IN_SECRET_MEMORY)
    if ran.returncode == 9:
        pytest.skip("this kernel has no memfd_secret")
    assert "cannot be followed (CLONE_UNTRACED)" in ran.stderr
    assert not (tmp_path / "folder" / "by-the-parent").exists()


def interrupted(folder: Path, program: str, action: Callable[[int, Path], None]) -> str:
    """Why the tracer refuses a shell program that begins with writing its number to the FIFO `$begun`.

    What reads this number calls `action` with it, and with the folder.
    """
    (folder / "folder").mkdir()
    os.mkfifo(folder / "begun")
    command = [str(find_binary("postcrash-calls")), str(folder / "folder"), str(folder / "trace"), "sh", "-c", program]
    environment = {**os.environ, "begun": str(folder / "begun")}
    with subprocess.Popen(
        command, cwd=folder / "folder", env=environment, stderr=subprocess.PIPE, text=True
    ) as running:
        action(int((folder / "begun").read_text()), folder / "folder")
        _, errors = running.communicate(timeout=60)
    assert running.returncode
    return errors


def test_what_changes_without_a_call_of_the_program_is_refused(tmp_path: Path) -> None:
    """Whoever it is that changes it: the program sees it, and can say so."""
    program = "echo $$ >$begun; until [ -e x ]; do :; done; echo seen"
    errors = interrupted(tmp_path, program, lambda _, place: (place / "x").touch())
    assert errors == "postcrash-calls: x changes without a call of the program, which is not followed\n"


def test_a_line_that_no_call_of_the_program_says_is_refused(tmp_path: Path) -> None:
    def say(process: int, _: Path) -> None:
        Path(f"/proc/{process}/fd/1").write_text("said\n")
        (tmp_path / "begun").write_text("go on\n")

    errors = interrupted(tmp_path, "echo $$ >$begun; read line <$begun; echo end", say)
    assert "the program says something that none of its calls of write says" in errors


def test_a_dump_of_a_process_is_a_step_of_its_own(traced: Traced) -> None:
    program = """
import resource
resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))
if os.fork() == 0:
    os.kill(os.getpid(), 11)
os.wait(); os.write(1, b"dumped\\n" if os.path.exists("core") else b"\\n"); os.rename("core", "c")
"""
    dump, said, renamed = traced(program).steps
    assert (dump.call, dump.about.split(",")[0], said.outputs, renamed.call) == (
        "core dump",
        "core",
        ("dumped",),
        "rename",
    )
    assert said.first == dump.end > 1
