"""Two guests have the same digest only if they are made of the same parts, because a kernel's name tells little."""

from dataclasses import replace
from pathlib import Path

import pytest

from postcrash import _core
from postcrash.harness.examination import campaign
from postcrash.harness.guests.binaries import CHECKOUT_FOLDERS, find_binary
from postcrash.harness.guests.engine import Qemu, Uml
from postcrash.harness.guests.guest_identity import guest_digest
from postcrash.harness.guests.kernels.kernel import Kernel


def root(folder: Path, **files: str) -> Path:
    """A root folder with files by their names. `_` in a name stands for the slash behind a folder."""
    content = {"init": "agent", "modules_ext4.ko": "ext4", "usr_fsck": "checks", **files}
    for name, text in content.items():
        place = folder / name.replace("_", "/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    (tmp_path / "linux").write_text("a kernel")
    (tmp_path / "qemu").write_text("an emulator")
    return Kernel(tmp_path / "linux", "6.1.176", None, Uml())


def test_each_part_of_a_guest_changes_its_digest(kernel: Kernel, tmp_path: Path) -> None:
    other = tmp_path / "linux-other"
    other.write_text("a Kernel")
    (tmp_path / "qemu-other").write_text("an Emulator")
    qemu = replace(kernel, engine=Qemu(tmp_path / "qemu", kvm=False))
    same = root(tmp_path / "root")
    guests = {
        "stock": (kernel, same),
        "another build of the kernel": (replace(kernel, path=other), same),
        "more memory": (replace(kernel, engine=Uml(memory_mib=256)), same),
        "QEMU": (qemu, same),
        "KVM": (replace(kernel, engine=Qemu(tmp_path / "qemu", kvm=True)), same),
        "another QEMU": (replace(kernel, engine=Qemu(tmp_path / "qemu-other", kvm=False)), same),
        "another module": (kernel, root(tmp_path / "module", **{"modules_ext4.ko": "ext5"})),
        "another fsck": (kernel, root(tmp_path / "fsck", usr_fsck="nods")),
        "one more file": (kernel, root(tmp_path / "more", more="")),
    }
    digests = {name: guest_digest(*guest) for name, guest in guests.items()}
    assert len(set(digests.values())) == len(guests), digests


def test_what_changes_no_result_does_not_count(kernel: Kernel, tmp_path: Path) -> None:
    """The agent is our own code, so `tool_digest` has it."""
    (tmp_path / "elsewhere").mkdir()
    moved = (tmp_path / "linux").rename(tmp_path / "elsewhere/linux")
    first = guest_digest(replace(kernel, path=moved), root(tmp_path / "root"))
    patient = replace(kernel, path=moved, version="other", engine=Uml(boot_timeout_s=1))
    assert guest_digest(patient, root(tmp_path / "agent", init="another agent")) == first


def test_our_own_code_is_all_of_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    files = campaign.tool_files()
    assert {Path(_core.__file__), *map(find_binary, CHECKOUT_FOLDERS)} <= set(files)
    assert {"examiner.py", "durability.py", "simulate.py", "practice.toml", "ext4-current.toml"} <= {
        file.name for file in files
    }
    digests = {campaign.tool_digest.__wrapped__()}
    others = [file for file in files if file.suffix != ".py"]
    for number, changed in enumerate(others):
        other = tmp_path / str(number)
        other.write_bytes(changed.read_bytes() + b"\0")
        now = [other if file == changed else file for file in files]
        monkeypatch.setattr(campaign, "tool_files", lambda now=now: now)
        digests.add(campaign.tool_digest.__wrapped__())
    assert len(digests) == len(others) + 1
