"""What a bundle holds of a finding, and what cannot be in one."""

import hashlib
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import postcrash
from postcrash.harness.errors import UsageError
from postcrash.harness.findings.bundles import bundle as bundles
from postcrash.harness.findings.bundles.bundle import SIZES, write_bundle
from postcrash.harness.guests.engine import Uml
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.store.records import Finding

from .conftest import BASE, CONTENT, Here, members_of


def test_a_bundle_has_the_finding_its_recording_and_its_base(bundle: Path, finding: Finding, here: Here) -> None:
    members = members_of(bundle)
    assert list(members) == [name for name in SIZES if name in members]
    assert members["recording.pcr"] == here.store.recording_path(finding.recording).read_bytes()
    assert members["base.img"] == CONTENT
    told = json.loads(members["finding.json"])
    assert (told["id"], told["minimal"], told["observation"]) == (finding.id, None, finding.observation)
    assert told["explanation"]["operations"]


def test_the_manifest_says_what_it_is_of(bundle: Path, finding: Finding) -> None:
    manifest = json.loads(members_of(bundle)["manifest.json"])
    assert (manifest["format"], manifest["postcrash"]) == (1, postcrash.__version__)
    assert (manifest["finding"], manifest["state"]) == (finding.id, finding.state)
    assert (manifest["kernel"], manifest["guest"]) == ("UML 6.1.176", "there")
    assert manifest["base"] == {"id": finding.base, "digest": BASE, "bytes": len(CONTENT)}
    assert manifest["recording"]["id"] == finding.recording
    assert manifest["target"]["mkfs"][0] == "mkfs.ext4"
    assert manifest["mkfs_version"].startswith("mke2fs 1.")
    gone = f"{finding.id}: nothing says on which build of UML 6.1.176 it was found: name another one with --kernel"
    assert manifest["left_out"] == [f"the kernel's package and configuration: {gone}"]


def test_the_script_is_that_of_a_report(bundle: Path, tmp_path: Path) -> None:
    (script := tmp_path / "reproduce.sh").write_bytes(members_of(bundle)["reproduce.sh"])
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    assert "mkfs.ext4" in script.read_text()


def test_a_guest_that_is_here_is_described(here: Here, finding: Finding, tmp_path: Path, monkeypatch: Any) -> None:
    kernel = Kernel(Path("/bin/true"), "6.1.176", None, Uml())
    monkeypatch.setattr(Here, "guest", lambda *_: "there")
    monkeypatch.setattr(Here, "same_kernel", lambda *_: kernel)
    monkeypatch.setattr(bundles, "config_of", lambda *_: "CONFIG_A=y\n")
    with (tmp_path / "x").open("wb") as file:
        assert write_bundle(here, finding, file) == ()
    members = members_of(tmp_path / "x")
    manifest = json.loads(members["manifest.json"])
    assert members["kernel.config"] == b"CONFIG_A=y\n"
    assert manifest["package"].startswith("coreutils ")
    assert manifest["left_out"] == []


def test_a_kernel_of_ones_own_has_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    origin = SimpleNamespace(path=Path("/k"), origin="/somewhere/of/mine/bzImage")
    monkeypatch.setattr(bundles, "Stock", lambda _: SimpleNamespace(all=lambda: [origin]))
    kernel: Any = SimpleNamespace(path=Path("/copy"), known_as=Path("/k"))
    assert bundles._package(kernel) == ""
    origin.origin = "linux-image 6.12 (trixie)"
    assert bundles._package(kernel) == "linux-image 6.12 (trixie)"


def test_equal_findings_give_equal_bytes(bundle: Path, here: Here, finding: Finding, tmp_path: Path) -> None:
    here.store.put_finding(replace(finding, minimal="f-0123456789abcdef"))
    with (tmp_path / "again").open("wb") as file:
        write_bundle(here, here.store.finding(finding.id), file)
    digests = {hashlib.sha256(path.read_bytes()).hexdigest() for path in (bundle, tmp_path / "again")}
    assert len(digests) == 1


def test_what_would_not_be_taken_is_not_written(here: Here, finding: Finding, tmp_path: Path) -> None:
    changed = replace(finding, message="other")
    with (tmp_path / "x").open("wb") as file, pytest.raises(UsageError, match=r"^f-\w{16} cannot be in a bundle: "):
        write_bundle(here, changed, file)


def test_what_is_too_large_is_not_written(
    here: Here, finding: Finding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SIZES, "base.img", 1000)
    with (tmp_path / "x").open("wb") as file, pytest.raises(UsageError, match=r"base.img has 2097152 bytes, and may"):
        write_bundle(here, finding, file)
