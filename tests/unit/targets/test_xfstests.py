"""Configurations of xfstests as targets: the example of its documentation, what carries over, and hostile text."""

import tomllib
from pathlib import Path

import pytest

from postcrash.targets import Target, load_target, target_named
from postcrash.targets.xfstests import ImportedTarget, NotImportedError, target_of_section
from postcrash.targets.xfstests_config import FILE_BYTES_MAX, ConfigError, ConfigSection, read_sections

README = """\
[ext4_4k_block_size]
TEST_DEV=/dev/sda
TEST_DIR=/mnt/test
SCRATCH_DEV=/dev/sdb
SCRATCH_MNT=/mnt/test1
MKFS_OPTIONS="-q -F -b4096"
FSTYP=ext4
RESULT_BASE="`pwd`/results/`date +%d%m%y_%H%M%S`"

[ext4_1k_block_size]
MKFS_OPTIONS="-q -F -b1024"

[ext4_nojournal]
MKFS_OPTIONS="-q -F -b4096 -O ^has_journal"

[xfs_filesystem]
MKFS_OPTIONS="-f"
FSTYP=xfs

[ext3_filesystem]
FSTYP=ext3
MOUNT_OPTIONS="-o noatime"

[cephfs]
TEST_DIR=/mnt/test
TEST_DEV=192.168.14.1:6789:/
TEST_FS_MOUNT_OPTS="-o name=admin,secret=AQDuEBtYKEYRINGSECRETriSC8YJGDZsQHcr7g=="
FSTYP="ceph"

[glusterfs]
FSTYP=glusterfs
TEST_DIR=/mnt/gluster/test
TEST_DEV=192.168.1.1:testvol
SCRATCH_MNT=/mnt/gluster/scratch
SCRATCH_DEV=192.168.1.1:scratchvol

[afs]
FSTYP=afs
TEST_DEV=%example.com:xfstest.test
TEST_DIR=/mnt/xfstest.test
SCRATCH_DEV=%example.com:xfstest.scratch
SCRATCH_MNT=/mnt/xfstest.scratch
"""
"""The example of README.config-sections."""


def sections_of(folder: Path, text: str | bytes) -> list[ConfigSection]:
    config = folder / "local.config"
    config.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_sections(config)


def imported(folder: Path, text: str, name: str = "") -> ImportedTarget:
    """The target of the section of that name, or of the last one."""
    sections = {section.name: section for section in sections_of(folder, text)}
    return target_of_section(sections[name] if name else list(sections.values())[-1], "local.config")


def target(folder: Path, text: str, name: str = "") -> Target:
    return imported(folder, text, name).target


def refused(folder: Path, text: str, name: str = "") -> tuple[int, str]:
    with pytest.raises(NotImportedError) as caught:
        imported(folder, text, name)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300
    return caught.value.line, str(caught.value)


def option(found: Target, letter: str) -> list[str]:
    """The values of an option of mkfs."""
    return [value for flag, value in zip(found.mkfs, found.mkfs[1:], strict=False) if flag == letter]


def test_the_example_of_the_documentation(tmp_path: Path) -> None:
    names = [section.name for section in sections_of(tmp_path, README)]
    assert names[:2] == ["ext4_4k_block_size", "ext4_1k_block_size"] and len(names) == 8
    small = target(tmp_path, README, "ext4_1k_block_size")
    assert small.name == "xfstests-ext4-1k-block-size"
    assert (option(small, "-b"), small.options, small.fstype) == (["1024"], "acl,user_xattr", "ext4")
    bare = target(tmp_path, README, "ext4_nojournal")
    assert (option(bare, "-O"), option(bare, "-J"), option(bare, "-b")) == (["^has_journal"], [], ["4096"])
    xfs = target(tmp_path, README, "xfs_filesystem")
    assert (xfs.fstype, xfs.options, xfs.mkfs[0]) == ("xfs", "", "mkfs.xfs")
    assert set(xfs.mkfs) == set(target_named("xfs").mkfs)
    ext3 = target(tmp_path, README, "ext3_filesystem")
    assert (ext3.mkfs, ext3.options) == (target_named("ext3-ordered").mkfs, "data=ordered,noatime")
    assert refused(tmp_path, README, "cephfs") == (28, "FSTYP=ceph: no target has this file system")
    assert refused(tmp_path, README, "glusterfs")[0] == 31
    assert refused(tmp_path, README, "afs")[0] == 38


def test_a_file_that_is_written_is_the_target(tmp_path: Path) -> None:
    made = imported(tmp_path, README, "ext4_1k_block_size")
    (tmp_path / "made.toml").write_text(made.to_toml())
    assert load_target(tmp_path / "made.toml") == made.target
    assert tomllib.loads(made.to_toml())["like"] == "ext4-current"


def test_the_catalogue_s_options_count_where_xfstests_says_nothing(tmp_path: Path) -> None:
    """Images stay small and without discard, whatever else is asked for."""
    found = target(tmp_path, '[a]\nFSTYP=ext4\nMKFS_OPTIONS="-i 8192 -E stride=16,discard -E packed_meta_blocks=1"\n')
    assert option(found, "-i") == ["8192"] and option(found, "-N") == [] and option(found, "-J") == ["size=4"]
    (extended,) = option(found, "-E")
    assert extended.startswith("stride=16,discard,packed_meta_blocks=1,hash_seed=") and extended.endswith(",nodiscard")
    found = target(tmp_path, '[a]\nFSTYP=xfs\nMKFS_OPTIONS="-m reflink=1,rmapbt=1 -i sparse=1"\n')
    (metadata,) = option(found, "-m")
    assert metadata.startswith("reflink=1,rmapbt=1,uuid=") and "-K" in found.mkfs
    found = target(tmp_path, "[a]\nFSTYP=btrfs\nMKFS_OPTIONS=--nodesize=65536 -O ^no-holes\n")
    assert "--nodesize=65536" in found.mkfs and "-K" in found.mkfs


def test_settings_carry_over_as_in_xfstests(tmp_path: Path) -> None:
    text = """\
[one]
FSTYP=xfs
MKFS_OPTIONS = '-b size=1024'  # a comment
MOUNT_OPTIONS=-o wsync
[two]
MOUNT_OPTIONS=
[three]
FSTYP=ext4
[four]
FSTYP=xfs
"""
    one, two, three, four = (target(tmp_path, text, name) for name in ("one", "two", "three", "four"))
    assert (option(one, "-b"), one.options) == (["size=1024"], "wsync")
    assert (two.mkfs, two.options) == (one.mkfs, "wsync")
    assert (three.mkfs, three.options) == (target_named("ext4-current").mkfs, "acl,user_xattr")
    assert (option(four, "-b"), four.options) == ([], "")


def test_a_file_without_sections_is_a_list_of_assignments(tmp_path: Path) -> None:
    text = """\
# Ideally define at least these 4 to match your environment
export TEST_DEV=/dev/sdX1
export FSTYP=ext4 MOUNT_OPTIONS='-o data=journal -o commit=1'  # of the scratch device
export EXT_MOUNT_OPTIONS="-o dioread_lock"
if [ -b /dev/sdX2 ]; then
    export SCRATCH_DEV=/dev/sdX2
fi
MKFS_OPTIONS="-b 2048"
"""
    found = target(tmp_path, text)
    assert (found.name, found.options, option(found, "-b")) == ("xfstests", "data=journal,commit=1", ["2048"])
    assert target(tmp_path, text.replace(" MOUNT_", " X_")).options == "acl,user_xattr,dioread_lock"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("[a]\nMKFS_OPTIONS=-f\n", 1, "FSTYP: xfstests would look at what is on TEST_DEV"),
        ("[a]\nFSTYP=nfs\n", 2, "FSTYP=nfs: no target has this file system"),
        ("[a]\nFSTYP=xfs\nSCRATCH_LOGDEV=/dev/sdc\nUSE_EXTERNAL=yes\n", 3, "SCRATCH_LOGDEV: guests have no second"),
        ("[a]\nFSTYP=xfs\nSCRATCH_RTDEV=/dev/sdc\nUSE_EXTERNAL=$X\n", 3, "SCRATCH_RTDEV: guests have no second disk"),
        ("[a]\nFSTYP=xfs\nMKFS_OPTIONS=-l logdev=/dev/sdc\n", 3, "-l 'logdev=/dev/sdc' is not taken"),
        ("[a]\nFSTYP=ext4\nMKFS_OPTIONS=-J device=LABEL=j\n", 3, "-J 'device=LABEL=j' is not taken"),
        ("[a]\nFSTYP=ext4\nMOUNT_OPTIONS=-o journal_path=/dev/sdc\n", 3, "'journal_path=/dev/sdc' is not taken"),
        ("[a]\nFSTYP=xfs\nMOUNT_OPTIONS=-o dax\n", 3, "dax: the guest's disk is no memory"),
        ("[a]\nFSTYP=xfs\nMOUNT_OPTIONS=-t xfs -o wsync\n", 3, "option -t not recognized"),
        ("[a]\nFSTYP=xfs\nMOUNT_OPTIONS=wsync\n", 3, "'wsync' is no option"),
        ("[a]\nFSTYP=vfat\nMKFS_OPTIONS=-F 32\n", 3, "option -F not recognized"),
        ('FSTYP=ext4\nMKFS_OPTIONS="-b $SIZE"\n', 2, "MKFS_OPTIONS: a shell would have to fill in '$'"),
        ("if x; then\nFSTYP=ext4\nfi\n", 2, "FSTYP: only a shell can tell"),
        ("for i in 1 2; do FSTYP=ext4; done\n", 1, "FSTYP: only a shell can tell"),
        (": ${FSTYP:=ext4}\n", 1, "FSTYP: only a shell can tell"),
        ("f() { FSTYP=ext4\n}\n", 1, "FSTYP: only a shell can tell"),
        ('FSTYP="ext4\n', 1, "FSTYP: only a shell can tell"),
        ('NOTE="two lines\nFSTYP=ext4\n"\n', 2, "FSTYP: only a shell can tell"),
    ],
)
def test_what_cannot_be_imported_is_said_with_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    at, reason = refused(tmp_path, text)
    assert at == line
    assert said in reason


@pytest.mark.parametrize(
    "options",
    [
        *(
            "$(reboot)",
            "`reboot`",
            "-b 4096; reboot",
            "-b ${IFS}",
            "\\n",
            "-L a'b",
            '-L "a" -b 1',
            "\x1b[2J",
            "-L a\x00",
        ),
        *("/dev/sda", "-F /dev/sda", "-b 4096 sda", "-z /etc/passwd", "-z undo", "-d /root", "-M /mnt", "-l list"),
        *("-J device=/dev/sda", "-E offset=4096", "-L ../x", "-O", "-- /dev/sda", "-n", "-" * 5000, "-b" + "9" * 5000),
    ],
)
def test_hostile_options_of_ext4_are_refused(tmp_path: Path, options: str) -> None:
    refused(tmp_path, f"[a]\nFSTYP=ext4\nMKFS_OPTIONS={options}\n")


@pytest.mark.parametrize(
    ("fstype", "options"),
    [
        ("xfs", "-d name=/dev/sda"),
        ("xfs", "-d file,name=disk"),
        ("xfs", "-d agcount=2,file"),
        ("xfs", "-p /etc/passwd"),
        ("xfs", "-c options=/etc/x"),
        ("xfs", "-N"),
        ("btrfs", "-r /"),
        ("btrfs", "--rootdir=/"),
        ("btrfs", "--root /"),
        ("btrfs", "--help"),
        ("f2fs", "-c /dev/sda"),
        ("f2fs", "-c sda"),
        ("jfs", "-j /dev/sda"),
    ],
)
def test_options_that_reach_another_file_are_refused(tmp_path: Path, fstype: str, options: str) -> None:
    assert refused(tmp_path, f"[a]\nFSTYP={fstype}\nMKFS_OPTIONS={options}\n")[0] == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"[a]\nFSTYP=\xff\n", r":2: not UTF-8: byte 0xff"),
        (b"[a b]\nFSTYP=xfs\n", r":1: expected a section's name .* found '\[a b\]'"),
        (b"[" + b"a" * 100 + b"]\n", r":1: expected a section's name"),
        (b"[]\n", r":1: expected a section's name"),
        (b"#" * (FILE_BYTES_MAX + 1), r"more than 1048576 bytes"),
    ],
)
def test_a_file_that_is_no_configuration_is_one_clear_error(tmp_path: Path, text: bytes, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        sections_of(tmp_path, text)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_sections(tmp_path / "none")
