"""xsync in a guest: what leaves the box waits for the disk, and nothing else leaves it."""

import re
import shlex
from pathlib import Path

import pytest

from postcrash.harness.errors import UsageError

from .boxes import SLEEPING, UP, XSYNC, InGuest, built
from .command import postcrash


def test_a_command_says_what_it_would_say_and_its_files_are_there(in_guest: InGuest) -> None:
    said = in_guest(
        "$xs sh -c 'cat; echo kept >a; sync; pwd; exit 3' <<E\nread\nE\necho $?; cat /mnt/a; umount /mnt; echo $?"
    )
    assert said == ["read", "/mnt", "3", "kept", "0"]


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("nothing-of-this-name", 127),
        ("/etc/passwd", 126),
        ("sh -c 'kill -9 $$'", 137),
        ("sh -c 'kill -9 1; exit 4'", 4),
    ],
)
def test_a_status_is_that_of_a_shell(in_guest: InGuest, command: str, status: int) -> None:
    assert in_guest(f"$xs {command}; echo $?")[-1] == str(status)


def test_both_streams_are_one_where_they_are_one_outside(in_guest: InGuest) -> None:
    said = in_guest("$xs sh -c 'for i in 1 2 3; do echo out $i; echo err $i >&2; done'")
    assert said == [f"{stream} {number}" for number in (1, 2, 3) for stream in ("out", "err")]


OUTSIDE = """
mount -n -t tmpfs outside /media; mkfifo /media/fifo; echo old >/media/file; exec 7>/tmp/inherited
python3 -c "
import socket, time
for address in ('/media/socket', '\\0outside'):
    made = socket.socket(socket.AF_UNIX); made.bind(address); made.listen(); globals()[address] = made
print('ready', flush=True); time.sleep(50)" &
cat /media/fifo >/tmp/fifo & for i in $(seq 100); do test -S /media/socket || sleep 0.2; done
"""
"""What the outside has, of which the box must get nothing."""
KEY = 'python3 -c "import ctypes; ctypes.CDLL(None).shmget(0xbeef, 4096, 0o1600)"'
"""Shared memory of the outside."""


def attempts(*words: str) -> str:
    return f"python3 /mnt/attempts.py {' '.join(words)}"


def test_every_other_way_out_is_closed(in_guest: InGuest) -> None:
    """System calls: add_key, bpf, perf_event_open, io_uring_setup, mount, reboot, unshare of a user namespace."""
    tried = attempts(
        *("connect", "/media/socket", "fifo", "/media/fifo", "write", "/media/file", "write", "/etc/new"),
        *("abstract", "outside", "family", "40", "family", "17", "family", "38", "descriptor", "7"),
        *("call", "248", "call", "321", "call", "298", "call", "425", "call", "169", "device", "/mnt/disk"),
        *("write", "/proc/sys/kernel/hostname", "write", "/proc/sysrq-trigger", "write", "/tmp/private"),
    )
    inside = f"$xs sh -c '{tried}; ipcs -m | grep -c beef'"
    said = in_guest(f"{OUTSIDE}\n{KEY}\n{inside}; cat /media/file; ls /tmp/private; cat /tmp/inherited /tmp/fifo")
    assert said[0] == "ready"
    assert said[1:] == [
        "connect /media/socket ECONNREFUSED",
        "fifo /media/fifo ENXIO",
        "write /media/file EROFS",
        "write /etc/new EROFS",
        "abstract outside ECONNREFUSED",
        "family 40 EAFNOSUPPORT",
        "family 17 EAFNOSUPPORT",
        "family 38 EAFNOSUPPORT",
        "descriptor 7 EBADF",
        "call 248 EPERM",
        "call 321 EPERM",
        "call 298 EPERM",
        "call 425 ENOSYS",
        "call 169 EPERM",
        "device /mnt/disk EPERM",
        "write /proc/sys/kernel/hostname EROFS",
        "write /proc/sysrq-trigger EROFS",
        "write /tmp/private done",
        "0",
        "old",
        "ls: cannot access '/tmp/private': No such file or directory",
    ]


@pytest.mark.parametrize(
    ("canary", "attempt", "said"),
    [
        ("inherited-pipe", attempts("descriptor", "7"), "descriptor 7 done"),
        ("unix-socket", attempts("connect", "/media/socket"), "connect /media/socket done"),
        ("bound-folder", attempts("write", "/tmp/inherited"), "write /tmp/inherited done"),
        ("shared-memory", "ipcs -m", "beef"),
    ],
)
def test_a_way_out_that_is_left_open_is_seen(in_guest: InGuest, canary: str, attempt: str, said: str) -> None:
    broken = f"XSYNC_CANARY={canary} {built('xsync-canary')} run --fs /mnt -- {attempt}"
    assert any(said in line for line in in_guest(f"{OUTSIDE}\n{KEY}\n{broken}"))


CORE_LIMIT = """
import ctypes, resource
c = ctypes.CDLL(None)
c.mmap.restype = ctypes.c_void_p
place = c.mmap(ctypes.c_void_p(1 << 33), ctypes.c_size_t(4096), 3, 0x32, -1, ctypes.c_long(0))
print(place == 1 << 33, c.syscall(302, 0, 4, ctypes.c_void_p(place), None), resource.getrlimit(4))
"""


def test_a_limit_on_core_files_cannot_be_lifted(in_guest: InGuest, tmp_path: Path) -> None:
    """A pointer of which the low half is 0 is one, too."""
    (tmp_path / "limit.py").write_text(CORE_LIMIT)
    assert in_guest(f"cp {tmp_path}/limit.py /mnt; $xs python3 limit.py") == ["True 0 (1, 1)"]


def test_landlock_which_the_supervisor_would_not_obey_is_not_there(in_guest: InGuest) -> None:
    assert in_guest(f"$xs {attempts('call', '444', 'call', '445', 'call', '446')}") == [
        f"call {number} ENOSYS" for number in (444, 445, 446)
    ]


def test_a_new_file_of_another_file_system_is_made_once(in_guest: InGuest) -> None:
    flags = "os.O_CREAT | os.O_EXCL | os.O_SYNC | os.O_WRONLY"
    made = "; ".join(f"print(os.write(os.open('{path}', {flags}), b'x'))" for path in ("/tmp/new", "new", "./d/new"))
    assert in_guest(f'mkdir /mnt/d; $xs python3 -c "import os; {made}"') == ["1", "1", "1"]


NO_DESCRIPTOR_LEFT = """
import os
held = []
try:
    while True:
        held.append(os.dup(0))
except OSError:
    pass
for path, flags in (('old', os.O_TRUNC), ('new', os.O_CREAT)):
    try:
        os.open(path, os.O_SYNC | os.O_WRONLY | flags)
    except OSError as error:
        print(error.errno)
for one in held:
    os.close(one)
print(os.stat('old').st_size, os.path.exists('new'))
os.close(os.open('old', os.O_SYNC | os.O_WRONLY | os.O_TRUNC))
print(os.stat('old').st_size)
"""


def test_an_open_without_a_descriptor_left_changes_nothing(in_guest: InGuest, tmp_path: Path) -> None:
    (tmp_path / "full.py").write_text(NO_DESCRIPTOR_LEFT)
    said = in_guest(f"printf 12345 >/mnt/old; cp {tmp_path}/full.py /mnt; $xs python3 full.py")
    assert said == ["24", "24", "5 False", "0"]


def test_output_that_finds_no_room_is_told(in_guest: InGuest) -> None:
    said = in_guest("$xs echo out >/dev/full; echo $?; $xs sh -c 'echo out; exit 3' >/dev/full; echo $?")
    assert [line for line in said if "output is lost" not in line] == ["1", "3"]
    assert len(said) == 4
    assert in_guest("$xs sh -c 'echo out; echo err >&2' 2>/dev/full; echo $?") == ["out", "1"]


def test_only_its_own_cover_is_taken_away(in_guest: InGuest) -> None:
    uncovered = "umount /mnt; wait; ls /mnt/f"
    assert in_guest(f">/mnt/f; $xs {SLEEPING} & {UP}; {uncovered}") == ["/mnt/f"]
    above = "mount -n -t tmpfs above /mnt; wait; mount | grep -c 'above on /mnt'; umount /mnt; umount /mnt; ls /mnt/f"
    said = in_guest(f">/mnt/f; $xs {SLEEPING} & {UP}; {above}")
    assert said[-2:] == ["1", "/mnt/f"] and "something is mounted on the cover" in said[0]


def test_nobody_outside_sees_the_files_while_the_box_runs(in_guest: InGuest) -> None:
    box = "$xs sh -c 'echo new >f; echo up; sleep 6' >/tmp/up"
    said = in_guest(f"echo old >/mnt/f\n{box} & {UP}; ls -d /mnt/f; wait; cat /mnt/f")
    assert said == ["ls: cannot access '/mnt/f': No such file or directory", "new"]


def test_a_folder_of_the_outside_s_tmp_is_shown_if_asked_for(in_guest: InGuest) -> None:
    shown = XSYNC.replace("--fs", "--show /tmp/a/b --fs")
    made = "mkdir -p /tmp/a/b; echo text >/tmp/a/b/file"
    said = in_guest(f"{made}; {shown} sh -c 'cat /tmp/a/b/file; echo x >/tmp/a/b/file; echo x >/tmp/a/new'; ls /tmp/a")
    assert said[0] == "text" and "Read-only file system" in said[1] and said[2:] == ["b"]


def test_the_same_user_outside_cannot_look_into_the_box(in_guest: InGuest) -> None:
    as_user = XSYNC.replace("--fs", "--user nobody --fs")
    look = "ls /proc/[0-9]*/cwd/secret 2>/dev/null | wc -l"
    as_nobody = f"setpriv --reuid nobody --clear-groups sh -c '{look}'"
    assert in_guest(f"echo x >/mnt/secret; {as_user} {SLEEPING} & {UP}; {as_nobody}; {look}; wait") == ["0", "2"]


THREAD = """
import ctypes, os, threading, time
def live():
    ctypes.CDLL(None).unshare(0x20200)  # CLONE_NEWNS | CLONE_FS
    open("/tmp/ready", "w").close()
    while not (os.path.exists("/tmp/up") and os.path.getsize("/tmp/up")):
        time.sleep(0.1)
    print("a thread sees", os.path.exists("/mnt/f"), flush=True)
threading.Thread(target=live).start()
"""


def test_a_thread_with_mounts_of_its_own_sees_no_files_either(in_guest: InGuest, tmp_path: Path) -> None:
    (tmp_path / "thread.py").write_text(THREAD)
    start = f"mount --make-rprivate /; python3 {tmp_path}/thread.py & until test -e /tmp/ready; do sleep 0.1; done"
    said = in_guest(f"{start}; $xs sh -c '>f; echo up; sleep 5' >/tmp/up; wait")
    assert said == ["a thread sees False"]


HELD = """
import ctypes, os, time
c, (ready, made) = ctypes.CDLL(None), os.pipe()
child = os.fork()
if not child:
    c.unshare(0x20000)  # CLONE_NEWNS
    os.write(made, b"x")
    time.sleep(60)
os.read(ready, 1)
held = os.open(f"/proc/{child}/ns/mnt", os.O_RDONLY)
os.kill(child, 9)
os.wait()
print("held", flush=True)
while not (os.path.exists("/tmp/up") and os.path.getsize("/tmp/up")):
    time.sleep(0.1)
c.setns(held, 0x20000)
print("its mounts show", os.path.exists("/mnt/f"), flush=True)
"""


def test_mounts_that_only_a_descriptor_holds_show_no_files_either(in_guest: InGuest, tmp_path: Path) -> None:
    (tmp_path / "held.py").write_text(HELD)
    start = f"mount --make-rprivate /; python3 {tmp_path}/held.py >/tmp/held &"
    ready = "until grep -q held /tmp/held; do sleep 0.1; done"
    said = in_guest(f"{start} {ready}; $xs sh -c '>f; echo up; sleep 6' >/tmp/up; wait; cat /tmp/held")
    assert said == ["held", "its mounts show False"]


def test_a_stream_that_the_box_closes_ends_before_the_box(in_guest: InGuest) -> None:
    """While the box runs, nobody else sees its file."""
    box = "$xs sh -c '>f; echo said; exec >&- 2>&-; sleep 4'"
    assert in_guest(f"{box} | {{ cat; test -e /mnt/f || echo ended; }}") == ["said", "ended"]


def test_a_killed_supervisor_takes_the_box_and_what_it_held_along(in_guest: InGuest) -> None:
    said = in_guest(
        "$xs sh -c 'echo x >f; echo begun; while :; do echo x >>f; sleep 0.1; done; echo never' >/tmp/said & box=$!\n"
        "until grep -q begun /tmp/said; do sleep 0.1; done; sleep 1; kill -9 $box; wait 2>/dev/null\n"
        "until test -e /mnt/f; do sleep 0.2; done; cat /tmp/said\n"
        "a=$(wc -c </mnt/f); sleep 0.5; b=$(wc -c </mnt/f)\n"
        "test $a = $b && test $a -gt 2 && echo stands; ls /mnt/attempts.py"
    )
    assert said == ["begun", "stands", "/mnt/attempts.py"]


def test_a_killed_keeper_is_said_at_the_end(in_guest: InGuest) -> None:
    """What the command has said is true. Its status stands, and success is none: the file system stays covered.

    It is one of this script's own: the cover of the test disk would stay in the mount namespace of the guest's agent.
    """
    loop = LOOP.format(size="100M", xsync=built("xsync"))
    kill = f"box=$!; {UP}; kill -9 $(pgrep -o -P $box); wait $box; echo $?; umount /media; rm /tmp/up"
    boxes = (f"$xm sh -c 'echo up; sleep 3; exit {status}' >/tmp/up & {kill}" for status in (0, 4))
    said = in_guest("\n".join([loop, *boxes, "umount /media && echo shown"]))
    message = (
        "xsync: the process that covers the file system has ended. If the file system is still covered, "
        "umount /media shows it."
    )
    assert said == [message, "1", message, "4", "shown"]


LOOP = """
mkdir -p /tmp/small; mount -n -t tmpfs -o size={size} small /tmp/small; truncate -s 64M /tmp/small/disk
mkfs.ext4 -q -J size=8 /tmp/small/disk && mount -n -o loop,data=journal /tmp/small/disk /media
xm="{xsync} run --fs /media --"
"""


@pytest.mark.parametrize(
    "journal", [pytest.param("0", id="places"), pytest.param("1", id="journal", marks=pytest.mark.full)]
)
def test_a_disk_that_fails_ends_the_box_and_drops_what_waits(in_guest: InGuest, journal: str) -> None:
    """The disk has no room for blocks of files, or for those of the journal, which mkfs has not written then."""
    loop = LOOP.format(size="24M", xsync=built("xsync"))
    loop = loop.replace("-J size=8", f"-J size=8 -E lazy_journal_init={journal}")
    fill = "(sleep 2; head -c 25000000 /dev/urandom >/tmp/small/fill 2>/dev/null) &"
    box = "$xm sh -c 'sleep 4; head -c 12000000 /dev/urandom >a; sleep 7; echo lost; sleep 20; echo late'"
    said = in_guest(f"{loop}\n{fill}\n{box}; echo $?")
    assert said[-1] == "123"
    assert "lost" not in said and "late" not in said
    assert re.search(r"a commit failed: .* \d+ bytes of output", said[-2])


def test_a_full_disk_is_an_error_of_the_call(in_guest: InGuest) -> None:
    loop = LOOP.format(size="100M", xsync=built("xsync"))
    said = in_guest(
        f"{loop}\n$xm sh -c 'head -c 90000000 /dev/zero >a; echo $?; rm a; echo kept >b'; cat /media/b; umount /media"
    )
    assert "No space left on device" in said[0]
    assert said[1:] == ["1", "kept"]


def test_packets_come_in_and_go_out(in_guest: InGuest) -> None:
    outside = (
        "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('', 5000)); s.settimeout(20);"
        "print('ready', flush=True); data, who = s.recvfrom(99); s.sendto(data.upper(), who)"
    )
    inside = (
        "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(20);"
        "s.sendto(b'asked', ('10.111.0.1', 5000)); print(s.recv(99).decode())"
    )
    network = XSYNC.replace("--fs", "--network tun --fs")
    said = in_guest(f'python3 -c "{outside}" & sleep 1.5; {network} python3 -c "{inside}"')
    assert said == ["ready", "ASKED"]


def test_a_terminal_is_a_terminal(in_guest: InGuest, tmp_path: Path) -> None:
    """A shell on a terminal in the box: its size, Ctrl-C, and the status."""
    typist = tmp_path / "typist.py"
    typist.write_text(f"""
import os, pty, select, sys, time
child, terminal = pty.fork()
if child == 0:
    os.execvp("sh", ["sh", "-c", {XSYNC!r} + " sh -c 'trap \\"echo got it; exit 9\\" INT; tty; echo up; sleep 30'"])
seen = b""
while True:
    try:
        read = os.read(terminal, 4096)
    except OSError:
        break
    if b"up" in read:
        os.write(terminal, b"\\x03")
    seen += read
print(seen.decode().split(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
""")
    assert in_guest(f"python3 {typist}") == ["['/dev/pts/0', 'up', '^Cgot', 'it'] 9"]


MAPPED = """
import mmap, os, threading
file = os.open('mapped', os.O_RDWR | os.O_CREAT)
os.ftruncate(file, 8192)
memory = mmap.mmap(file, 8192)
memory[:5] = b'first'; memory.flush(); os.fsync(file)
threads = [threading.Thread(target=memory.__setitem__, args=(4096 + n, n)) for n in range(9)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
reader, writer = os.pipe()
if os.fork() == 0:
    memory[5:6] = b'!'; os.write(writer, b'x'); os._exit(0)
os.read(reader, 1); os.fdatasync(file)
print(memory[:6], sum(memory[4096:4105]), os.read(os.open('mapped', os.O_RDONLY), 6))
"""


OPENED = """
import errno, os
os.umask(0o027)
def opened(path, flags=0):
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_SYNC | flags, 0o666)
    except OSError as error:
        return errno.errorcode[error.errno]
    import fcntl
    is_synchronous = bool(fcntl.fcntl(file, fcntl.F_GETFL) & os.O_SYNC)
    return is_synchronous, oct(os.fstat(file).st_mode)[-3:], os.fstat(file).st_uid, os.write(file, b"written")
print(opened("here/new"), opened("here/new", os.O_EXCL), opened("/dev/null")[0], opened("/etc/new"), opened("no/where"))
os.chroot("here")
print(opened("/inner")[0], opened("/dev/null"))
"""


@pytest.mark.parametrize("user", ["root", "nobody"])
def test_an_open_with_o_sync_is_the_same_open_without_it(in_guest: InGuest, tmp_path: Path, user: str) -> None:
    (tmp_path / "opened.py").write_text(OPENED)
    as_user = XSYNC.replace("--fs", f"--user {user} --fs")
    prepared = f"cp {tmp_path}/opened.py /mnt; mkdir /mnt/here; chmod 777 /mnt/here"
    said = in_guest(f"{prepared}\n{as_user} python3 opened.py; cat /mnt/here/new; echo; ls /mnt/here")
    uid = {"root": 0, "nobody": 65534}[user]
    assert said[0] == f"(False, '640', {uid}, 7) EEXIST True EROFS ENOENT"
    if user == "root":
        assert said[1:] == ["False ENOENT", "written", "inner", "new"]
    else:
        assert "PermissionError" in " ".join(said) and said[-2:] == ["written", "new"]


def test_threads_processes_pipes_and_mappings_work_inside(in_guest: InGuest, tmp_path: Path) -> None:
    (tmp_path / "mapped.py").write_text(MAPPED)
    said = in_guest(f"cp {tmp_path}/mapped.py /mnt\n$xs python3 mapped.py; head -c 6 /mnt/mapped; echo")
    assert said == ["b'first!' 36 b'first!'", "first!"]


CHECK = 'while read n; do test "$(cat "$n")" = "$n" || { echo "$n is lost"; exit 1; }; done <"$POSTCRASH_ACKNOWLEDGED"'
BUSY = "i=0; while test $i -lt 20000; do i=$((i + 1)); done"
LOGGER = f"for n in 1 2 3 4 5 6; do echo $n >$n; sync; echo $n; {BUSY}; done"
"""It is busy after each line, so that the next line comes while a commit is running."""


@pytest.mark.parametrize(
    ("xsync", "eager", "verdict"),
    [
        (str(built("xsync")), "", "HOLDS"),
        (str(built("xsync")), "--eager", "HOLDS"),
        (f"env XSYNC_CANARY=early-output {built('xsync-canary')}", "", "VIOLATED"),
        (f"env XSYNC_CANARY=running-commit {built('xsync-canary')}", "", "VIOLATED"),
    ],
    ids=["holds", "eager", "early output", "running commit"],  # paths differ from one worker to the next
)
def test_what_is_said_is_on_disk_in_every_crash_state(tmp_path: Path, xsync: str, eager: str, verdict: str) -> None:
    run = f"cd /; exec {xsync} run --fs /mnt {eager} -- sh -c {shlex.quote(LOGGER)}"
    audited = postcrash(tmp_path, "audit", "--run", run, "--check", CHECK, "--target", "ext4-journal")
    assert re.search(rf"^{verdict}: ", audited.stdout, re.MULTILINE), audited.stdout + audited.stderr


def test_an_unknown_canary_is_refused(in_guest: InGuest) -> None:
    with pytest.raises(UsageError, match="101"):
        in_guest(f"XSYNC_CANARY=none {built('xsync-canary')} run --fs /mnt -- true")
