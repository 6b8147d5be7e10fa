"""How a target is recovered, which words its rules apply to, and what another run must not be taken for."""

from dataclasses import fields, replace
from typing import Any

import pytest
from pydantic import ValidationError

from postcrash.targets import Mount, Rule, Target

GIVEN: dict[str, Any] = {
    **{"name": "mine", "title": "Mine", "fstype": "ext4", "mkfs": ("mkfs.ext4", "-O", "extents,^has_journal", "-q")},
    **{"options": "data=journal,sync", "fsck": ("/sbin/e2fsck", "-fn"), "size_mib": 16, "package": "e2fsprogs"},
    "source": "mine",
}


def target(**changed: Any) -> Target:
    return Target(**{**GIVEN, **changed})


def test_rules_apply_to_the_words_of_mount_and_mkfs() -> None:
    assert target().words == {"data=journal", "sync", "-O", "extents", "^has_journal", "-q"}
    assert target(options="", mkfs=("mkfs.xfs",)).words == frozenset()
    assert target(options=",sync,", mkfs=("mkfs.xfs",)).words == {"sync"}


def test_a_guest_runs_each_command_that_is_given() -> None:
    assert target().commands == (target().fsck,) != ((),)
    assert target(fsck=()).commands == ()
    repair, helper = ("/sbin/fsck", "-a"), ("/usr/bin/fuse2fs", "-o")
    assert target(repair=repair, helper=helper).commands == (target().fsck, repair, helper)


@pytest.mark.parametrize(
    ("mkfs", "count", "made"),
    [
        (("mkfs.ext4", "-N", "256", "-q"), 300, ("mkfs.ext4", "-N", "300", "-q")),
        (("mkfs.ext4", "-N", "256"), 256, ("mkfs.ext4", "-N", "256")),
        (("mkfs.ext4", "-N", "256"), 10, ("mkfs.ext4", "-N", "256")),
        (("mkfs.ext4", "-b", "256"), 300, ("mkfs.ext4", "-b", "256")),
        (("mkfs.ext4", "-N", "256k"), 300, ("mkfs.ext4", "-N", "256k")),
        (("mkfs.ext4", "-N"), 300, ("mkfs.ext4", "-N")),
        (("mkfs.btrfs",), 300, ("mkfs.btrfs",)),
    ],
)
def test_inodes_are_added_where_mkfs_fixes_their_number(
    mkfs: tuple[str, ...], count: int, made: tuple[str, ...]
) -> None:
    found = target(mkfs=mkfs).with_inodes(count)
    assert found == target(mkfs=made)
    assert found.digest() == target(mkfs=made).digest()


def test_a_workload_runs_under_the_supervisor_and_a_recovery_does_not() -> None:
    mine = target(supervisor="xsync", helper=("/usr/bin/fuse2fs",))
    assert mine.mount == Mount("ext4", "data=journal,sync", ("/usr/bin/fuse2fs",), "xsync")
    assert mine.recovery(walk=True, fsck=False).mount == Mount("ext4", "data=journal,sync", ("/usr/bin/fuse2fs",))


@pytest.mark.parametrize(
    ("options", "more", "joined"), [("", "", ""), ("a", "", "a"), ("", "b", "b"), ("a,c", "b", "a,c,b")]
)
def test_a_recovery_has_options_of_its_own(options: str, more: str, joined: str) -> None:
    mine = target(options=options, recover_options=more)
    assert mine.recovery(walk=True, fsck=False).mount.options == joined
    assert mine.mount.options == options


def test_a_recovery_does_what_is_asked_for() -> None:
    plain = target().recovery(walk=True, fsck=False)
    assert (plain.walk, plain.map, plain.use_after, plain.bytes, plain.fsck, plain.repair) == (
        *(True, True, False, False, (), ()),
    )
    other = target().recovery(walk=False, fsck=True, use=True, device="/dev/vdb")
    assert (other.walk, other.use_after, other.fsck) == (False, True, ("/sbin/e2fsck", "-fn", "/dev/vdb"))
    assert target(fsck=()).recovery(walk=False, fsck=True).fsck == ()


def test_contents_are_not_looked_up_where_the_file_system_checks_them() -> None:
    assert not target(checks_data=True).recovery(walk=True, fsck=False).map


@pytest.mark.parametrize(
    ("repair", "needs", "asked", "made"),
    [
        (("/sbin/fsck", "-a"), False, False, ()),
        (("/sbin/fsck", "-a"), False, True, ("/sbin/fsck", "-a", "/dev/vda")),
        (("/sbin/fsck", "-a"), True, False, ("/sbin/fsck", "-a", "/dev/vda")),
        ((), False, True, ()),
        ((), True, True, ()),
    ],
)
def test_a_state_is_repaired_where_that_is_asked_for_or_nothing_else_mounts(
    repair: tuple[str, ...], needs: bool, asked: bool, made: tuple[str, ...]
) -> None:
    found = target(repair=repair, needs_repair=needs).recovery(walk=True, fsck=False, repair=asked)
    assert (found.repair, found.is_repaired) == (made, bool(made))


CHANGED: dict[str, Any] = {
    **{"name": "other", "title": "Other", "fstype": "ext3", "mkfs": ("mkfs.ext4",), "options": "", "helper": ("/x",)},
    **{"fsck": (), "repair": ("/x",), "needs_repair": True, "size_mib": 17, "garbage_mib": 1, "package": "other"},
    **{"aged_mib": 1, "source": "other", "checks_data": True, "recover_options": "ro", "modules": ("crc32c",)},
    **{"after_mkfs": ("/x",), "files": ("/x",), "configuration": ("CONFIG_QUOTA",)},
    **{"further_disks_mib": (8,), "lost_disk": 0},
    **{"supervisor": "xsync", "rules": {"r": Rule(statement="It is so.", source="fs(5)", promises=("P1",))}},
}


def test_every_field_makes_another_digest() -> None:
    """Results of a run on a target are kept by it."""
    assert set(CHANGED) == {each.name for each in fields(Target)}
    digests = [target().digest(), *(target(**{name: value}).digest() for name, value in CHANGED.items())]
    assert len(set(digests)) == len(digests)
    assert target().digest() == target().digest()


def test_targets_can_be_keys_although_they_have_rules() -> None:
    ruled = target(rules=CHANGED["rules"])
    assert {ruled: 1}[replace(ruled)] == 1
    assert ruled != target()


@pytest.mark.parametrize(
    "changed",
    [
        *({"name": name} for name in ("", "-a", "A", "a_b", "a/b", "a\n", "a" * 65)),
        *({"fstype": fstype} for fstype in ("", "EXT4", "ext4\n", "a" * 17)),
        *({"size_mib": size} for size in (0, -1, True, "16", 1.5)),
        *({"mkfs": ()}, {"mkfs": "mkfs.ext4"}, {"options": "a\nb"}, {"options": "a" * 1001}),
        *({"garbage_mib": 0}, {"aged_mib": 0}, {"needs_repair": 1}, {"checks_data": "yes"}, {"supervisor": "other"}),
        *({"configuration": ("QUOTA",)}, {"configuration": ("CONFIG_x=y",)}),
        *({"more": 1}, {"rules": {"r": {"statement": "It is so.", "source": "fs(5)"}}}),
    ],
    ids=str,
)
def test_what_is_no_target_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        target(**changed)
    (wrong,) = caught.value.errors()
    assert wrong["loc"][0] == next(iter(changed))
