"""Which targets a kernel can run."""

import re
from pathlib import Path

import pytest

import postcrash
from postcrash.harness.guests.engine import Engine, Qemu, Uml
from postcrash.harness.guests.kernels import suitability
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.harness.guests.kernels.suitability import SUPERVISOR_KERNELS_MIN, why_unsuitable
from postcrash.targets import TARGETS, target_named

CHECKOUT = Path(postcrash.__file__).resolve().parents[1]


def kernel(version: str, engine: Engine | None = None) -> Kernel:
    return Kernel(Path("/kernel"), version, None, engine or Uml())


@pytest.fixture(autouse=True)
def file_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    """All kernels have ext4 and nothing else."""
    monkeypatch.setattr(suitability, "has_file_system", lambda _kernel, fstype: fstype == "ext4")


@pytest.mark.parametrize(
    ("version", "target", "why"),
    [
        ("5.10.46", "ext4-current", None),
        ("5.10.46", "btrfs", "UML 5.10.46 has no btrfs (target btrfs)"),
        ("5.10.46", "xsyncfs", "UML 5.10.46 cannot run xsync (target xsyncfs): it needs Linux 5.17 or later"),
        ("5.17.0", "xsyncfs", None),
        ("6.1.176", "xsyncfs", None),
        ("unknown", "xsyncfs", None),
    ],
)
def test_a_kernel_that_cannot_run_a_target_says_why(version: str, target: str, why: str | None) -> None:
    assert why_unsuitable(kernel(version), target_named(target)) == why


def test_only_user_mode_linux_runs_supervisors() -> None:
    engine = Qemu(program=Path("/qemu"), kvm=False)
    found = why_unsuitable(kernel("6.1.0", engine), target_named("xsyncfs"))
    assert found is not None
    assert "only user-mode Linux" in found


def test_each_supervisor_says_which_kernel_it_needs() -> None:
    supervisors = {target.supervisor for target in TARGETS} - {""}
    assert supervisors == set(SUPERVISOR_KERNELS_MIN)
    source = (CHECKOUT / "targets/xsyncfs/src/cli.rs").read_text()
    (numbers,) = re.findall(r"const KERNEL_MIN: \(u32, u32\) = \((\d+), (\d+)\);", source)
    assert SUPERVISOR_KERNELS_MIN["xsync"] == tuple(map(int, numbers))


def test_a_kernel_that_was_built_without_an_option_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    target = target_named("ext4-casefold")
    for config, why in [
        ("CONFIG_UNICODE=y\n", None),
        ("# CONFIG_UNICODE is not set\n", "UML 6.1.176 was built without CONFIG_UNICODE (target ext4-casefold)"),
        (None, None),
    ]:
        monkeypatch.setattr(suitability, "known_config", lambda *_, config=config: config)
        assert why_unsuitable(kernel("6.1.176"), target) == why
