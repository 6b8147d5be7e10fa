"""The kernel logs nothing of level warning or worse, except lines that it is known to log after any crash.

A log that may lack lines can show that something is wrong, but not that nothing is. The agent's `kernel_log.rs` says
when lines may be missing.

Levels are those of include/linux/kern_levels.h in Linux. A line without a level counts, because the agent reports only
lines that matter.
"""

import re
from dataclasses import dataclass

from postcrash.checkers.checker import Checker, NotInShell
from postcrash.model import History, Observation
from postcrash.model.judge import CannotTellError, Opinion, Stage, holds, violated

LEVEL_WARNING = 4
_FACILITY_LEVELS = 8
"""A line's number is eight times its facility plus its level: syslog(2)."""
_LINES_SHOWN_MAX = 3
_PREFIX = re.compile(r"<([0-9]+)>")


@dataclass(frozen=True, slots=True)
class AllowedLine:
    """A line that is no objection to the file system: its form, why it is fine, and where it comes from."""

    pattern: re.Pattern[str]
    reason: str
    source: str


ALLOWED = (
    AllowedLine(
        re.compile(r"sched: RT throttling activated$"),
        "the host was busy while threads took turns in a recorded run; nothing to do with the file system",
        "Linux 6.1, kernel/sched/rt.c, sched_rt_runtime_exceeded; harness/guests/agent/src/steady.rs",
    ),
    AllowedLine(
        re.compile(r"EXT4-fs: Warning: mounting with data=journal disables delayed allocation"),
        "tells what the mount option means, once per boot",
        "Linux 6.1, fs/ext4/super.c",
    ),
    AllowedLine(
        re.compile(r"\w+ filesystem being (re)?mounted at .* supports timestamps until "),
        "small inodes hold no dates after 2038; nothing to do with the crash",
        "Linux 6.1, fs/namespace.c, mnt_warn_timestamp_expiry",
    ),
    AllowedLine(
        re.compile(r"EXT[24]-fs \(\S+\): warning: mounting unchecked fs, running e2fsck is recommended"),
        "without a journal, not having been unmounted is all that the kernel can tell of a crash",
        "Linux 6.1, fs/ext4/super.c, ext4_setup_super; fs/ext2/super.c, ext2_setup_super",
    ),
    AllowedLine(
        re.compile(r"EXT4-fs: (Ignoring removed \w+ option|inline encryption not supported)$"),
        "tells that the mount option has no effect",
        "Linux 6.1, fs/ext4/super.c, ext4_parse_param",
    ),
    AllowedLine(
        re.compile(r"XFS: (no)?(attr2|ikeep) mount option is deprecated\.$"),
        "the mount option will go; nothing to do with the crash",
        "Linux 6.1, fs/xfs/xfs_super.c, xfs_fs_warn_deprecated",
    ),
    AllowedLine(
        re.compile(r"BTRFS warning( \(device \S+\))?: (the )?'\w+' (option )?is deprecated"),
        "the mount option will go; nothing to do with the crash",
        "Linux 6.1, fs/btrfs/super.c, btrfs_parse_options",
    ),
    AllowedLine(
        re.compile(
            r"(\w+: Deprecated parameter '\w+'$|BTRFS warning .*: space cache v1 is being deprecated and will be )"
        ),
        "the mount option will go; nothing to do with the crash",
        "Linux 7.2, fs/fs_parser.c, __fs_parse; fs/btrfs/super.c, btrfs_check_options",
    ),
    AllowedLine(
        re.compile(r"BTRFS warning \(device \S+\): devid [0-9]+ uuid [0-9a-f-]+ is missing$"),
        "tells what `degraded` was given for; without this option the mount fails",
        "Linux 6.1, fs/btrfs/volumes.c, btrfs_report_missing_device",
    ),
    AllowedLine(
        re.compile(r"BTRFS (warning|alert)( \(device \S+\))?: btrfs RAID5/6 is EXPERIMENTAL and has known data-loss"),
        "tells what the profile means",
        "Linux 6.1, fs/btrfs/disk-io.c, open_ctree",
    ),
    AllowedLine(
        re.compile(r"F2FS-fs( \(\S+\))?: heap/no_heap options were deprecated$"),
        "tells that the mount option has no effect",
        "Linux 7.2, fs/f2fs/super.c, f2fs_parse_param",
    ),
    AllowedLine(
        re.compile(r"(EXT4|F2FS)-fs \(\S+\): Test dummy encryption mode enabled$"),
        "tells what the mount option means",
        "Linux 6.1, fs/ext4/super.c, ext4_parse_test_dummy_encryption; fs/f2fs/super.c, f2fs_set_test_dummy_encryption",
    ),
    AllowedLine(
        re.compile(r"XFS \(\S+\): Torn write \(CRC failure\) detected at log block "),
        "the log's head was being written when the power went; recovery goes back to the last whole record",
        "Linux 6.1, fs/xfs/xfs_log_recover.c, xlog_verify_head",
    ),
    AllowedLine(
        re.compile(r"XFS \(\S+\): Tail block \(0x[0-9a-f]+\) overwrite detected\. Updated to "),
        "the log's head was being written over its old tail; recovery starts at the new tail",
        "Linux 6.1, fs/xfs/xfs_log_recover.c, xlog_verify_tail",
    ),
    AllowedLine(
        re.compile(
            r"XFS \(\S+\): EXPERIMENTAL (big timestamp|inode btree counters|Large extent counts) feature in use\. "
        ),
        "tells what mkfs chose, of features that were new then; nothing to do with the crash",
        "Linux 5.10, fs/xfs/xfs_super.c, xfs_fc_fill_super",
    ),
    AllowedLine(
        re.compile(r"F2FS-fs \(\S+\): invalid crc(_offset: [0-9]+| value)$"),
        "one of the two checkpoint packs was being written; the other one is used",
        "Linux 6.1, fs/f2fs/checkpoint.c, get_checkpoint_version",
    ),
    AllowedLine(
        re.compile(r"(ex)?FAT-fs \(\S+\): Volume was not properly unmounted\. Some data may be corrupt\. "),
        "without a journal, not having been unmounted is all that the kernel can tell of a crash",
        "Linux 6.1, fs/fat/inode.c, fat_set_state; fs/exfat/super.c, __exfat_fill_super",
    ),
    AllowedLine(
        re.compile(r"NILFS \(\S+\): mounting unchecked fs$"),
        "the last checkpoint is looked for in the log; only after a clean unmount is its place known",
        "Linux 6.1, fs/nilfs2/the_nilfs.c, load_nilfs",
    ),
    AllowedLine(
        re.compile(r"REISERFS warning:\s+read_super_block: reiserfs filesystem is deprecated"),
        "the driver will go; nothing to do with the crash",
        "Linux 6.1, fs/reiserfs/super.c, read_super_block",
    ),
    AllowedLine(
        re.compile(r"reiserfs: using flush barriers$"),
        "tells what the mount option means",
        "Linux 6.1, fs/reiserfs/super.c, reiserfs_fill_super",
    ),
    AllowedLine(
        re.compile(r"done$"),
        "mounting finishes what was under way for a file without a name, or for one that was being cut",
        "Linux 6.1, fs/reiserfs/super.c, finish_unfinished",
    ),
)


class KernelLog(Checker):
    """Recovery is nothing to warn about."""

    name = "kernel-log"
    statement = "The kernel logs no warning or worse while it mounts, reads and unmounts the file system."
    depends_on: tuple[str, ...] = ()
    looks_at: tuple[str, ...] = ()
    needs: Stage = "boot"
    in_shell = NotInShell("what it found is in the kernel's log")

    def examine(self, history: History, observation: Observation) -> Opinion:
        """The first lines of warnings or worse that are not allowed. Raises `CannotTellError` if lines may be lost."""
        grave = [text for level, text in map(_split, observation.klog) if level <= LEVEL_WARNING]
        lines = [text for text in grave if not _is_allowed(text)]
        if lines:
            return violated(f"the kernel says: {' | '.join(lines[:_LINES_SHOWN_MAX])}")
        if not observation.klog_whole:
            raise CannotTellError("the kernel's log may lack lines")
        return holds()


def _split(line: str) -> tuple[int, str]:
    """The level and the text of a line such as `<4>EXT4-fs warning …`."""
    match = _PREFIX.match(line)
    if match is None:
        return LEVEL_WARNING, line
    return int(match[1]) % _FACILITY_LEVELS, line[match.end() :]


def _is_allowed(text: str) -> bool:
    return any(allowed.pattern.match(text) for allowed in ALLOWED)
