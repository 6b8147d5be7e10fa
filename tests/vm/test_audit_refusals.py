"""Programs that an audit cannot follow, and names in their folder that are like ours."""

import subprocess
import sys
from pathlib import Path

import pytest

from .audits import REFUSED, Audit, told
from .command import one_line


@pytest.mark.parametrize(("source", "argument"), [("says_by_io_uring.c", ""), ("works_by_aio.c", "said")])
def test_a_line_that_no_call_of_write_says_is_refused(audit: Audit, tmp_path: Path, source: str, argument: str) -> None:
    """Nobody knows when the kernel said it, and what the kernel had made durable by then."""
    program = tmp_path / "says"
    subprocess.run(["cc", "-static", "-O1", "-o", program, Path(__file__).with_name(source)], check=True)
    ran = audit("--run", f"{program} {argument}", "--check", "true", "--target", "ext4-current", "--one-disk")
    assert "says something that none of its calls of write says" in one_line(ran, 4)


UNTRACED = """
import ctypes, os, struct
FLAGS = 0x00800000
number, argument = (56, FLAGS | 17), (435, struct.pack("QQQQQQQQ", FLAGS, 0, 0, 0, 17, 0, 0, 0))
number, argument = (number, argument)[HOW]
child = ctypes.CDLL(None).syscall(number, argument, 64 if number == 435 else 0, 0, 0, 0)
if not child:
    file = os.open("f", os.O_CREAT | os.O_WRONLY, 0o644)
    os.write(file, b"kept")
    os.write(1, b"done\\n")
    os.fsync(file)
    os._exit(0)
os.waitpid(child, 0)
"""


@pytest.mark.parametrize("how", [0, 1], ids=["clone", "clone3"])
def test_a_process_that_cannot_be_stopped_is_refused(audit: Audit, tmp_path: Path, how: int) -> None:
    """Its line would be noted when its parent goes on, and then the file is durable."""
    (tmp_path / "untraced.py").write_text(UNTRACED.replace("HOW", str(how)))
    check = "! grep -q done $POSTCRASH_ACKNOWLEDGED || grep -q kept f"
    run = f"{sys.executable} -S {tmp_path}/untraced.py"
    ran = audit("--run", run, "--check", check, "--target", "ext4-current", "--one-disk")
    assert "cannot be followed (CLONE_UNTRACED)" in one_line(ran, 4)


_WHOLE = "[ ! -e {folder}/f ] || grep -qs new {folder}/f || {{ echo f is empty; exit 1; }}"


@pytest.mark.parametrize(
    ("run", "folder", "target"),
    [
        ("mkdir lost+found; echo new >lost+found/f", "lost+found", "xfs"),
        ("echo new >lost+found/f", "lost+found", "ext4-current"),
        ("mkdir .aged; echo new >.aged/f", ".aged", "ext4-current"),
        ("mkdir .nilfs; true >.nilfs/f; sync; rm -r .nilfs", ".nilfs", "ext4-current"),
    ],
)
def test_what_a_program_puts_under_a_name_like_ours_is_checked(
    audit: Audit, run: str, folder: str, target: str
) -> None:
    asked = ("--run", run, "--check", _WHOLE.format(folder=folder))
    (disk,) = told(audit, *asked, target=target)["disks"]
    (finding,) = disk["findings"]
    assert finding["message"] == "f is empty"


@pytest.mark.parametrize("change", ["truncate -s 0 .aged/1", "rm .aged/1", "touch .aged/new", "mv .aged a"])
def test_a_program_that_changes_files_of_an_aged_image_is_refused(audit: Audit, change: str) -> None:
    ran = audit("--run", change, "--check", "true", "--target", "ext4-full", "--one-disk")
    assert ran.returncode == 4, ran.stderr
    assert f"{REFUSED} .aged" in ran.stderr
