"""External synchrony: whether what a program says is true, on file systems that do not promise it."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .command import one_line, postcrash

SYNCED = "echo new >f; sync; echo done; echo newer >g; sync"
_SYNCED = ("ext4-journal", "holds", "holds")
IN_PLACE = "echo new 1<>old; echo g >g"


def told(folder: Path, *arguments: str) -> dict[str, Any]:
    """What `postcrash synchrony` came to on one target and a disk that completes at once."""
    ran = postcrash(folder, "synchrony", "--one-disk", "--json", "-", *arguments)
    assert ran.stderr == ""
    (only,) = json.loads(ran.stdout)["audits"]
    (disk,) = only["disks"]
    assert disk["states"] == disk["states_total"]
    return {"verdict": only["verdict"], "findings": disk["findings"], **disk["judges"]}


@pytest.mark.parametrize(
    ("program", "target", "durability", "order"),
    [
        ("echo new >f; echo done", "ext4-journal", "violated", "holds"),
        (SYNCED, "ext4-journal", "holds", "holds"),
        (SYNCED, "btrfs", "holds", "holds"),
        ("echo new >f; sync; echo created; rm f; sync", "ext4-journal", "undecided", "holds"),
        (IN_PLACE, "ext4-current", "violated", "violated"),
        (IN_PLACE, "ext4-journal", "violated", "holds"),
    ],
)
def test_what_is_true_and_what_is_in_order(
    program: str, target: str, durability: str, order: str, tmp_path: Path
) -> None:
    """Data that is overwritten in place is in order only where it is journalled, too. The exit status is an output."""
    found = told(tmp_path, "--set-up", "echo old-content >old", "--run", program, "--target", target)
    assert (found["external-durability"]["verdict"], found["external-order"]["verdict"]) == (durability, order)


@pytest.mark.parametrize(
    ("set_up", "program", "target", "durability", "order"),
    [
        ("true", "echo new >lost+found/f; sync; echo done", "ext4-journal", "holds", "holds"),
        ("true", "echo new >lost+found/f; echo done", "ext4-journal", "violated", "holds"),
        ("true", "mkdir lost+found; echo new >lost+found/f; sync; echo done", "xfs", "holds", "holds"),
        ("mkdir lost+found", "rmdir lost+found; sync; echo done; sync", "xfs", "holds", "holds"),
        ("mkdir .aged-data lost+found2", "rmdir lost+found2; sync; echo done; rmdir .aged-data; sync", *_SYNCED),
        ("true", "mkdir .aged; sync; echo done; echo new >.nilfs; sync", *_SYNCED),
        ("true", "mkdir .aged; sync; echo done; rmdir .aged; echo gone", "ext4-journal", "violated", "holds"),
    ],
)
def test_names_that_look_like_ours_are_like_any_others(
    set_up: str, program: str, target: str, durability: str, order: str, tmp_path: Path
) -> None:
    found = told(tmp_path, "--set-up", set_up, "--run", program, "--target", target)
    assert (found["external-durability"]["verdict"], found["external-order"]["verdict"]) == (durability, order)


def test_a_witness_is_shown_again(tmp_path: Path) -> None:
    found = told(tmp_path, "--run", "mkdir d; echo new >d/f; echo done", "--target", "ext4-current")
    message = "'done' had left the machine, but mkdir d before it is lost"
    (finding,) = [each for each in found["findings"] if each["message"] == message]
    again = postcrash(tmp_path, "repro", finding["id"])
    assert again.returncode == 1
    assert "fails 1 of 1 times" in again.stdout


@pytest.mark.parametrize(("target", "durability"), [("ext4-journal", "violated"), ("xsyncfs", "holds")])
def test_what_is_sent_over_the_network_is_an_output(target: str, durability: str, tmp_path: Path) -> None:
    found = told(tmp_path, "remote-log", "--set", "way=udp", "--target", target)
    assert (found["external-durability"]["verdict"], found["external-order"]["verdict"]) == (durability, "holds")
    messages = [each["message"] for each in found["findings"]]
    assert ("'udp block 1' had left the machine, but write blocks before it is lost" in messages) == (
        durability != "holds"
    )


LOST = """
import os, socket
send = lambda port: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"done", ("192.0.2.1", port))
send(9); os.close(os.open("f", os.O_CREAT)); send(7000); os.sync()
"""


def test_what_was_sent_to_a_port_where_nobody_listens_is_not_what_arrived(tmp_path: Path) -> None:
    (tmp_path / "lost.py").write_text(LOST)
    found = told(tmp_path, "--run", f"{shlex.quote(sys.executable)} -S {tmp_path}/lost.py", "--target", "ext4-current")
    assert found["external-durability"]["verdict"] == "violated"


def test_a_line_without_an_end_is_an_output(tmp_path: Path) -> None:
    found = told(tmp_path, "--run", "echo new >f; printf done; sync; echo", "--target", "ext4-current")
    assert found["external-durability"]["verdict"] == "violated"


def test_what_others_see_of_a_call_that_has_not_returned_is_rested_on(tmp_path: Path) -> None:
    """A synchronous write is in memory, for all to see, long before it has returned."""
    seen = "{ echo new >>f; } & until [ -s f ]; do :; done; echo seen; wait"
    found = told(tmp_path, "--set-up", "touch f", "--run", seen, "--target", "ext4-sync")
    messages = [each["message"] for each in found["findings"]]
    assert messages == ["'seen' had left the machine, but write f before it is lost"]


def works_by_aio(folder: Path) -> Path:
    """A program with asynchronous I/O: what it does there without a call, or in one call."""
    source = Path(__file__).with_name("works_by_aio.c")
    subprocess.run(["cc", "-static", "-O1", "-o", folder / "works_by_aio", source], check=True)
    return folder / "works_by_aio"


def test_what_ends_without_a_call_is_rested_on(tmp_path: Path) -> None:
    """The program sees in memory that its asynchronous write has ended. Allocated blocks read as zeros before."""
    set_up, run = "fallocate -l 1M f", f"{works_by_aio(tmp_path)} polled"
    found = told(tmp_path, "--set-up", set_up, "--run", run, "--target", "ext4-current")
    messages = [each["message"] for each in found["findings"]]
    assert messages == ["'done' had left the machine, but io_submit f before it is lost"]


DUMPED = r"""ulimit -c unlimited; sh -c "kill -SEGV \$\$"; [ ! -s core ] || echo dumped; sync"""


def test_a_dump_of_the_kernel_is_rested_on_and_in_order(tmp_path: Path) -> None:
    """No call makes it. The process that crashes has ended before another one is told of it."""
    found = told(tmp_path, "--run", DUMPED, "--target", "ext4-current")
    messages = [each["message"] for each in found["findings"]]
    assert messages == ["'dumped' had left the machine, but core dump core before it is lost"]
    assert found["external-order"]["verdict"] == "holds"


def test_a_device_file_that_is_lost_is_out_of_order(tmp_path: Path) -> None:
    set_up, run = "mkdir a b; mknod x c 1 3; echo y >y", "ln x a/d; ln y b/f; sync"
    found = told(tmp_path, "--set-up", set_up, "--run", run, "--target", "ext2")
    messages = [each["message"] for each in found["findings"] if each["checker"] == "external-order"]
    assert "linkat x, a/d is lost or torn, but something after it is there" in messages


SENDS_A_PART = (
    "import socket; s = socket.create_connection(('192.0.2.1', 7000)); open('f', 'w').close(); s.send(b'whole\\npart')"
)
URING = "import ctypes; ctypes.CDLL(None).syscall(425, 1, bytes(120))"
ACCOUNTED = "open('f', 'w').close(); import ctypes; ctypes.CDLL(None).syscall(163, b'f')"
ON_A_LOOP = "open('f', 'w').close(); import fcntl; fcntl.ioctl(open('f'), 0x4C00, 0)"
BELOW = "open('/dev/vda', 'r+b', 0)"


@pytest.mark.parametrize(
    ("run", "target", "reason"),
    [
        (f'python3 -S -c "{SENDS_A_PART}"', "ext4-current", "does not end with the end of a line"),
        (f'python3 -S -c "{URING}"', "ext4-current", "the program uses io_uring, whose outputs are not followed"),
        (f'python3 -S -c "{ACCOUNTED}"', "ext4-current", "which is not followed: process accounting (acct)"),
        (f'python3 -S -c "{ON_A_LOOP}"', "ext4-current", "which is not followed: a loop device (ioctl LOOP_SET_FD)"),
        (f'python3 -S -c "{BELOW}"', "ext4-current", "the program writes to a disk below the file system"),
        ("btrfs subvolume create s >s.log", "btrfs", "s is a mount or a subvolume, which is not followed"),
    ],
)
def test_what_is_not_followed_is_said(run: str, target: str, reason: str, tmp_path: Path) -> None:
    ran = postcrash(tmp_path, "synchrony", "--one-disk", "--run", run, "--target", target)
    assert reason in one_line(ran, 4)


def test_a_line_that_one_call_says_on_its_way_is_refused(tmp_path: Path) -> None:
    """What io_submit does behind the line is done when it returns."""
    run = f"{works_by_aio(tmp_path)} said"
    ran = postcrash(tmp_path, "synchrony", "--one-disk", "--run", run, "--target", "ext4-current")
    assert "says something that none of its calls of write says" in one_line(ran, 4)
