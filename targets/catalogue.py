"""The targets that come with postcrash.

Images are small, so that a recovery has little to read, and made without discard, so that free space keeps its garbage.
UUIDs and hash seeds are fixed: the same mkfs makes the same image.
"""

import difflib

from postcrash.targets.target import Target

_UUID = "706f7374-6372-6173-6800-000000000001"
_EXT_OPTIONS = ("-q", "-F", "-b", "4096", "-N", "256", "-J", "size=4", "-U", _UUID)
_EXT_EXTENDED = f"hash_seed={_UUID},lazy_itable_init=0,lazy_journal_init=0,nodiscard"
_EXT3 = ("mkfs.ext3", *_EXT_OPTIONS, "-E", _EXT_EXTENDED)
_EXT4 = ("mkfs.ext4", *_EXT_OPTIONS, "-E", _EXT_EXTENDED)
_E2FSCK = ("/sbin/e2fsck", "-f", "-n")
_HOTDEP = "HotDep'13, Table 1"


def _ext(name: str, title: str, fstype: str, options: str, source: str) -> Target:
    mkfs = _EXT3 if fstype == "ext3" else _EXT4
    return Target(
        name=name,
        title=title,
        fstype=fstype,
        mkfs=mkfs,
        options=options,
        fsck=_E2FSCK,
        size_mib=24,
        package="e2fsprogs",
        source=source,
        # Inode tables that are read ahead are read before the journal is replayed over them.
        recover_options="inode_readahead_blks=0",
    )


TARGETS: tuple[Target, ...] = (
    _ext("ext3-ordered", "ext3, data=ordered (ext4's driver)", "ext3", "data=ordered", _HOTDEP),
    _ext("ext3-writeback", "ext3, data=writeback (ext4's driver)", "ext3", "data=writeback", _HOTDEP),
    _ext("ext4-original", "ext4, noauto_da_alloc", "ext4", "noauto_da_alloc", _HOTDEP),
    _ext("ext4-current", "ext4, defaults (data=ordered)", "ext4", "", _HOTDEP),
    Target(
        name="btrfs",
        title="btrfs, defaults",
        fstype="btrfs",
        mkfs=("mkfs.btrfs", "-q", "-f", "-K", "-U", _UUID),
        options="",
        fsck=("/bin/btrfs", "check", "--readonly"),
        size_mib=128,
        package="btrfs-progs",
        source=_HOTDEP,
        checks_data=True,
    ),
    _ext("ext4-writeback", "ext4, data=writeback", "ext4", "data=writeback", "OSDI'14, Table 1 (ext4-wb)"),
    _ext("ext4-journal", "ext4, data=journal", "ext4", "data=journal", "OSDI'14, Table 1 (ext4-dj)"),
    Target(
        name="xfs",
        title="xfs, defaults",
        fstype="xfs",
        mkfs=("mkfs.xfs", "-q", "-f", "-K", "-m", f"uuid={_UUID}"),
        options="",
        fsck=("/sbin/xfs_repair", "-n"),
        size_mib=300,
        package="xfsprogs",
        source="OSDI'14, Table 1",
    ),
)

#: The rows of HotDep'13's table, in its order.
TABLE_TARGETS: tuple[Target, ...] = TARGETS[:5]


class UnknownTargetError(LookupError):
    """No target has this name."""


def target_named(name: str) -> Target:
    """The target called `name`; UnknownTargetError names the nearest ones."""
    for target in TARGETS:
        if target.name == name:
            return target
    names = [target.name for target in TARGETS]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f", did you mean {near[0]!r}?" if near else ""
    raise UnknownTargetError(f"unknown target {name!r}{hint} (known: {', '.join(names)})")
