"""Mounts have the same form in the store as they always had, and so findings keep their names."""

import json
from dataclasses import replace

import pytest

from postcrash.targets import TARGETS, Target, target_named


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("ext4-original", '{"fstype": "ext4", "options": "noauto_da_alloc"}'),
        ("fuse2fs", '{"fstype": "fuse", "options": "", "helper": ["/usr/bin/fuse2fs"]}'),
        ("xsyncfs", '{"fstype": "ext4", "options": "data=journal", "supervisor": "xsync"}'),
    ],
)
def test_the_mount_of_a_target(target: str, text: str) -> None:
    assert json.dumps(target_named(target).mount.to_wire()) == text


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_recovery_is_mounted_without_a_supervisor(target: Target) -> None:
    """What a guest takes as a mount has none (model/wire/src/command.rs)."""
    mount = target.recovery(walk=True, fsck=False).mount
    assert mount == replace(target.mount, options=mount.options, supervisor="")
    assert mount.options.startswith(target.options)
