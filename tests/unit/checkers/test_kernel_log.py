"""The kernel log checker: which lines count, which do not, and that kernels do print each allowed line."""

import pytest

from postcrash.checkers.kernel_log import ALLOWED, KernelLog
from postcrash.model import Entry, History, Observation, Tree, parse_workload
from postcrash.model.judge import CannotTellError

HISTORY = History(parse_workload("creat a", "litmus"), 1, 1)
TREE = Tree([Entry(".", "dir")])

# One line for each of ALLOWED, as a kernel printed it
NORMAL = [
    "<4>sched: RT throttling activated",
    "<4>EXT4-fs: Warning: mounting with data=journal disables delayed allocation, dioread_nolock, O_DIRECT and "
    "fast_commit support!",
    "<4>ext3 filesystem being mounted at /mnt supports timestamps until 2038-01-19 (0x7fffffff)",
    "<4>EXT4-fs (vda): warning: mounting unchecked fs, running e2fsck is recommended",
    "<4>EXT4-fs: Ignoring removed nocheck option",
    "<4>XFS: ikeep mount option is deprecated.",
    "<4>BTRFS warning (device vda): 'recovery' is deprecated, use 'rescue=usebackuproot' instead",
    "<4>BTRFS warning (device vda): space cache v1 is being deprecated and will be removed in a future release, please "
    "use -o space_cache=v2",
    "<4>BTRFS warning (device vda): devid 1 uuid cc13ed41-0701-4b91-9fde-68fe4bf10be7 is missing",
    "<1>BTRFS alert (device vdc): btrfs RAID5/6 is EXPERIMENTAL and has known data-loss bugs",
    "<4>F2FS-fs: heap/no_heap options were deprecated",
    "<4>EXT4-fs (vda): Test dummy encryption mode enabled",
    "<4>XFS (vda): Torn write (CRC failure) detected at log block 0x180. Truncating head block from 0x200.",
    "<4>XFS (vda): Tail block (0x10000) overwrite detected. Updated to 0x0",
    "<4>XFS (vda): EXPERIMENTAL big timestamp feature in use. Use at your own risk!",
    "<4>F2FS-fs (vda): invalid crc value",
    "<4>FAT-fs (vda): Volume was not properly unmounted. Some data may be corrupt. Please run fsck.",
    "<4>NILFS (vda): mounting unchecked fs",
    "<4>REISERFS warning:  read_super_block: reiserfs filesystem is deprecated and scheduled to be removed from the "
    "kernel in 2025",
    "<4>reiserfs: using flush barriers",
    "<4>done",
]


def found(*lines: str, whole: bool = True) -> str | None:
    finding = KernelLog().examine(HISTORY, Observation(0, TREE, lines, klog_whole=whole))
    return finding.message or None


def test_silence_is_fine() -> None:
    assert found() is None


@pytest.mark.parametrize(("allowed", "line"), list(zip(ALLOWED, NORMAL, strict=True)))
def test_normal_lines_are_allowed(allowed: object, line: str) -> None:
    assert found(line) is None


def test_each_allowed_line_says_why_and_where_from() -> None:
    assert all(allowed.reason and allowed.source.startswith("Linux ") for allowed in ALLOWED)


@pytest.mark.parametrize("level", range(8))
def test_warnings_and_worse_count(level: int) -> None:
    kernel, user = f"<{level}>EXT4-fs error", f"<{level + 8}>EXT4-fs error"
    assert (found(kernel) is not None) == (level <= 4)
    assert (found(user) is not None) == (level <= 4)


@pytest.mark.parametrize(
    "line",
    [
        "a line without a level",
        "<4>EXT4-fs (vda): warning: mounting fs with errors, running e2fsck is recommended",
        "<1>XFS (vda): log record CRC mismatch: found 0x1, expected 0x2.",
        "<4>something that only quotes: XFS (vda): Torn write (CRC failure) detected at log block 0x1",
        "<4>F2FS-fs (vda): invalid crc value, and then something",
    ],
)
def test_other_lines_are_found(line: str) -> None:
    message = found(NORMAL[0], line)
    assert message == f"the kernel says: {line.removeprefix('<4>').removeprefix('<1>')}"


@pytest.mark.parametrize("lines", [(), NORMAL])
def test_a_log_that_may_lack_lines_is_not_clean(lines: tuple[str, ...]) -> None:
    with pytest.raises(CannotTellError, match="may lack lines"):
        found(*lines, whole=False)


def test_what_is_found_stands_though_lines_may_be_missing() -> None:
    assert found("<3>EXT4-fs error", whole=False) == "the kernel says: EXT4-fs error"


def test_a_log_of_which_nobody_says_that_it_is_whole_is_not() -> None:
    assert not Observation(0, TREE).klog_whole
    assert not Observation.from_wire({"mount_errno": 5, "tree": None, "klog": []}).klog_whole


def test_a_long_report_is_shortened() -> None:
    lines = ["<4>------------[ cut here ]------------", "<4>WARNING: CPU: 0", "<4>Call Trace:", "<4> more"]
    assert found(*lines) == "the kernel says: ------------[ cut here ]------------ | WARNING: CPU: 0 | Call Trace:"
