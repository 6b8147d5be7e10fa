"""The file systems of a kernel: depmod's lists tell them, or its configuration if it has no modules."""

from pathlib import Path

import pytest

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.guests.engine import Uml
from postcrash.harness.guests.kernels.file_systems import has_file_system
from postcrash.harness.guests.kernels.kernel import Kernel


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """A kernel with ext4 as a module and xfs built in."""
    (tmp_path / "modules.alias").write_text("# Aliases\nalias fs-ext4 ext4\nalias fs-ext3 ext4\nalias crc32 crc32\n")
    (tmp_path / "modules.builtin.modinfo").write_bytes(b"xfs.license=GPL\0xfs.alias=fs-xfs\0xfs.file=fs/xfs/xfs\0")
    return tmp_path


def kernel(modules: Path | None, path: Path = Path("kernel")) -> Kernel:
    return Kernel(path, "6.1", modules, Uml())


def test_modules_and_what_is_built_in(modules: Path) -> None:
    names = ("ext2", "ext3", "ext4", "xfs", "xf", "crc32", "btrfs")
    assert [name for name in names if has_file_system(kernel(modules), name)] == ["ext3", "ext4", "xfs"]


def test_a_folder_without_the_lists_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="was depmod run there"):
        has_file_system(kernel(tmp_path), "ext4")


def test_without_modules_the_configuration_tells(tmp_path: Path) -> None:
    own = kernel(None, tmp_path / "kernel")
    own.path.write_bytes(b"no configuration here")
    assert has_file_system(own, "xfs")
    (tmp_path / "config").write_text("CONFIG_XFS_FS=y\nCONFIG_EXT4_FS=y\n# CONFIG_BTRFS_FS is not set\n")
    names = ("btrfs", "ext2", "ext3", "ext4", "xfs")
    assert [name for name in names if has_file_system(own, name)] == ["ext3", "ext4", "xfs"]
