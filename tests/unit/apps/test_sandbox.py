"""What a check may do, and what is left of one that does anything else. Real processes in a real sandbox."""

import contextlib
import io
import os
import re
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from postcrash.apps import CheckResult, Folder, Limits, Sandbox, SandboxError
from postcrash.apps import sandbox as module
from postcrash.apps.control_group import ControlGroup
from postcrash.apps.launcher import Launcher
from postcrash.apps.sandbox_files import FILES_MAX, in_memory

from .archives import FILE, LINK, SYMLINK, archive

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[3]
LINKED = archive([("f", FILE, ""), ("g", LINK, "f")])
"""A folder that only `tar` makes, because two names are one file."""

Make = Callable[..., Folder]


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(Limits(seconds=5, disk_mib=16, processes=40)) as made:
        yield made


def endless(number: int) -> str:
    """A command that does not end, and that no other run of these tests on this machine has."""
    return f"sleep {number}{os.getpid():08}"


def listed(*selection: str) -> list[str]:
    """What ps says, one line per process. It would cut long lines to the width of the terminal, or of $COLUMNS."""
    told = subprocess.run(["ps", "-ww", *selection], capture_output=True, text=True, check=False)
    return told.stdout.splitlines()


def still_running(mark: str) -> list[str]:
    """Command lines of this machine with `mark` in them, once the kernel has had time to end what is being ended."""
    for _ in range(100):
        found = [line for line in listed("-e", "-o", "args") if mark in line]
        if not found:
            break
        time.sleep(0.1)
    return found


def wait_until_running(command: str) -> None:
    for _ in range(100):
        running = listed("-e", "-o", "args")
        if command in running:
            return
        time.sleep(0.1)
    pytest.fail(f"{command} never began: {running}")


def test_a_check_finds_the_folder_and_what_was_acknowledged(sandbox: Sandbox, folder: Make) -> None:
    command = 'cat f; cat "$POSTCRASH_ACKNOWLEDGED"; exit 3'
    result = sandbox.run(folder(f=b"content\n"), command, ["it's 1", '"two" $HOME'])
    assert (result.status, result.output) == (3, 'content\nit\'s 1\n"two" $HOME\n')


def test_as_much_as_a_program_may_say_is_acknowledged(sandbox: Sandbox, folder: Make) -> None:
    assert sandbox.run(folder(), 'wc -l <"$POSTCRASH_ACKNOWLEDGED"', ["x" * 200] * 4000).output == "4000\n"


def test_each_check_has_a_folder_of_its_own(sandbox: Sandbox, folder: Make) -> None:
    made = folder(f=b"old\n")
    assert sandbox.run(made, "echo new >f; echo more >g", []).status == 0
    assert sandbox.run(made, "cat f; ls", []).output == "old\nf\n"


def test_a_check_can_write_nothing_else(sandbox: Sandbox, folder: Make, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("untouched")
    places = [outside, Path("/usr/postcrash-escaped"), Path("/etc/postcrash-escaped"), Path("/postcrash-escaped")]
    for place in places:
        sandbox.run(folder(), f"echo escaped >{place}", [])
    assert outside.read_text() == "untouched"
    assert not any(place.exists() for place in places[1:])
    assert sandbox.run(folder(), f"cat {outside}", []).status != 0
    assert sandbox.run(folder(), "echo escaped >>/usr/bin/env", []).status != 0


def test_a_check_sees_what_it_is_told_of(folder: Make, tmp_path: Path) -> None:
    (tmp_path / "expected").write_text("seen")
    with Sandbox(visible=[tmp_path]) as sandbox:
        assert sandbox.run(folder(), f"cat {tmp_path}/expected", []).output == "seen"
        assert sandbox.run(folder(), f"echo x >{tmp_path}/expected", []).status != 0


def test_a_check_reaches_no_network_and_no_process(sandbox: Sandbox, folder: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connect = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"
        assert "refused" in sandbox.run(folder(), f'/usr/bin/python3 -c "{connect}"', []).output
    assert sandbox.run(folder(), f"kill -9 {os.getpid()}", []).status != 0
    assert str(os.getpid()) not in sandbox.run(folder(), "ls /proc", []).output.split()


def test_nothing_is_left_of_a_check_that_hangs(sandbox: Sandbox, folder: Make) -> None:
    started = time.monotonic()
    result = sandbox.run(folder(), f"setsid {endless(1)} & {endless(1)}", [])
    assert result.status is None
    assert time.monotonic() - started < 30
    assert still_running(endless(1)) == []


def test_nothing_is_left_of_a_check_that_leaves_a_process_behind(sandbox: Sandbox, folder: Make) -> None:
    assert sandbox.run(folder(), f"setsid {endless(2)} >/dev/null 2>&1 &", []).status == 0
    assert still_running(endless(2)) == []


def test_a_check_that_forks_and_forks_ends(sandbox: Sandbox, folder: Make) -> None:
    """Without control groups it ends with its time; it has an end of its own for the sake of such a machine."""
    forks = f"[ $1 = 0 ] && exec {endless(3)}; forks $(($1 - 1)) & forks $(($1 - 1)) & wait"
    result = sandbox.run(folder(), f"forks() {{ {forks}; }}; forks 8", [])
    assert result == CheckResult(None, "the check wanted more than 40 processes" if has_control_groups() else "")
    assert still_running(endless(3)) == []


def has_control_groups() -> bool:
    group = ControlGroup.of(1)
    if group is not None:
        group.remove()
    return group is not None


def test_checks_at_one_time_do_not_take_each_other_s_processes(folder: Make) -> None:
    many = "for i in $(seq 25); do sleep 1 & done; wait; exit 0"
    with Sandbox(Limits(seconds=10, processes=40)) as sandbox, ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: sandbox.run(folder(), many, []), range(4)))
    assert results == [CheckResult(0, "")] * 4


def test_a_limit_that_a_check_runs_into_is_no_verdict(sandbox: Sandbox, folder: Make) -> None:
    """Not even if the check goes on and is content."""
    too_large = "the check wrote a file of more than 16 MiB"
    assert sandbox.run(folder(), "head -c 17m /dev/zero >f", []) == CheckResult(None, too_large)
    if has_control_groups():
        forks = "(for i in $(seq 50); do sleep 1 & done) 2>/dev/null; exit 0"
        assert sandbox.run(folder(), forks, []) == CheckResult(None, "the check wanted more than 40 processes")
        assert sandbox.run(folder(), "true", []) == CheckResult(0, "")


def test_a_box_that_cannot_start_the_check_is_no_verdict(folder: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TRIES", 2)
    with Sandbox(Limits(processes=3)) as sandbox:
        if has_control_groups():
            with pytest.raises(SandboxError, match=r"too many processes|Resource temporarily"):
                sandbox.run(folder(), "exit 0", [])


def test_what_the_check_says_is_the_check_s(sandbox: Sandbox, folder: Make) -> None:
    for said in ("bwrap: no", "the sandbox has no room for the folder, or cannot unpack it"):
        assert sandbox.run(folder(), f"echo '{said}'; exit 1", []) == CheckResult(1, f"{said}\n")


def test_a_check_cannot_fill_the_disk(sandbox: Sandbox, folder: Make) -> None:
    for place in ("big", "/tmp/big"):
        assert sandbox.run(folder(), f"dd if=/dev/zero of={place} bs=1M count=40", []).status != 0
    several = "for i in 1 2 3 4; do dd if=/dev/zero of=f$i bs=1M count=8 2>&1; done; du -sm . | cut -f1"
    assert int(sandbox.run(folder(), several, []).output.split()[-1]) <= 16
    for place in ("/", "/etc", "/dev", "/dev/shm"):
        fills = f"for i in 1 2 3; do head -c 8m /dev/zero >{place}/f$i; done; cat {place}/f? | wc -c"
        assert int(sandbox.run(folder(), fills, []).output.split()[-1]) <= 16 << 20
    assert sandbox.run(folder(), "echo x >/dev/shm/x && echo x >/dev/null && cat /dev/shm/x", []).output == "x\n"


def test_a_check_that_loses_its_output_has_begun_all_the_same(sandbox: Sandbox, folder: Make) -> None:
    for what in ("echo lost >/dev/stderr", "truncate -s 0 /dev/stdout", "head -c 5 </dev/zero >/dev/stdout"):
        for status in (0, 1):
            assert sandbox.run(folder(f=b"x"), f"{what}; exit {status}", []).status == status
            assert sandbox.run(LINKED, f"{what}; exit {status}", []).status == status


def test_a_check_changes_nothing_of_the_kernel(sandbox: Sandbox, folder: Make) -> None:
    """Root without a capability may still write to what root owns."""
    for file in ("kernel/core_pattern", "kernel/printk_ratelimit_burst", "vm/swappiness"):
        value = sandbox.run(folder(), f"cat /proc/sys/{file}", [])
        assert value.status == 0
        written = sandbox.run(folder(), f"echo '{value.output.strip()}' >/proc/sys/{file}", [])
        assert written.status == 2
        assert re.search("Read-only file system|Permission denied", written.output)


def test_what_a_check_says_is_bounded(sandbox: Sandbox, folder: Make) -> None:
    result = sandbox.run(folder(), "head -c 10000000 /dev/zero | tr '\\0' x", [])
    assert 0 < len(result.output) <= 1 << 17


def test_a_folder_that_cannot_be_unpacked_is_no_folder(sandbox: Sandbox, folder: Make) -> None:
    for broken in (folder(big=bytes(20 << 20)), Folder(b"no archive" * 100)):
        with pytest.raises(SandboxError, match="cannot unpack it"):
            sandbox.run(broken, "true", [])


def test_a_hostile_folder_stays_in_its_place(sandbox: Sandbox) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        link = tarfile.TarInfo("out")
        link.type, link.linkname = tarfile.SYMTYPE, "/tmp"
        archive.addfile(link)
        for name in ("out/through-the-link", "../above"):
            archive.addfile(tarfile.TarInfo(name))
    with contextlib.suppress(SandboxError):
        sandbox.run(Folder(made.getvalue()), "true", [])
    assert not Path("/tmp/through-the-link").exists()
    assert not Path("/above").exists()


def test_no_folder_leads_out_by_way_of_what_is_seen_in_it(tmp_path: Path) -> None:
    """An application's own files can lie below the place where its folder is. A link must not take their place."""
    victim = tmp_path / "victim"
    folder = archive([("work", SYMLINK, f"/oldroot{victim}")])
    script = f"""
from pathlib import Path
from postcrash.apps import Folder, Limits, Sandbox, SandboxError
Path("/mnt/work/app").mkdir(parents=True)
Path("/mnt/work/app/check.sh").write_text("echo found")
with Sandbox(Limits(), [Path("/mnt/work/app")]) as sandbox:
    try:
        print(sandbox.run(Folder(bytes.fromhex({folder.archive.hex()!r})), "sh /mnt/work/app/check.sh", []))
    except SandboxError as error:
        print("refused")
    print(sandbox.run(Folder(bytes(1024)), "sh /mnt/work/app/check.sh", []).output)
"""
    victim.mkdir()
    command = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs x /mnt && exec "$0" -c "$1"', sys.executable, script]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told.split() == ["refused", "found"]
    assert list(victim.iterdir()) == []


def test_few_descriptors_are_enough_for_many_checks(tmp_path: Path) -> None:
    script = f"""
import resource
from concurrent.futures import ThreadPoolExecutor
from postcrash.apps import Folder, Sandbox
from tests.unit.apps.archives import FILE, archive
folder = archive([(f"f{{number}}", FILE, "x") for number in range({FILES_MAX})])
with Sandbox() as sandbox, ThreadPoolExecutor(16) as pool:
    list(pool.map(lambda _: sandbox.run(Folder(bytes(1024)), "sleep 1", []), range(16)))  # starts what starts checks
    resource.setrlimit(resource.RLIMIT_NOFILE, (110, 110))
    results = pool.map(lambda _: sandbox.run(folder, "sleep 0.5; ls | wc -l", []), range(32))
    print({{(result.status, result.output) for result in results}})
"""
    told = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert told.stdout == f"{{(0, '{FILES_MAX}\\n')}}\n", told.stderr


def test_a_program_that_the_sandbox_lacks_is_no_verdict(sandbox: Sandbox, folder: Make) -> None:
    with pytest.raises(SandboxError, match="lacks a program"):
        sandbox.run(folder(), "/nowhere/program", [])


@pytest.mark.skipif(os.geteuid() != 0, reason="to another user modes mean something")
def test_modes_mean_nothing_to_root(sandbox: Sandbox) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        info = tarfile.TarInfo("f")
        info.mode, info.size = 0, 5
        archive.addfile(info, io.BytesIO(b"found"))
    assert sandbox.run(Folder(made.getvalue()), "cat f", []).output == "found"


def test_a_check_can_run_programs_under_another_name(sandbox: Sandbox, folder: Make) -> None:
    """Some refuse to run as root."""
    result = sandbox.run(folder(f=b"found\n"), "unshare --map-user=5 sh -c 'id -u; cat f; echo more >>f'", [])
    assert (result.status, result.output) == (0, "5\nfound\n")


def launchers() -> list[int]:
    """The processes of this one that start checks."""
    told = listed("-o", "pid=,args=", "--ppid", str(os.getpid()))
    return [int(line.split()[0]) for line in told if "launcher.py" in line]


def test_one_process_starts_the_checks_that_follow_each_other(folder: Make) -> None:
    before = launchers()
    with Sandbox() as sandbox:
        for status in (0, 3, 0):
            assert sandbox.run(folder(), f"exit {status}", []).status == status
        assert len(launchers()) == len(before) + 1
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda _: sandbox.run(folder(), "sleep 1", []), range(2)))
        assert len(launchers()) == len(before) + 2
    assert launchers() == before


def test_a_check_whose_starter_is_killed_is_run_again(folder: Make) -> None:
    before = launchers()
    with Sandbox() as sandbox, ThreadPoolExecutor(1) as pool:
        assert sandbox.run(folder(), "true", []).status == 0
        (launcher,) = set(launchers()) - set(before)
        os.kill(launcher, signal.SIGKILL)
        assert sandbox.run(folder(), "exit 3", []).status == 3
        (launcher,) = set(launchers()) - set(before)
        going_on = pool.submit(sandbox.run, folder(), f"timeout 2 {endless(7)}; exit 3", [])
        wait_until_running(endless(7))
        os.kill(launcher, signal.SIGKILL)
        assert going_on.result().status == 3
    assert launchers() == before


def test_where_nothing_starts_checks_there_is_no_verdict(folder: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    monkeypatch.setattr(module, "_TRIES", 3)
    with (
        Sandbox() as sandbox,
        pytest.raises(SandboxError, match="no check can be run: what starts the checks has ended"),
    ):
        sandbox.run(folder(), "true", [])


CHECKING = """\
import sys
from postcrash.apps import Folder, Sandbox
print("begins", flush=True)
Sandbox().run(Folder(b"\\0" * 1024), sys.argv[1], [])
"""


def test_nothing_is_left_of_a_check_whose_postcrash_is_killed(tmp_path: Path) -> None:
    """Neither the check nor what has started it, long before the check's time is over."""
    with subprocess.Popen([sys.executable, "-c", CHECKING, endless(4)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"begins\n"
        wait_until_running(endless(4))
        process.kill()
    assert still_running(endless(4)) == []


def test_all_that_makes_a_box_is_killed_together() -> None:
    """While bubblewrap makes a sandbox, its child does not end with it."""
    launcher = Launcher(None, 1 << 20, 1 << 20)
    with in_memory() as given, in_memory() as said:
        launcher.start(["/bin/sh", "-c", f"{endless(6)} & wait"], (given.fileno(), said.fileno()), 60)
        wait_until_running(endless(6))
        launcher.close()
    assert still_running(endless(6)) == []


def test_a_check_can_be_interrupted_by_its_own_signal(sandbox: Sandbox, folder: Make) -> None:
    """A check that stops its server by SIGINT finds the signal as it is elsewhere."""
    command = "trap 'echo interrupted; exit 0' INT; kill -INT $$; exit 1"
    assert sandbox.run(folder(), command, []).output == "interrupted\n"


def test_a_check_that_cannot_begin_beside_others_is_tried_again(folder: Make) -> None:
    forks = f"[ $1 = 0 ] && exec {endless(5)}; forks $(($1 - 1)) & forks $(($1 - 1)) & wait"
    with Sandbox(Limits(seconds=3, processes=60)) as sandbox, ThreadPoolExecutor(2) as pool:
        bomb = pool.submit(sandbox.run, folder(), f"forks() {{ {forks}; }}; forks 8", [])
        time.sleep(1)
        assert sandbox.run(folder(), "exit 0", []).status is not None
        bomb.result()
