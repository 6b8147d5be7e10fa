"""Base images: a copy has the content and takes no room for zeros, and an image is what its mkfs makes now."""

import hashlib
import io
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from postcrash.harness.examination.session import Session
from postcrash.targets import BaseImageError, Target, base_image, copy_image, image_id, target_named

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


def scripted(place: Path, *options: str) -> Target:
    """A target whose mkfs is a script that runs mkfs.ext4 with more options."""
    usual = target_named("ext4-current")
    place.write_text(f'#!/bin/sh\n[ "$1" = -V ] && echo mine 1.0 && exit\nexec mkfs.ext4 {" ".join(options)} "$@"\n')
    place.chmod(0o755)
    return replace(usual, mkfs=(str(place), *usual.mkfs[1:]))


def test_a_script_that_was_changed_makes_another_image(tmp_path: Path) -> None:
    target, images = scripted(tmp_path / "mkfs.mine"), tmp_path / "bases"
    first = base_image(target, images)
    assert base_image(target, images).id == first.id == base_image(target_named("ext4-current"), images).id
    scripted(tmp_path / "mkfs.mine", "-O", "^metadata_csum")
    assert base_image(target, images).id != first.id


def test_a_script_is_run_once_in_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of its images are the same then, even if the script writes something else each time."""
    monkeypatch.setenv("POSTCRASH_CACHE", str(tmp_path / "cache"))
    mkfs = tmp_path / "mkfs.mine"
    mkfs.write_text('#!/bin/sh\necho >>"$0.runs"\nfor image; do :; done\nhead -c 64 /dev/urandom >"$image"\n')
    mkfs.chmod(0o755)
    target, sessions = replace(target_named("ext4-current"), mkfs=(str(mkfs),)), [Session(tmp_path) for _ in range(2)]
    images = [session.base(target) for session in sessions for _ in range(2)]
    assert len({image.id for image in images}) == 2
    assert [image_id(session.base_origin(target)) for session in sessions] == [images[0].id, images[2].id]
    assert len((tmp_path / "mkfs.mine.runs").read_text()) == 2
    assert all(image.path.exists() for image in images)
    assert [path.name for path in (tmp_path / "cache" / "bases").iterdir() if path.suffix == ".img"] == []


def test_an_image_of_a_known_program_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTCRASH_CACHE", str(tmp_path / "cache"))
    target = target_named("ext4-current")
    first = Session(tmp_path).base(target)
    made = first.path.stat().st_mtime_ns
    assert Session(tmp_path).base(target) == first
    assert first.path.stat().st_mtime_ns == made
    assert Session(tmp_path).base_origin(target) not in ("", first.id)


def test_a_configuration_of_mke2fs_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, images = target_named("ext4-current"), tmp_path / "bases"
    usual = base_image(target, images)
    (tmp_path / "own.conf").write_text("[defaults]\nbase_features = sparse_super,filetype\n")
    monkeypatch.setenv("MKE2FS_CONFIG", str(tmp_path / "own.conf"))
    assert base_image(target, images).id != usual.id


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


def test_two_targets_of_one_session_that_differ_after_mkfs_have_two_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSTCRASH_CACHE", str(tmp_path / "cache"))
    plain, session = target_named("ext4-current"), Session(tmp_path)
    changed = replace(plain, after_mkfs=("/sbin/debugfs", "-w", "-R", "set_super_value volume_name changed"))
    assert session.base(plain).id != session.base(changed).id
