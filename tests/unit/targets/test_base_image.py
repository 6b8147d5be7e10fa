"""A copy of an image has its content, and takes no room for zeros."""

import hashlib
import io
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from postcrash.targets import BaseImageError, base_image, copy_image, target_named

MIB = 1 << 20


@pytest.mark.parametrize("content", [b"", b"x", bytes(3 * MIB), bytes(MIB) + b"x" * 5 + bytes(2 * MIB)])
def test_a_copy_is_the_same_with_holes(tmp_path: Path, content: bytes) -> None:
    place = tmp_path / "copy"
    assert copy_image(io.BytesIO(content), place) == hashlib.sha256(content).hexdigest()
    assert place.read_bytes() == content
    assert place.stat().st_blocks * 512 <= 2 * MIB


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("x")
    with pytest.raises(FileExistsError):
        copy_image(io.BytesIO(b"y"), tmp_path / "there")


def test_a_mkfs_that_does_not_end_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mkfs = tmp_path / "mkfs.slow"
    mkfs.write_text('#!/bin/sh\n[ "$1" = -V ] || exec sleep 100\n')
    mkfs.chmod(0o755)
    monkeypatch.setattr(sys.modules[BaseImageError.__module__], "_MKFS_TIMEOUT_S", 0.2)
    target = replace(target_named("ext4-current"), mkfs=(str(mkfs),))
    with pytest.raises(BaseImageError, match=r"mkfs\.slow did not end within 0\.2 s"):
        base_image(target, tmp_path / "bases")
    assert list((tmp_path / "bases").iterdir()) == []


def test_a_mkfs_that_fails_says_why_and_not_what_its_usage_is(tmp_path: Path) -> None:
    target = target_named("xfs")
    with pytest.raises(BaseImageError, match=r"failed: .*[Ll]og size"):
        base_image(replace(target, mkfs=(*target.mkfs, "-l", "size=16m")), tmp_path)
    with pytest.raises(BaseImageError, match=r"false failed: exit code 1"):
        base_image(replace(target, after_mkfs=("false",)), tmp_path)


def test_an_image_may_be_changed_once_it_is_made(tmp_path: Path) -> None:
    plain = target_named("ext4-current")
    changed = replace(plain, after_mkfs=("/sbin/debugfs", "-w", "-R", "set_super_value volume_name changed"))
    first, second = (base_image(target, tmp_path).path for target in (plain, changed))
    assert first != second
    assert (b"changed" in first.read_bytes()[:4096], b"changed" in second.read_bytes()[:4096]) == (False, True)
    with pytest.raises(BaseImageError, match="false with a word failed: "):
        base_image(replace(plain, after_mkfs=("false", "with", "a", "word")), tmp_path)
