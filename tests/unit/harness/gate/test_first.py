"""The first file of a gate names what is there, and is one that the gate takes."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash.harness.errors import UsageError
from postcrash.harness.gate.configuration import CorpusPart, load
from postcrash.harness.gate.first import TARGETS_TRIED, first_file
from postcrash.targets import Target, target_named


def session(*present: str) -> Any:
    def require(target: Target, recoveries: object) -> None:
        if target.name not in present:
            raise UsageError(f"there is no {target.name}")

    return SimpleNamespace(target=target_named, require=require)


@pytest.mark.parametrize("present", [TARGETS_TRIED, TARGETS_TRIED[1:2]])
def test_the_targets_that_are_there(tmp_path: Path, present: tuple[str, ...]) -> None:
    file = tmp_path / "postcrash.toml"
    file.write_text(first_file(session(*present), tmp_path, "schema.json", ["7.2", "own"]))
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
    file.write_text(first_file(session(*TARGETS_TRIED), tmp_path, "schema.json", ["7.2", "own"]))
    gate = load(file)
    assert gate.kernels == ("./linux",)
    assert [each.corpus for each in gate.parts.values() if isinstance(each, CorpusPart)] == ["bugs", 'my "own"']


def test_a_machine_without_any_target(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no ext4-current"):
        first_file(session(), tmp_path, "schema.json", ["7.2", "own"])
