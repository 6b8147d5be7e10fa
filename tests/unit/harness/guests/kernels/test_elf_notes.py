"""The build id of a kernel's file, which may be damaged or anything else."""

from pathlib import Path

import pytest

from postcrash.harness.guests.kernels.elf_notes import build_id

from .test_bzimage import elf, note

NOTE = note(b"GNU\0", 3, bytes(range(20)))


def test_the_build_id_stands_among_other_notes(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(elf(note(b"odd", 3, b"odd") + note(b"GNU\0", 1, b"other") + NOTE))
    assert build_id(tmp_path / "file") == bytes(range(20)).hex()


@pytest.mark.parametrize("content", [b"", b"MZ", elf(b""), elf(NOTE)[:-30], elf(note(b"GNU\0", 3, bytes(100)))])
def test_files_without_a_build_id(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    assert build_id(tmp_path / "file") == ""
