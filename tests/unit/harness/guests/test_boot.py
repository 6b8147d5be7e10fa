"""If user-mode Linux does not boot, QEMU takes its place or one sentence says what to do. This is tried once."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from postcrash.harness.errors import BootError, InfrastructureError
from postcrash.harness.examination.session import Session
from postcrash.harness.guests import boot, engine
from postcrash.harness.guests.binaries import find_binary
from postcrash.harness.guests.boot import why_no_boot
from postcrash.harness.guests.engine import Uml
from postcrash.harness.guests.guest_root import guest_root
from postcrash.harness.guests.kernels.kernel import find_kernel, is_static
from postcrash.harness.guests.kernels.stock import KernelParts, Stock
from postcrash.harness.guests.machine import Machine

pytestmark = pytest.mark.slow

PANIC = "Kernel panic - not syncing: Attempted to kill init!"


class Host:
    """A machine with a user-mode Linux that panics. It counts how often this kernel was started."""

    def __init__(self, folder: Path) -> None:
        self.cache, self.store, self._folder = folder / "cache", folder / "store", folder
        self._started = folder / "started"
        modules = folder / "modules/6.98.0"
        modules.mkdir(parents=True)
        for name in ("modules.dep", "modules.softdep", "modules.alias"):
            (modules / name).touch()
        self.uml = self.build("")

    def build(self, comment: str) -> Path:
        """Another build of the same version."""
        path = self._folder / "linux.uml"
        text = f'[ "$1" = --version ] && exec echo 6.98.0\necho x >>{self._started}\necho "{PANIC}"\n#{comment}\n'
        path.write_text(f"#!/bin/sh\n{text}")
        path.chmod(0o755)
        return path

    def boots(self) -> int:
        return len(self._started.read_text().split()) if self._started.exists() else 0

    def with_image(self) -> None:
        """Put a kernel for QEMU into the stock."""
        header = bytearray(0x300)
        header[0x202:0x206], header[0x20E:0x210] = b"HdrS", (0x100).to_bytes(2, "little")
        image = self._folder / "image"
        image.write_bytes(bytes(header) + b"6.99.1\0")
        Stock(self.cache).add("stocked", KernelParts(image, None, None, "here"))

    def why(self, *, fresh: bool = False) -> str | None:
        kernel = find_kernel()
        return why_no_boot(kernel, guest_root(kernel, self.cache, ()), self.cache, fresh=fresh)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host(tmp_path)
    monkeypatch.setattr(engine, "KVM_DEVICE", tmp_path / "no-kvm")
    monkeypatch.setenv("POSTCRASH_UML", str(made.uml))
    monkeypatch.setenv("POSTCRASH_UML_MODULES", str(tmp_path / "modules"))
    monkeypatch.setenv("POSTCRASH_CACHE", str(made.cache))
    return made


def test_qemu_takes_its_place_and_one_line_says_so(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.with_image()
    session = Session(host.store)
    assert session.kernel.label == "QEMU/TCG 6.99.1"
    assert [kernel.label for kernel in session.kernels_called(None)] == ["QEMU/TCG 6.99.1"]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"postcrash: {host.uml} does not boot: the guest's kernel died (console: ")
    assert "using QEMU/TCG 6.99.1 instead" in line and PANIC not in line
    (console,) = (host.cache / "consoles").iterdir()
    assert f"(console: {console})" in line and PANIC in console.read_text()


def test_without_another_kernel_one_sentence_says_what_to_do(host: Host) -> None:
    with pytest.raises(InfrastructureError, match=r"died \(console: .*\); .* run  postcrash kernels fetch ") as raised:
        _ = Session(host.store).kernel
    assert "\n" not in str(raised.value) and not raised.value.evidence


@pytest.mark.parametrize("asked", [{"engine": "uml"}, {"kernel_name": "linux.uml"}])
def test_what_was_asked_for_is_not_replaced(
    host: Host, asked: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.with_image()
    monkeypatch.chdir(tmp_path)
    session = Session(host.store, **asked)
    assert session.kernel.label == "UML 6.98.0"
    assert host.boots() == 0
    said = f"{host.uml} does not boot: the guest's kernel died"
    with pytest.raises(BootError, match=said) as raised, Machine(session.settings):
        pass
    assert PANIC in raised.value.evidence


def test_each_build_is_tried_once_between_two_starts_of_the_machine(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = host.why()
    assert first is not None and host.why() == first
    assert host.boots() == 1
    host.why(fresh=True)
    assert host.boots() == 2
    host.build("another")
    host.why()
    assert host.boots() == 3
    (tmp_path / "boot-id").write_text("another start\n")
    monkeypatch.setattr(boot, "BOOT_ID", tmp_path / "boot-id")
    host.why()
    assert host.boots() == 4


def test_a_guest_that_ran_out_of_time_is_tried_again(host: Host) -> None:
    """The reason may be a busy machine, and the next time may be better."""
    host.uml.write_text(host.uml.read_text().replace('echo "', 'sleep 100; echo "'))
    kernel = replace(find_kernel(), engine=Uml(boot_timeout_s=0.5))
    root = guest_root(kernel, host.cache, ())
    for boots in (2, 4):
        assert "hangs: no boot within 0.5 s" in str(why_no_boot(kernel, root, host.cache))
        assert host.boots() == boots


def test_our_own_failure_is_no_answer(host: Host, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernel = find_kernel()
    root = guest_root(kernel, host.cache, ())
    monkeypatch.setattr("postcrash.harness.guests.machine.find_binary", lambda _: tmp_path / "no-crash-disk")
    with pytest.raises(InfrastructureError):
        why_no_boot(kernel, root, host.cache)
    assert not list((host.cache / "uml").iterdir())


def test_a_program_without_a_loader_is_static(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    agent, python = find_binary("postcrash-agent"), Path(sys.executable)
    assert [is_static(program) for program in (agent, python, script, tmp_path / "none")] == [True, False, False, False]


def test_a_static_kernel_that_does_not_boot_is_told_why(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postcrash.harness.guests.machine.is_static", lambda _: True)
    assert "it is linked statically, so that libpostcrash_xstate.so cannot be preloaded" in str(host.why())
