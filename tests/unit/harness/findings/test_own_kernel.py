"""Commands on a finding use the kernel that it was found on, and say so if that is gone or another one is asked for."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from postcrash.harness.errors import UsageError
from postcrash.harness.examination import session as module
from postcrash.harness.examination.session import Session
from postcrash.harness.findings.own_kernel import guest_difference, is_same_build, on_its_kernel
from postcrash.harness.guests.engine import Qemu
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.harness.guests.kernels.stock import KernelParts, Stock, choose_kernel
from postcrash.store.kernel_build import KernelBuild
from postcrash.store.records import Finding

from ..guests.kernels.test_stock import uml

Make = Callable[..., tuple[Finding, Session]]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of a machine whose installed kernel is of the same version as the user's own builds."""
    monkeypatch.setenv("POSTCRASH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("POSTCRASH_UML", str(uml(tmp_path / "installed", body=b"installed")))
    monkeypatch.setenv("POSTCRASH_UML_MODULES", str(tmp_path))
    (tmp_path / "6.98.0").mkdir()
    monkeypatch.setattr(Session, "guest", lambda self, kernel=None: f"guest of {self.build(kernel).content}")
    return tmp_path / "cache"


@pytest.fixture
def mine(cache: Path, tmp_path: Path) -> Path:
    """A kernel of the user's own."""
    return uml(tmp_path / "linux", body=b"mine")


@pytest.fixture
def found(make_finding: Make, cache: Path, mine: Path) -> tuple[Finding, Session]:
    """A finding on the user's own kernel, and a session of a later command, which names no kernel."""
    finding, session = make_finding("ext4-current")
    there = session.on(choose_kernel("auto", str(mine), cache))
    found = replace(finding, kernel=there.kernel.label, guest=there.guest(), built=there.build())
    return found, session


def test_a_finding_is_tried_on_its_own_kernel(found: tuple[Finding, Session], mine: Path) -> None:
    finding, session = found
    uml(mine, body=b"built anew")
    there = on_its_kernel(session, finding)
    assert there.kernel.path.read_bytes().endswith(b"mine")
    assert there.build() == finding.built
    assert (is_same_build(finding, there), guest_difference(finding, there)) == (True, "")


def test_a_finding_of_a_store_without_builds_is_tried_on_the_kernel_with_its_guest(
    found: tuple[Finding, Session],
) -> None:
    finding, session = found
    older = replace(finding, built=None)
    assert on_its_kernel(session, older).kernel.path.read_bytes().endswith(b"mine")
    with pytest.raises(UsageError, match=r"nothing says on which build of UML 6\.98\.0 it was found: name another one"):
        on_its_kernel(session, replace(older, guest=""))


def test_a_kernel_that_is_gone_is_told(found: tuple[Finding, Session]) -> None:
    finding, session = found
    on_its_kernel(session, finding).kernel.path.unlink()
    gone = r"^f-0123456789abcdef: the kernel that it was found on is not here any more: UML 6\.98\.0 \(linux, sha256:"
    with pytest.raises(UsageError, match=gone) as raised:
        on_its_kernel(session, finding)
    assert str(raised.value).endswith(": name another one with --kernel")


def test_a_kernel_of_the_same_build_id_in_another_file_is_named(
    found: tuple[Finding, Session], cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian's user-mode Linux of another suite is changed so that it finds its C library in the cache."""
    finding, session = found
    assert finding.built is not None
    on_its_kernel(session, finding).kernel.path.unlink()
    Stock(cache).add("same-source", KernelParts(uml(tmp_path / "other", body=b"patched"), None, None, "here"))
    monkeypatch.setattr("postcrash.harness.guests.kernels.build.build_id", lambda _: "b5")
    with pytest.raises(UsageError, match="; installed, same-source has the same build id, in another file: name"):
        on_its_kernel(session, replace(finding, built=replace(finding.built, build_id="b5")))


def test_another_kernel_is_tried_only_if_it_is_named_and_then_told(found: tuple[Finding, Session]) -> None:
    finding, session = found
    session.kernel_name = "6.98"
    there = on_its_kernel(session, finding)
    assert there is session and not is_same_build(finding, there)
    told = guest_difference(finding, there)
    assert told.startswith("another kernel: it was found on UML 6.98.0 (linux, sha256:")
    assert ", and this is UML 6.98.0 (sha256:" in told


def test_the_same_kernel_with_other_modules_is_not_another_one(found: tuple[Finding, Session]) -> None:
    finding, session = found
    there = on_its_kernel(session, replace(finding, guest="other"))
    assert guest_difference(replace(finding, guest="other"), there).startswith("the same kernel, but other modules or")


def test_an_engine_that_cannot_run_the_finding_s_kernel_is_refused(found: tuple[Finding, Session]) -> None:
    finding, session = found
    session.engine = "qemu"
    with pytest.raises(
        UsageError, match=r"was found on UML 6\.98\.0, which --engine qemu cannot run: name another one"
    ):
        on_its_kernel(session, finding)
    session.engine, session.virtual_time = "uml", True
    with pytest.raises(UsageError, match="--virtual-time needs QEMU"):
        on_its_kernel(session, finding)


def test_a_kernel_in_virtual_time_is_found_as_such(make_finding: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    image = Kernel(Path("/image"), "6.1", None, Qemu(Path("/qemu"), kvm=True))
    monkeypatch.setattr(module, "kernels_with", lambda *_: [image])
    monkeypatch.setattr(Session, "guest", lambda self, kernel: kernel.label)
    _, session = make_finding("ext4-current")
    labels: list[Any] = ["QEMU/TCG (virtual time) 6.1", "QEMU/KVM 6.1", "QEMU/TCG 6.1"]
    found = [session.same_kernel(label, label, KernelBuild("0" * 64)) for label in labels]
    assert [each.label for each in found if each] == [*labels[:2], "QEMU/KVM 6.1"]
