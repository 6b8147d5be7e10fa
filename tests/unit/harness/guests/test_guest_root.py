"""What a guest's root has of this machine."""

from dataclasses import replace
from pathlib import Path

from postcrash.harness.guests.engine import Uml
from postcrash.harness.guests.guest_root import module_files
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.targets import target_named


def test_the_guest_has_what_the_kernel_may_ask_for_when_it_mounts(tmp_path: Path) -> None:
    names = ("quota_tree", "quota_v2", "xts", "nls_koi8-r", "nls_cp866", "nls_utf8", "vfat")
    (tmp_path / "modules.dep").write_text("".join(f"{n}.ko:{' quota_tree.ko' * (n == names[1])}\n" for n in names))
    (tmp_path / "modules.alias").write_text("alias crypto-xts xts\nalias crypto-lz4 lz4\nalias fs-vfat vfat\n")
    (tmp_path / "modules.softdep").touch()
    for name in {*names} - {"xts"}:
        (tmp_path / f"{name}.ko").touch()
    target = replace(target_named("vfat"), options="iocharset=koi8-r,codepage=866", modules=())
    files = module_files(Kernel(Path("linux"), "6.1", tmp_path, Uml()), [target])
    lists = {place.name: content for place, content in files.items() if isinstance(content, bytes)}
    assert lists["quota_v2"] == b"/modules/quota_tree.ko\n/modules/quota_v2.ko\n"
    assert {"nls_koi8-r", "nls_cp866"} < lists.keys() and "nls_utf8" not in lists
    assert "crypto-xts" not in lists, "the stock does not have its file"
