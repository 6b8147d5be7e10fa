"""Whether a kernel has dm-log-writes, by its modules or its configuration."""

import gzip
from pathlib import Path

import pytest

from postcrash.harness.guests.engine import Uml
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.harness.guests.kernels.log_writes import has_log_writes, lacks_log_writes


@pytest.mark.parametrize(
    ("loadable", "built_in", "wanted"),
    [
        ("kernel/drivers/md/dm-log-writes.ko.xz: kernel/drivers/md/dm-mod.ko.xz\n", "", True),
        ("", "kernel/drivers/md/dm-log-writes.ko\n", True),
        ("kernel/drivers/md/dm-log.ko: kernel/drivers/md/dm-log-writes-not.ko\n", "kernel/fs/ext4/ext4.ko\n", False),
    ],
)
def test_the_lists_of_modules_tell(tmp_path: Path, loadable: str, built_in: str, wanted: bool) -> None:
    (tmp_path / "modules.dep").write_text(loadable)
    (tmp_path / "modules.builtin").write_text(built_in)
    assert has_log_writes(Kernel(tmp_path / "linux", "6.1", tmp_path, Uml())) == wanted


@pytest.mark.parametrize(("config", "wanted"), [("CONFIG_DM_LOG_WRITES=y\n", True), ("CONFIG_BLK_DEV_DM=y\n", False)])
def test_without_modules_the_configuration_tells(tmp_path: Path, config: str, wanted: bool) -> None:
    kernel = tmp_path / "linux"
    kernel.write_bytes(b"IKCFG_ST" + gzip.compress(config.encode()) + b"IKCFG_ED")
    made = Kernel(kernel, "6.1", None, Uml())
    assert (has_log_writes(made), lacks_log_writes(made)) == (wanted, not wanted)


def test_a_kernel_of_which_nothing_is_known_is_recorded_without(tmp_path: Path) -> None:
    (tmp_path / "linux").write_bytes(b"")
    unknown = Kernel(tmp_path / "linux", "6.1", None, Uml())
    assert not has_log_writes(unknown) and not lacks_log_writes(unknown)
