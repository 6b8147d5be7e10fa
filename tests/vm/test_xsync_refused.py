"""xsync in a guest: it does not start where somebody outside could see files before they are on disk."""

from pathlib import Path

import pytest

from .boxes import SLEEPING, UP, XSYNC, InGuest

WATCH = (
    "import ctypes, time; c = ctypes.CDLL(None); c.inotify_add_watch(c.inotify_init(), b'/mnt', 4095);"
    " print('up', flush=True); time.sleep(9)"
)


UNDONE = "echo core >/proc/sys/kernel/core_pattern"
DETACHED = (
    "import ctypes, time; ctypes.CDLL(None).syscall(428, -100, b'/', 0x88001); print('up', flush=True); time.sleep(9)"
)
"""open_tree, which copies the mounts from / on."""


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("cd /mnt", "is in the folder /mnt"),
        ("exec 8>/mnt/open", "has /mnt/open open"),
        ("mkdir /mnt/in; mount -n -t tmpfs t /mnt/in", "/mnt/in is mounted inside"),
        (f"$xs {SLEEPING} & {UP}", "is taken by another xsync"),
        (
            "python3 -c \"import socket, time; s = socket.socket(socket.AF_UNIX); s.bind('/mnt/s'); time.sleep(9)\" &"
            " for i in $(seq 40); do test -S /mnt/s || sleep 0.2; done",
            "a UNIX socket that is bound in it",
        ),
        (f'python3 -c "{WATCH}" >/tmp/up & {UP}', "is told of changes in it"),
        (f'python3 -c "{DETACHED}" >/tmp/up & {UP}', "has a folder of a mount that no mount namespace shows"),
        ("echo @/tmp/cores >/proc/sys/kernel/core_pattern", "would be sent to that socket"),
        ("mount -o remount,lazytime /mnt", "lazytime keeps times in memory"),
    ],
)
def test_a_file_system_that_others_use_is_refused(in_guest: InGuest, before: str, reason: str) -> None:
    said = in_guest(
        f"{before}\n$xs echo started; echo $?; kill $! 2>/dev/null; wait; umount /mnt/in 2>/dev/null; cd /; {UNDONE}"
    )
    assert "125" in said and "started" not in said
    assert any(line.startswith("xsync: ") and reason in line for line in said), said


@pytest.mark.parametrize(("target", "reason"), [("ext4-current", "data=ordered"), ("btrfs", "ext4 or ext3 is needed")])
def test_a_file_system_without_order_is_refused(in_guest: InGuest, target: str, reason: str) -> None:
    said = in_guest("$xs echo started; echo $?", target)
    assert said[-1] == "125" and reason in said[0]


FOREIGN = """
import ctypes, os, time
os.mkdir("/tmp/below")
os.chroot("/tmp/below")  # The way out of the guest's root: nobody may make a user namespace in a changed one.
for _ in range(30):
    os.chdir("..")
os.chroot(".")
assert ctypes.CDLL(None, use_errno=True).unshare(0x10000000 | 0x20000) == 0, os.strerror(ctypes.get_errno())
print("up", flush=True)
time.sleep(20)
"""
"""Keeps a copy of all mounts in a mount namespace of a user namespace of its own."""


def test_a_mount_namespace_of_another_user_namespace_is_refused(in_guest: InGuest, tmp_path: Path) -> None:
    program = tmp_path / "foreign.py"
    program.write_text(FOREIGN)
    said = in_guest(
        f"python3 {program} >/tmp/up & {UP}; $xs echo ran; echo $?; kill $!; wait; $xs echo ran; cat /tmp/up"
    )
    assert said[1:] == ["125", "ran", "up"]
    assert "is also mounted in a mount namespace that belongs to another user namespace" in said[0]


def test_a_box_in_a_box_is_refused(in_guest: InGuest) -> None:
    said = in_guest(f"$xs {XSYNC} true; echo $?")
    assert said == [
        "xsync: it needs root of the machine, and this is a user namespace, as in a container or in a box of xsync",
        "125",
    ]
