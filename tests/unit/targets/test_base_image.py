"""A copy of an image has its content, and takes no room for zeros."""

import hashlib
import io
from pathlib import Path

import pytest

from postcrash.targets import copy_image

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
