"""Targets are TOML files. A file with a mistake gives one clear error."""

import shutil
from pathlib import Path

import pytest

from postcrash.targets import TABLE_TARGETS, TARGETS, VARIANTS, Target, TargetFileError, load_target, target_named


def loaded(folder: Path, text: str) -> Target:
    path = folder / "mine.toml"
    path.write_text(text)
    return load_target(path)


def test_names_are_those_of_the_files_and_rows_come_first() -> None:
    names = [target.name for target in TARGETS]
    assert len(set(names)) == len(names) >= 20
    assert TARGETS[: len(TABLE_TARGETS)] == TABLE_TARGETS
    assert [target.name for target in TABLE_TARGETS][3:] == ["ext4-current", "btrfs"]


def test_variants_stand_apart_and_are_found_by_name() -> None:
    names = [target.name for target in VARIANTS]
    assert len(names) >= 25 and names == sorted(names)
    assert not {target.name for target in TARGETS} & set(names)
    assert [target_named(name) for name in names] == list(VARIANTS)


def test_what_a_file_does_not_name_is_taken_from_the_target_that_it_is_like(tmp_path: Path) -> None:
    like = target_named("ext4-current")
    mine = loaded(tmp_path, 'name = "mine"\nlike = "ext4-current"\noptions = "nodelalloc"\nsize_mib = 40')
    assert (mine.mkfs, mine.fsck, mine.recover_options) == (like.mkfs, like.fsck, like.recover_options)
    assert (mine.name, mine.options, mine.size_mib) == ("mine", "nodelalloc", 40)
    assert mine.digest() != like.digest()


def test_a_target_has_room_for_as_many_inodes_as_are_needed() -> None:
    small = target_named("ext4-current")
    roomy = small.with_inodes(512)
    assert (roomy.mkfs.count("512"), len(roomy.mkfs), roomy.name) == (1, len(small.mkfs), small.name)
    assert roomy.with_inodes(256) == roomy
    assert small.with_inodes(0) == small
    assert target_named("xfs").with_inodes(512) == target_named("xfs"), "it makes inodes as they are needed"


def test_a_target_may_be_like_one_that_is_like_another() -> None:
    assert target_named("ext3-writeback").mkfs == target_named("ext3-ordered").mkfs
    assert target_named("ext3-writeback").fsck == target_named("ext4-current").fsck


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('name = "mine"', "mine.toml: title, fstype, mkfs, size_mib: Field required"),
        ('name = "mine"\nlike = "btrfs"\nsize_mib = "24 MiB"', "found '24 MiB'"),
        ('name = "mine"\nlike = "btrfs"\nsize_mib = 0', "size_mib: "),
        ('name = "mine"\nlike = "btrfs"\nsize_mib = 100000', "found 100000"),
        ('name = "mine"\nlike = "btrfs"\ncolour = "red"', "colour: Unexpected keyword argument, found 'red'"),
        ('name = "../mine"\nlike = "btrfs"', "found '../mine'"),
        ('name = "mine"\nlike = "btrfs"\nmkfs = []', "mkfs: "),
        ('name = "mine"\nlike = "btrfs"\ngarbage_mib = 0', "garbage_mib: "),
        ('name = "mine"\nlike = "../catalogue/btrfs"', "like: not a target of the catalogue: '../catalogue/btrfs'"),
        ('name = "mine"\nlike = 7', "like: not a target of the catalogue: 7"),
        (f'name = "mine"\nlike = "{"a" * 300}"', "like: not a target of the catalogue: 'aaa"),
        ("name =", "not TOML"),
        ("#" * 70_000, "more than 65536 bytes"),
    ],
)
def test_a_wrong_file_is_one_clear_error(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(TargetFileError) as caught:
        loaded(tmp_path, text)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'mine.toml'}: ")
    assert said in message
    assert "\n" not in message


def test_a_target_of_ones_own_needs_no_package_and_no_source(tmp_path: Path) -> None:
    text = 'name = "mine"\ntitle = "Mine"\nfstype = "fuse"\nmkfs = ["mkfs.mine", "-q"]\nsize_mib = 1\n'
    mine = loaded(tmp_path, text)
    assert (mine.package, mine.source, mine.mkfs) == ("", "", ("mkfs.mine", "-q"))
    assert mine.without("mkfs.mine") == "there is no program mkfs.mine (target mine)"
    (tmp_path / "mkfs.mine").touch()
    assert f"run  chmod +x {tmp_path}/mkfs.mine" in mine.without(f"{tmp_path}/mkfs.mine")


def test_paths_in_a_file_begin_at_its_folder_and_programs_are_found(tmp_path: Path) -> None:
    text = """
        name = "mine"
        like = "ext4-current"
        mkfs = ["bin/mkfs.mine", "../settings", "a/b"]
        helper = ["sh", "./mine"]
        fsck = ["no-such-program"]
        files = ["data", "/etc/mke2fs.conf"]
    """
    mine = loaded(tmp_path, text)
    assert mine.mkfs == (f"{tmp_path}/bin/mkfs.mine", f"{tmp_path.parent}/settings", "a/b")
    assert mine.helper == (shutil.which("sh"), f"{tmp_path}/mine")
    assert (mine.fsck, mine.repair) == (("no-such-program",), target_named("ext4-current").repair)
    assert mine.files == (f"{tmp_path}/data", "/etc/mke2fs.conf")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TargetFileError, match="No such file"):
        load_target(tmp_path / "none.toml")
