"""Tests of fstests: each kind of power cut, what they say of themselves, and hostile text. shellcheck reads them."""

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from postcrash.model import parse_workload, simulate
from postcrash.reports.script.fstests import NAME, FstestsTest, fstest
from postcrash.reports.script.shell_operations import NoCommandError
from postcrash.reports.script.shell_script import Cut, FlakeyCut, LogCut, Symptom
from postcrash.targets import TARGETS, Target, target_named

pytestmark = pytest.mark.slow

SOURCED = {
    "SC1091": "the files of common functions are not here",
    "SC2154": "they set variables",
    "SC2034": "they use variables",
    "SC2317": "they call functions",
    "SC2329": "they call functions",
}
"""What shellcheck cannot know because it does not see the sourced files."""
TREE = Symptom("tree", ("[ -f A ]", "holds A 4096:141"), ())
MOUNT = Symptom("mount", (), ())
WORKLOAD = parse_workload("creat A\nappend A 4096\n---\ncreat B\nrename B A\ncommit\n", "small")
ABOUT = FstestsTest(
    name="999",
    year=2026,
    message="A is 0 bytes long",
    statement="A renamed file has its data.",
    found_by="Found by postcrash (f-0123456789abcdef) on UML 6.1.176, with mkfs.ext4 -q",
    script_result="This test has not been run.",
    lost=("journal commit block of transaction 3",),
    is_whole=True,
)
FLAKEY, LOG = FlakeyCut(5), LogCut(5, 0)


def made(
    cut: Cut = FLAKEY,
    symptom: Symptom = TREE,
    about: FstestsTest = ABOUT,
    target: str | Target = "ext4-original",
    text: str | None = None,
) -> str:
    workload = WORKLOAD if text is None else parse_workload(text, "w")
    on = target_named(target) if isinstance(target, str) else target
    return fstest(about, on, workload, simulate(workload), symptom, cut)


def complaints(text: str) -> str:
    """What shellcheck says of a script."""
    program = shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    assert program is not None
    command = [program, "--shell=bash", f"--exclude={','.join(SOURCED)}", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize("symptom", [TREE, MOUNT, Symptom("fsck", (), ()), Symptom("tree", ("holds A 9:377",), ())])
@pytest.mark.parametrize("cut", [FLAKEY, LogCut(5, -1), LOG, LogCut(5, 2), LogCut(5, 0, (), is_inside=False)])
def test_shellcheck_passes_for_every_kind_of_crash(cut: Cut, symptom: Symptom, is_whole: bool) -> None:
    text = made(cut, symptom, replace(ABOUT, is_whole=is_whole))
    assert complaints(text) == ""
    assert "\n\n\n" not in text and not re.search(r"[ \t]$", text, re.MULTILINE)


def test_shellcheck_would_complain() -> None:
    assert "SC2086" in complaints(made() + "rm $file\n")


def test_a_test_is_made_for_every_target_that_mkfs_and_mount_make() -> None:
    for target in TARGETS:
        if target.helper or target.aged_mib is not None:
            with pytest.raises(NoCommandError, match=r"mounted by a program|is aged"):
                made(target=target)
            continue
        text = made(target=target)
        assert f'[ "$FSTYP" = {target.fstype} ] || _notrun' in text
        assert ("_require_metadata_journaling" in text) == (target.fstype in ("ext3", "ext4", "xfs", "btrfs", "f2fs"))
        assert (f"-o {target.options}" in text) == bool(target.options)


def test_the_form_is_that_of_fstests() -> None:
    text = made()
    assert text.startswith("#! /bin/bash\n# SPDX-License-Identifier: GPL-2.0\n# Copyright (c) 2026 YOUR NAME HERE.")
    assert "\n# FS QA Test 999\n" in text
    assert text.index(". ./common/preamble\n_begin_fstest auto quick log\n") < text.index(". ./common/dmflakey\n")
    assert text.endswith('\necho "Silence is golden"\nstatus=0\nexit\n')
    assert ABOUT.golden == "QA output created by 999\nSilence is golden\n"


def test_between_operations_dm_flakey_drops_writes() -> None:
    text = made(FLAKEY)
    run = text.rpartition("_init_flakey\n")[2].split("\n")
    assert run[:6] == ["_scratch_mount", "setup", "sync", "operations", "_flakey_drop_and_remount", "look"]
    assert "\t$XFS_IO_PROG -c fsync .other\n" in function(text, "operations")
    assert "log_writes" not in text and "weaker" not in text


def test_within_an_operation_the_log_is_replayed() -> None:
    text = made(LOG)
    run = text.rpartition("_log_writes_mount\n")[2].split("\n")
    assert run[:6] == ["setup", "sync", "operations", "_log_writes_mark cut", "last_operation", "_log_writes_mark end"]
    assert "fsync .other" in function(text, "last_operation") and "fsync" not in function(text, "operations")
    assert "for ((flushes = 0; flushes < 1; flushes++)); do" in text
    assert "up to flush or FUA number 1 of the last operation" in unwrapped(text)
    assert "flakey" not in text and "weaker" not in text


def test_what_lost_all_is_replayed_to_the_flush_before() -> None:
    text = made(LogCut(5, -1))
    assert "for ((" not in text and '\nlook "$entry"\n' in text
    assert "up to the beginning of the last operation" in unwrapped(text)
    after = made(LogCut(5, 0, (), is_inside=False))
    assert "last_operation" not in after
    assert "number 1 of what comes after the last operation" in unwrapped(after)


def test_what_kept_some_writes_and_lost_others_is_said_to_be_checked_more_weakly() -> None:
    text = made(LOG, about=replace(ABOUT, is_whole=False))
    said = unwrapped(text)
    assert "lost some writes between two flushes, and kept others. Lost: journal commit block of transaction 3." in said
    assert "Neither dm-flakey nor dm-log-writes can make this state. So this test makes a weaker check" in said
    assert "It may pass where the crash that was found still shows the problem." in said
    assert 'while [ "$entry" -lt "$end" ]; do\n' in text
    many = made(LOG, about=replace(ABOUT, is_whole=False, lost=tuple(f"w{number}" for number in range(500))))
    assert "w9; and more." in unwrapped(many) and "w10" not in many


def test_only_what_the_symptom_needs_is_looked_at() -> None:
    assert "is_wrong" not in made(symptom=MOUNT) and "holds" not in made(symptom=MOUNT)
    assert "fill" not in made(FLAKEY)
    stale = made(FLAKEY, Symptom("tree", ("holds A 9:377",), ()))
    assert stale.index("\nfill\n") < stale.index("\n_scratch_mkfs ")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("creat A\nfallocate A keep-size 0 9\n", ('_require_xfs_io_command "falloc" "-k"',)),
        ("creat A\nsetxattr A user.x 1\nremovexattr A user.x\n", (". ./common/attr", "_require_attrs user")),
        ("creat A\nappend A 4K\ncreat B\nreflink A 0 B 0 4K\n", (". ./common/reflink", "_require_scratch_reflink")),
        ("creat A\ndwrite A 0 512\n", ("_require_odirect",)),
        ("creat A\nawrite A 0 512\n", (". ./common/atomicwrites", "_require_scratch_write_atomic")),
    ],
)
def test_what_operations_need_is_required(text: str, lines: tuple[str, ...]) -> None:
    script = made(FlakeyCut(2 if "keep" in text else text.count("\n")), text=text)
    assert all(script.count(f"\n{line}\n") == 1 for line in lines)
    assert complaints(script) == ""


HOSTILE = "'; reboot; '\n$(reboot) `reboot` \x1b[2J"


def reboots(text: str, folder: Path) -> bool:
    """Whether `reboot` is run by a script of which everything else that matters is replaced by nothing."""
    names = {*re.findall(r"\b_\w+", text), "cd", "rm", "ls", "sync", "exit"} - {"_cleanup"}
    stubs = "".join(f"{name}() {{ :; }}\n" for name in sorted(names))
    settings = "XFS_IO_PROG=: SCRATCH_MNT=/ FSTYP=xfs seqres=/dev/null\nreboot() { echo REBOOTED >&2; }\n"
    command = ["bash", "-c", settings + stubs + text]
    return "REBOOTED" in subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stderr


@pytest.mark.parametrize("cut", [FlakeyCut(2), LogCut(2, 0)])
def test_hostile_text_stays_text(cut: Cut, tmp_path: Path) -> None:
    """Nothing of a name, a message or an option is run, and nothing leaves the comment."""
    target = replace(target_named("xfs"), options='x"; reboot; $(reboot)', mkfs=("mkfs.xfs", "; reboot", "$(reboot)"))
    about = replace(
        ABOUT, message=HOSTILE, statement=HOSTILE, found_by=HOSTILE, script_result=HOSTILE, lost=(HOSTILE,) * 3
    )
    workload = 'creat "a; reboot; $(reboot) b"\nfsync "a; reboot; $(reboot) b"\n'
    text = made(cut, about=replace(about, is_whole=False), target=target, text=workload)
    comment = text.partition("# FS QA Test 999")[2].partition("\n. ./common")[0].splitlines()
    assert all(line.startswith("#") for line in comment if line)
    assert "\x1b" not in text
    assert not reboots(text, tmp_path)
    assert reboots(f"{text}reboot\n", tmp_path)


def test_what_fstests_cannot_do_is_refused() -> None:
    with pytest.raises(NoCommandError, match="without a repair before it"):
        made(symptom=replace(TREE, repaired=True))
    with pytest.raises(NoCommandError, match="without a repair before it"):
        made(symptom=Symptom("boot", ('[ "$status" -gt 1 ]',), ()))


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("999", True), ("999-rename", True), ("99", False), ("test", False), ("999.out", False), ("999 1", False)],
)
def test_names(name: str, is_one: bool) -> None:
    assert bool(NAME.fullmatch(name)) == is_one


def function(text: str, name: str) -> str:
    return text.partition(f"\n{name}()\n(")[2].partition("\n)")[0] + "\n"


def unwrapped(text: str) -> str:
    """The comment at the beginning, in one line."""
    return " ".join(line.removeprefix("#").strip() for line in text.partition("\n. ./")[0].splitlines())
