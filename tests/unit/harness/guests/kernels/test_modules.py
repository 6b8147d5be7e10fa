"""Modules are listed in an order in which they can be loaded. Files of every compression are read."""

import gzip
import lzma
import subprocess
from pathlib import Path

import pytest

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.guests.kernels.kernel import uml_with
from postcrash.harness.guests.kernels.modules import Modules, is_built_in, uncompressed

FS = "kernel/fs/fs.ko.xz"
JOURNAL = "kernel/fs/journal.ko.xz"
LIB = "kernel/lib/lib.ko.xz"
CRC_GENERIC = "kernel/crypto/crc-generic.ko.xz"
CRC_FAST = "kernel/arch/crc-fast.ko.xz"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """fs needs journal, which needs lib. fs also uses a checksum, for which there are two modules."""
    (tmp_path / "modules.dep").write_text(
        f"{FS}: {JOURNAL} {LIB}\n{JOURNAL}: {LIB}\n{LIB}:\n{CRC_GENERIC}:\n{CRC_FAST}: {LIB}\n"
    )
    (tmp_path / "modules.softdep").write_text("# comment\nsoftdep fs pre: my-crc post: absent\nsoftdep lib post: fs\n")
    (tmp_path / "modules.alias").write_text("alias my-crc crc_fast\nalias my-crc crc_generic\nalias pci:v* lib\n")
    return tmp_path


def test_each_module_comes_after_what_it_needs(folder: Path) -> None:
    def needed(*names: str) -> list[str]:
        return [str(path.relative_to(folder)) for path in Modules(folder).needed_by(*names)]

    order = needed("fs")
    assert sorted(order) == sorted([FS, JOURNAL, LIB, CRC_GENERIC, CRC_FAST])
    for before, after in [(LIB, JOURNAL), (JOURNAL, FS), (LIB, CRC_FAST), (CRC_FAST, FS), (CRC_GENERIC, FS)]:
        assert order.index(before) < order.index(after)
    assert needed("crc-generic", "lib") == [CRC_GENERIC, LIB]
    assert needed("crc_generic", "my-crc") == [CRC_GENERIC, LIB, CRC_FAST]
    assert needed("built_in") == []
    within = [str(path.relative_to(folder)) for path in Modules(folder).within("kernel/arch", "kernel/lib")]
    assert within == [LIB, CRC_FAST]


def test_a_module_is_found_by_a_symbol_that_it_has(folder: Path) -> None:
    (folder / "modules.symbols").write_text("# comment\nalias symbol:utf8_data_table lib\n")
    assert [path.name for path in Modules(folder).needed_by("symbol:utf8_data_table")] == ["lib.ko.xz"]


def test_soft_dependencies_may_go_in_circles(folder: Path) -> None:
    (folder / "modules.softdep").write_text("softdep fs pre: lib\nsoftdep lib pre: fs\n")
    assert {path.name for path in Modules(folder).needed_by("lib")} == {"lib.ko.xz", "fs.ko.xz", "journal.ko.xz"}


def test_a_folder_without_lists_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="was depmod run there"):
        Modules(tmp_path)


def test_compressed_modules_are_read(tmp_path: Path) -> None:
    content = b"\x7fELF module"
    (tmp_path / "a.ko").write_bytes(content)
    (tmp_path / "a.ko.xz").write_bytes(lzma.compress(content))
    (tmp_path / "a.ko.gz").write_bytes(gzip.compress(content))
    subprocess.run(["zstd", "-q", tmp_path / "a.ko"], check=True)
    for name in ("a.ko", "a.ko.xz", "a.ko.gz", "a.ko.zst"):
        assert uncompressed(tmp_path / name) == content
    for name in ("a.ko.xz", "a.ko.gz", "a.ko.zst"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InfrastructureError, match="cannot be read"):
            uncompressed(tmp_path / name)


def test_what_is_built_in(tmp_path: Path) -> None:
    assert not is_built_in(tmp_path, "raid6_pq")
    (tmp_path / "modules.dep").write_text("kernel/lib/raid6/raid6_pq.ko:\n")
    (tmp_path / "modules.builtin").write_text("kernel/fs/ext4/ext4.ko\nkernel/fs/btrfs/btrfs.ko.xz\n")
    assert not is_built_in(tmp_path, "raid6_pq")
    assert is_built_in(tmp_path, "btrfs")


def test_a_kernel_measures_raid6_where_it_is_built_in(tmp_path: Path) -> None:
    assert not uml_with(tmp_path).measures_raid6
    (tmp_path / "modules.builtin").write_text("kernel/lib/raid6/raid6_pq.ko\n")
    assert uml_with(tmp_path).measures_raid6
    assert uml_with(None).measures_raid6
