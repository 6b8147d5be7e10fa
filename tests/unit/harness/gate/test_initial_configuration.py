"""The first file of a gate names what is there, and is one that the gate takes."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash.harness.errors import UsageError
from postcrash.harness.gate import initial_configuration as module
from postcrash.harness.gate.configuration import CorpusPart, load
from postcrash.harness.gate.initial_configuration import TARGETS_TRIED, initial_configuration
from postcrash.harness.guests.engine import Qemu, Uml
from postcrash.harness.guests.kernels import suitability
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.targets import Target, target_named

INSTALLED = Kernel(Path("/linux.uml"), "6.1.176", None, Uml())
STOCKED = {
    "old": Kernel(Path("/old"), "5.10.46", None, Uml()),
    "same": Kernel(Path("/same"), "6.1.176", None, Uml()),
    "a": Kernel(Path("/a"), "6.6.1", None, Uml()),
    "no-btrfs": Kernel(Path("/no-btrfs"), "6.7.1", None, Uml()),
    "b": Kernel(Path("/b"), "6.12.113", None, Uml()),
    "image": Kernel(Path("/image"), "7.2.0", None, Qemu(program=Path("/qemu"), kvm=False)),
}


@pytest.fixture(autouse=True)
def file_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    """All kernels but one have each file system."""
    has = lambda kernel, fstype: (kernel.path.name, fstype) != ("no-btrfs", "btrfs")  # noqa: E731
    monkeypatch.setattr(suitability, "has_file_system", has)


def session(*present: str, **how: Any) -> Any:
    def require(target: Target, recoveries: object) -> None:
        if target.name not in present:
            raise UsageError(f"there is no {target.name}")

    def kernels_called(name: str) -> Iterator[Kernel]:
        if name not in {"6.1", *STOCKED}:
            raise UsageError(f"no kernel is called {name}")
        yield STOCKED.get(name, INSTALLED)

    def build(kernel: Kernel) -> SimpleNamespace:
        return SimpleNamespace(content=kernel.path.read_bytes() if kernel.path.is_file() else kernel.path)

    given = {"kernel": INSTALLED, "kernel_name": None, "engine": "auto", **how}
    return SimpleNamespace(target=target_named, require=require, kernels_called=kernels_called, build=build, **given)


@pytest.mark.parametrize("present", [TARGETS_TRIED, TARGETS_TRIED[1:2]])
def test_the_targets_that_are_there(tmp_path: Path, present: tuple[str, ...]) -> None:
    file = tmp_path / "postcrash.toml"
    file.write_text(initial_configuration(session(*present), tmp_path, "schema.json", ["7.2", "own"]))
    assert load(file).targets == present
    assert load(file).kernels == ()
    assert '# Kernels that are here, too: "7.2", "own".' in file.read_text()


def test_kernels_and_workloads_that_are_there(tmp_path: Path) -> None:
    for place in ("linux", "bugs/one.ops", 'my "own"/two.ops', ".hidden/three.ops", "deep/er/four.ops"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).touch()
    (tmp_path / "arch/x86/boot").mkdir(parents=True)
    (tmp_path / "arch/x86/boot/bzImage").write_bytes(b"no kernel")
    file = tmp_path / "postcrash.toml"
    file.write_text(initial_configuration(session(*TARGETS_TRIED), tmp_path, "schema.json", ["7.2", "own"]))
    gate = load(file)
    assert gate.kernels == ("./linux",)
    assert [each.corpus for each in gate.parts.values() if isinstance(each, CorpusPart)] == ["bugs", 'my "own"']


BUILT = {
    "of the installed series": (Kernel(Path("linux"), "6.1.180-mine", None, Uml()), "kernel:6.1"),
    "of a stocked series": (Kernel(Path("linux"), "6.12.0-rc1", None, Uml()), "kernel:b"),
    "of no series that is here": (Kernel(Path("linux"), "6.3.1", None, Uml()), None),
    "of another engine": (Kernel(Path("linux"), "6.1.180", None, Qemu(program=Path("/qemu"), kvm=False)), None),
}


@pytest.mark.parametrize("name", BUILT)
def test_a_built_kernel_is_compared_with_the_stock_kernel_of_its_series(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    own, reference = BUILT[name]
    (tmp_path / "linux").touch()
    here = session(*TARGETS_TRIED)
    others = here.kernels_called
    here.kernels_called = lambda name: iter([own]) if name.endswith("/linux") else others(name)
    monkeypatch.setattr(module, "_is_kernel", lambda path: path.name == "linux")
    file = tmp_path / "postcrash.toml"
    file.write_text(initial_configuration(here, tmp_path, "schema.json", ["a", "b", "image"]))
    gate = load(file)
    assert gate.kernels == ("./linux",)
    compared = gate.parts.get("compared")
    assert (None if compared is None else compared.expect) == reference
    assert gate.expect == "practice"


@pytest.mark.parametrize(
    ("present", "stocked", "named", "others"),
    [
        (TARGETS_TRIED, ["old", "same", "a", "no-btrfs", "b", "image"], ("6.1", "b", "a"), '"old", "same", "no-btrfs"'),
        (TARGETS_TRIED[:1], ["a", "no-btrfs", "b"], ("6.1", "b", "no-btrfs"), '"a"'),
        (TARGETS_TRIED, ["a"], ("6.1", "a"), None),
        (TARGETS_TRIED, ["same", "no-btrfs", "image"], (), '"same", "no-btrfs", "image"'),
        (TARGETS_TRIED, [], (), None),
    ],
)
def test_the_installed_kernel_and_the_newest_stocked_ones_that_run_the_targets(
    tmp_path: Path, present: tuple[str, ...], stocked: list[str], named: tuple[str, ...], others: str | None
) -> None:
    file = tmp_path / "postcrash.toml"
    file.write_text(initial_configuration(session(*present), tmp_path, "schema.json", stocked))
    assert load(file).kernels == named
    assert load(file).seconds == 600 * max(len(named), 1)
    comments = [line for line in file.read_text().splitlines() if "that are here, too" in line]
    assert [others is not None and others in line for line in comments] == ([] if others is None else [True])


def test_the_kernel_that_the_user_names_is_the_one_of_the_gate(tmp_path: Path) -> None:
    (tmp_path / "linux").touch()
    file = tmp_path / "postcrash.toml"
    here = session(*TARGETS_TRIED, kernel_name="same", kernel=STOCKED["same"])
    file.write_text(initial_configuration(here, tmp_path, "schema.json", ["a", "same", "b"]))
    gate = load(file)
    assert gate.kernels == ("same",)
    assert gate.parts["compared"].expect == "kernel:6.1"


def test_a_kernel_in_a_file_has_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("vmlinux").touch()
    text = initial_configuration(session(*TARGETS_TRIED, kernel_name="vmlinux"), Path(), "schema.json", ["a"])
    assert 'kernels = ["./vmlinux"]' in text


def test_a_kernel_is_not_compared_with_a_copy_of_itself(tmp_path: Path) -> None:
    for name, content in {"own": b"kernel", "copy": b"kernel", "stock": b"other"}.items():
        (tmp_path / name).write_bytes(content)
    own, copy, stock = (Kernel(tmp_path / name, "6.1.176", None, Uml()) for name in ("own", "copy", "stock"))
    here = session(*TARGETS_TRIED, kernel_name="own", kernel=own)
    here.kernels_called = lambda name: iter([{"own": own, "6.1": copy, "stock": stock}[name]])
    assert 'expect = "kernel:stock"' in initial_configuration(here, tmp_path, "schema.json", ["stock"])
    assert "compared" not in initial_configuration(here, tmp_path, "schema.json", [])


def test_a_kernel_is_not_compared_with_itself(tmp_path: Path) -> None:
    file = tmp_path / "postcrash.toml"
    here = session(*TARGETS_TRIED, kernel_name="b", kernel=STOCKED["b"])
    file.write_text(initial_configuration(here, tmp_path, "schema.json", ["a", "b"]))
    assert load(file).kernels == ("b",)
    assert "compared" not in load(file).parts


@pytest.mark.parametrize("how", [{"kernel": STOCKED["image"]}, {"kernel": STOCKED["same"]}])
def test_of_a_kernel_that_a_version_does_not_stand_for_nothing_is_said(tmp_path: Path, how: dict[str, Any]) -> None:
    file = tmp_path / "postcrash.toml"
    file.write_text(initial_configuration(session(*TARGETS_TRIED, **how), tmp_path, "schema.json", ["a", "b"]))
    assert load(file).kernels == ()


def test_a_machine_without_any_target(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no ext4-current"):
        initial_configuration(session(), tmp_path, "schema.json", ["7.2", "own"])
