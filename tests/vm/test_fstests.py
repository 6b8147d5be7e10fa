"""Tests of fstests that are made of findings: run in a guest, they fail where the problem is, and pass where it is not.

fstests itself is not here. `STAND_INS` do what its common functions do, as far as these tests call them.
"""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

from postcrash.harness.files.places import cache_folder
from postcrash.harness.findings.fstests import WrittenTest, fstests_test
from postcrash.harness.guests.kernels.kernel import find_kernel
from postcrash.harness.guests.machine import MachineSettings
from postcrash.harness.guests.script_guest import ScriptResult, run_script, script_root
from postcrash.store.store import Store
from postcrash.targets import target_named

from .test_report import found

STAND_INS = r"""
seq=${0##*/} seqres=/tmp/result tmp=/tmp/$$ here=/tmp/fstests status=1
XFS_IO_PROG=xfs_io SCRATCH_MNT=/mnt LOGWRITES_DEV=$LOG SCRATCH_DEV=$DISK MOUNT_OPTIONS=
SECTORS=$(blockdev --getsz "$DISK")
_begin_fstest() { echo "QA output created by $seq"; trap '_cleanup 2>/dev/null; exit $status' EXIT; }
_notrun() { echo "not run: $*"; exit; }
_require_dm_target() { :; }
_require_log_writes() { :; }
_require_no_logdev() { :; }
_require_scratch_nocheck() { :; }
_require_metadata_journaling() { :; }
_scratch_mkfs() { "mkfs.$FSTYP" "$@" "$SCRATCH_DEV" || echo "mkfs failed"; }
_scratch_mount() { mount -t "$FSTYP" $MOUNT_OPTIONS "$SCRATCH_DEV" "$SCRATCH_MNT" || { echo "mount failed"; exit; }; }
_scratch_unmount() { umount "$SCRATCH_MNT"; }
_check_scratch_fs() { $FSCK "$SCRATCH_DEV" >/dev/null 2>&1 || echo "fsck objects"; }
_table() { dmsetup suspend --nolockfs cut; dmsetup load cut --table "0 $SECTORS $*"; dmsetup resume cut; }
_init_flakey() { dmsetup create cut --table "0 $SECTORS linear $DISK 0"; SCRATCH_DEV=/dev/mapper/cut; }
_flakey_drop_and_remount() {
    _table flakey "$DISK" 0 0 180 1 drop_writes
    _scratch_unmount
    _table linear "$DISK" 0
    blockdev --flushbufs "$SCRATCH_DEV"
    _scratch_mount
}
_cleanup_flakey() { umount /mnt; dmsetup remove cut; }
_log_writes_init() { dmsetup create cut --table "0 $(($2 / 512)) log-writes $1 $LOG"; }
_log_writes_mkfs() { "mkfs.$FSTYP" "$@" /dev/mapper/cut; _log_writes_mark mkfs; }
_log_writes_mount() { mount -t "$FSTYP" $MOUNT_OPTIONS /dev/mapper/cut "$SCRATCH_MNT"; }
_log_writes_unmount() { umount "$SCRATCH_MNT"; }
_log_writes_mark() { dmsetup message cut 0 mark "$1"; }
_log_writes_remove() { dmsetup remove cut; blockdev --flushbufs "$DISK"; blockdev --flushbufs "$LOG"; }
_log_writes_cleanup() { umount /mnt; dmsetup remove cut; }
_log_writes_mark_to_entry_number() { local found; found=$($here/src/log-writes/replay-log --mark "$1"); echo "$found"; }
_log_writes_replay_log_range() { $here/src/log-writes/replay-log --to "$1" --replay "$2"; blockdev --flushbufs "$2"; }
"""
REPLAY_LOG = r"""#!/usr/bin/perl
# Of replay-log: --find with --next-flush and --next-fua, and what the stand-ins ask for.
my %asked;
while (@ARGV) { my $name = shift; $asked{$name} = $name =~ /log|start|mark|to$|replay/ ? shift : 1 }
open L, '<:raw', $ENV{LOG} or die $!;
sub get { my ($at, $length) = @_; seek L, $at, 0; read L, my $data, $length; $data }
my (undef, undef, $entries, $size) = unpack 'Q<3 L<', get(0, 28);
if (my $place = $asked{'--replay'}) { open D, '+<:raw', $place or die $! }
my $at = $size;
for my $number (0..$entries - 1) {
    my ($sector, $sectors, $flags, $length) = unpack 'Q<4', get($at, 32);
    my $mark = $flags & 8 ? get($at + 32, $length) : '';
    $at += $size;
    my $data = $flags & 4 ? 0 : $sectors * $size;
    last if exists $asked{'--to'} && $number > $asked{'--to'};
    if ($data && $asked{'--replay'}) { seek D, $sector * $size, 0; print D get($at, $data) or die $! }
    $at += $data;
    if ($asked{'--mark'} && $mark eq $asked{'--mark'}) { print "$number\n"; last }
    if ($asked{'--find'} && $number >= $asked{'--start-entry'} && $flags & 3) { print "$number\@$at\n"; last }
}
close D or die $! if $asked{'--replay'};
"""


@cache
def root(target: str) -> Path:
    return script_root(find_kernel(), target_named(target), cache_folder())


def run(test: WrittenTest, on: str) -> ScriptResult:
    """Exit code 0 if the output is the golden one, as fstests compares it."""
    target = target_named(on)
    files = {
        "common/preamble": STAND_INS,
        **dict.fromkeys(("common/dmflakey", "common/dmlogwrites"), ""),
        "src/log-writes/replay-log": REPLAY_LOG,
        "999": test.text,
        "999.out": test.golden,
    }
    made = "".join(f"cat >{place} <<'END-OF-FILE'\n{text.rstrip()}\nEND-OF-FILE\n" for place, text in files.items())
    script = f"""mkdir -p /tmp/fstests/common /tmp/fstests/src/log-writes && cd /tmp/fstests || exit 7
{made}
chmod 755 src/log-writes/replay-log
export FSTYP={target.fstype} FSCK="{" ".join(target.fsck)}" LOG DISK
bash 999 >out 2>&1
cat out
cmp out 999.out
"""
    return run_script(find_kernel(), root(on), target, script)


def made_of(settings: MachineSettings, store: Store, target: str, judge: str, text: str) -> WrittenTest:
    """The test of a finding on `target`."""
    finding = found(settings, store, target, judge, text)
    return fstests_test(
        store, finding, target=target_named(target), name="999", statement="It is so.", script=None, kernel="UML"
    )


REPLACE = "creat a\nappend a 4096\n---\ncreat b\nappend b 8192\nrename b a\n"


def test_a_power_cut_between_operations(settings: MachineSettings, store: Store) -> None:
    test = made_of(settings, store, "ext4-original", "P5", REPLACE)
    assert "_flakey_drop_and_remount" in test.text
    ran = run(test, "ext4-original")
    assert ran.code == 1 and "is visible, but a is 0 bytes long" in ran.printed, ran.printed
    safe = replace(test, text=test.text.replace("noauto_da_alloc", "auto_da_alloc"))
    assert run(safe, "ext4-current").code == 0


def test_a_power_cut_that_loses_all_that_was_in_flight(settings: MachineSettings, store: Store) -> None:
    """docs/findings/f2fs-first-fsync.md: the fsync does not wait for its node."""
    test = made_of(settings, store, "f2fs", "P4", "creat a\nappend a 4096\nfsync a\n")
    assert "_log_writes_mark cut" in test.text and "weaker" not in test.text
    ran = run(test, "f2fs")
    assert ran.code == 1 and "fsync a (operation 3) had returned, but a is missing" in ran.printed, ran.printed
    flushed = replace(test, text=test.text.replace("\nsync\noperations\n", "\nsync\noperations\nsync\n"))
    assert flushed != test
    assert run(flushed, "f2fs").code == 0


def test_a_power_cut_that_loses_some_writes_of_an_epoch_is_not_shown(settings: MachineSettings, store: Store) -> None:
    """The test says that it looks at other states, and it does look: with another question it objects to each."""
    test = made_of(settings, store, "ext4-async-commit", "mounts", "creat a\nappend a 8192\nfsync a\n")
    assert "weaker check" in " ".join(test.text.split("\n# "))
    ran = run(test, "ext4-async-commit")
    assert ran.code == 0, ran.printed
    asked = replace(
        test, text=test.text.replace("\t_scratch_unmount\n\t_check", "\techo looked\n\t_scratch_unmount\n\t_check")
    )
    again = run(asked, "ext4-async-commit")
    assert again.code == 1 and len(re.findall("^looked", again.printed, re.MULTILINE)) >= 3, again.printed


def test_output_that_is_not_golden_is_a_failure(settings: MachineSettings, store: Store) -> None:
    test = made_of(settings, store, "ext4-original", "P5", REPLACE)
    assert run(replace(test, text='echo "QA output created by 999"\n'), "ext4-current").code == 1
