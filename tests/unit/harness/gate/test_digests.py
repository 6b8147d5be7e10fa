"""What the results of a gate rest on: each file that it names, and each kernel, has a digest of its content."""

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash.harness.examination.campaign import programs_digest
from postcrash.harness.examination.session import Session
from postcrash.harness.expectations.contract import Contract
from postcrash.harness.gate.configuration import load
from postcrash.harness.gate.digests import digests_of
from postcrash.harness.guests.binaries import CHECKOUT_FOLDERS, find_binary
from postcrash.harness.guests.engine import Uml
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.targets import target_named

GATE = """
targets = ["own.toml"]
expect = "contract:held.json"

[parts.own]
corpus = "ops"

[parts.one]
corpus = "one.ops"

[parts.save]
application = "app.toml[n=2]"

[parts.hunted]
targets = ["xfs"]
hunt = 2
expect = "practice"
"""
FILES = ("held.json", "own.toml", "one.ops", "app.toml")
NOBODY: Any = None


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working folder has a gate and all that it names, but no baseline."""
    monkeypatch.chdir(tmp_path)
    Path("postcrash.toml").write_text(GATE)
    Path("ops").mkdir()
    for name in (*FILES, "ops/a.ops", "ops/b.ops"):
        Path(name).write_text(name)
    Path("held.json").write_text(Contract.of([], "UML 6.1", "cache").to_text())


def digests(*names: str, file: str = "postcrash.toml") -> dict[str, str]:
    """Those of a gate of which no part is run here."""
    return digests_of(NOBODY, Path(file), load(Path(file)), names, [])


def changed(before: dict[str, str]) -> set[str]:
    """What has another digest now."""
    after = digests()
    assert after.keys() == before.keys()
    return {name for name, digest in after.items() if digest != before[name]}


def test_each_file_that_the_gate_names_counts() -> None:
    names = {"postcrash.toml", "postcrash-known.txt", *FILES}
    assert digests().keys() == {"postcrash", "postcrash's programs", "folder ops", *(f"file {name}" for name in names)}


@pytest.mark.parametrize("name", ["own.toml", "one.ops", "app.toml", "postcrash-known.txt"])
def test_a_file_with_another_content_has_another_digest(name: str) -> None:
    before = digests()
    Path(name).write_text("other")
    assert changed(before) == {f"file {name}"}


def test_a_contract_counts_by_its_content() -> None:
    before = digests()
    Path("held.json").write_text(Contract.of([], "UML 6.2", "cache").to_text())
    assert changed(before) == {"file held.json"}


def test_settings_of_the_gate_count() -> None:
    before = digests()
    Path("postcrash.toml").write_text(GATE.replace("hunt = 2", "hunt = 1"))
    assert changed(before) == {"file postcrash.toml"}


def test_workloads_of_a_folder_count_with_their_names() -> None:
    before = digests()
    Path("ops/notes.txt").write_text("no workload")
    assert changed(before) == set()
    Path("ops/b.ops").rename("ops/c.ops")
    assert changed(before) == {"folder ops"}
    Path("ops/c.ops").rename("ops/b.ops")
    assert changed(before) == set()
    Path("ops/a.ops").write_text("other")
    assert changed(before) == {"folder ops"}


def test_a_baseline_that_is_not_there_is_empty() -> None:
    before = digests()
    Path("postcrash-known.txt").write_text("")
    assert changed(before) == set()


def test_files_of_sections_that_were_not_asked_for_do_not_count() -> None:
    ours = {"postcrash", "postcrash's programs"}
    assert digests("hunted").keys() == ours | {"file postcrash.toml", "file postcrash-known.txt"}


def test_our_programs_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A shard with another agent or crash disk runs something else, though its Python code is the same."""
    before = digests()
    for name in CHECKOUT_FOLDERS:
        shutil.copy(find_binary(name), tmp_path)
    (tmp_path / "postcrash-agent").write_bytes(b"another")
    monkeypatch.setenv("POSTCRASH_BIN_DIR", str(tmp_path))
    programs_digest.cache_clear()
    try:
        assert changed(before) == {"postcrash's programs"}
    finally:
        programs_digest.cache_clear()


def test_what_a_base_image_is_made_of_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An aged or a fresh image of the same target can come from another mkfs."""
    monkeypatch.setenv("POSTCRASH_CACHE", str(tmp_path / "cache"))
    mkfs = tmp_path / "mkfs.mine"
    mkfs.write_text('#!/bin/sh\nexec mkfs.ext4 "$@"\n')
    mkfs.chmod(0o755)
    usual = target_named("ext4-current")
    target = replace(usual, name="mine", mkfs=(str(mkfs), *usual.mkfs[1:]))

    def of_image() -> str:
        session: Any = SimpleNamespace(guest=lambda kernel: "guest", base_origin=Session(tmp_path).base_origin)
        part = planned(kernel("linux", "a build"), target=target)
        return digests_of(session, Path("postcrash.toml"), load(Path("postcrash.toml")), ("hunted",), [part])[
            "base image of mine"
        ]

    before = of_image()
    assert of_image() == before
    mkfs.write_text('#!/bin/sh\nexec mkfs.ext4 -O ^metadata_csum "$@"\n')
    assert of_image() != before


def test_paths_are_seen_from_the_gate_and_told_from_the_working_folder() -> None:
    Path("gates").mkdir()
    Path("gates/gate.toml").write_text('targets = ["xfs"]\n[parts.own]\ncorpus = "../ops"\n')
    found = digests(file="gates/gate.toml")
    assert found["folder gates/../ops"] == digests()["folder ops"]
    assert "file gates/postcrash-known.txt" in found


def kernel(place: str, content: str) -> Kernel:
    Path(place).write_text(content)
    return Kernel(Path(place), "6.1.0", None, Uml())


def planned(kernel: Kernel | None, expect: str = "practice", **about: Any) -> Any:
    """A planned part, of which only what it rests on is there."""
    expected = SimpleNamespace(name=expect)
    told = {"target": target_named("xfs"), "kernel_name": "./linux", "application": None, "expected": expected}
    return SimpleNamespace(kernel=kernel, **{**told, **about})


def of_kernels(part: Any, **about: Any) -> dict[str, str]:
    """The digests that are not of files. Guests with a kernel have a digest of their own."""
    session: Any = SimpleNamespace(
        guest=lambda kernel: f"guest of {kernel.path}", base_origin=lambda target: f"image of {target.name}", **about
    )
    gate = load(Path("postcrash.toml"))
    found = digests_of(session, Path("postcrash.toml"), gate, ("hunted",), [part])
    return {name: digest for name, digest in found.items() if name.startswith(("kernel", "target", "base"))}


def test_a_kernel_counts_by_its_content_and_not_by_its_label() -> None:
    name = "kernel ./linux (UML 6.1.0) for xfs"
    before, after = (of_kernels(planned(kernel("linux", content))) for content in ("a build", "another build"))
    ours = {"target xfs", "base image of xfs"}
    assert before.keys() == after.keys() == ours | {name, f"{name}, with its modules and programs"}
    assert {each for each in before if before[each] != after[each]} == {name}
    assert before[f"{name}, with its modules and programs"] == "guest of linux"


def test_a_target_that_no_kernel_can_run_rests_on_none() -> None:
    assert of_kernels(planned(None)).keys() == {"target xfs"}


def test_what_a_part_is_compared_with_counts() -> None:
    here, other = kernel("linux", "a build"), kernel("sister", "another build")
    found = of_kernels(planned(here, "kernel:./sister"), kernel_for=lambda name, target: other)
    assert found["kernel ./sister, with which xfs is compared"] == "guest of sister"
    found = of_kernels(planned(here, "target:btrfs"), target=target_named)
    assert found["target btrfs, with which others are compared"] == target_named("btrfs").digest()
    assert found["base image of btrfs, with which others are compared"] == "image of btrfs"


def test_an_application_is_compared_with_nothing() -> None:
    """It has a check of its own, whatever the top of the file says."""
    found = of_kernels(planned(kernel("linux", "a build"), "kernel:./sister", application="app"))
    assert not [name for name in found if "compared" in name]
