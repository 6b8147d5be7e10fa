"""Which build a kernel is: its content decides, and what it says of itself helps people to find it again."""

import gzip
import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash.harness.guests.kernels.build import build_of
from postcrash.store.kernel_build import KernelBuild

from .test_bzimage import PVH, elf, image, note
from .test_stock import image as headed

ID = bytes(range(20))
NOTE = note(b"GNU\0", 3, ID)
CONFIG = b"CONFIG_XFS_FS=y\n"
ABOUT: dict[str, Any] = {"modules": None, "version": "6.1.192-00012-g1a2b3c4d5e6f-dirty", "name": "patched"}


def kernel(path: Path, content: bytes, **about: Any) -> Any:
    path.write_bytes(content)
    return SimpleNamespace(path=path, **ABOUT | about)


def test_all_that_a_build_says_of_itself(tmp_path: Path) -> None:
    content = elf(note(b"GNU\0", 1, b"other") + NOTE) + b"IKCFG_ST" + gzip.compress(CONFIG) + b"IKCFG_ED"
    assert build_of(kernel(tmp_path / "linux", content), tmp_path) == KernelBuild(
        content=hashlib.sha256(content).hexdigest(),
        name="patched",
        build_id=ID.hex(),
        commit="1a2b3c4d5e6f",
        configuration=hashlib.sha256(CONFIG).hexdigest(),
    )


def test_a_build_whose_file_was_changed_is_another_one(tmp_path: Path) -> None:
    """A patch of one function leaves the version and the build id as they are."""
    first, other = (build_of(kernel(tmp_path / name, elf(NOTE) + name.encode()), tmp_path) for name in ("a", "b"))
    assert first.build_id == other.build_id == ID.hex()
    assert first.content != other.content and first.short != other.short


@pytest.mark.parametrize("version", ["6.1.176", "6.1.0-47-amd64", "6.1-gpu", "6.1-g12345", "6.1-gabcdefg"])
def test_a_version_without_a_commit(tmp_path: Path, version: str) -> None:
    assert build_of(kernel(tmp_path / "linux", b"no ELF file", version=version), tmp_path).commit == ""


def test_an_image_has_the_build_id_of_the_kernel_within(tmp_path: Path) -> None:
    within, unknown = image(gzip.compress(elf(PVH + NOTE))), image(b"\x28\xb5\x2f\xfd of zstd")
    built = [build_of(kernel(tmp_path / f"{number}", each), tmp_path) for number, each in enumerate((within, unknown))]
    assert [each.build_id for each in built] == [ID.hex(), ""]
    assert len({each.content for each in built}) == 2
    assert build_of(kernel(headed(tmp_path / "bare"), (tmp_path / "bare").read_bytes()), tmp_path).build_id == ""
