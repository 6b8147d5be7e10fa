"""User-mode Linux that root starts has no rights, no network, and a root of its own.

The crash disk's own tests attack this (confinement.rs). Where a container does not let it be confined, guests run all
the same, as they do for another user than root.
"""

import os
import subprocess
from pathlib import Path

from postcrash.harness.guests.machine import Machine, MachineSettings
from postcrash.model import ExitCode

from .command import COMMAND
from .test_lost_guests import guest_of

NEEDED = {"proc", "usr", "bin", "sbin", "lib", "lib64", "dev"}
"""Programs and libraries of the host. Besides these there are only folders on the way to what the guest is given."""
WITHOUT_NAMESPACES = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--")
"""As in a container whose processes may not make namespaces."""


def status(pid: int, name: str) -> str:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split(":", 1)[1].strip() for line in lines if line.startswith(f"{name}:"))


def given(pid: int) -> set[Path]:
    """What is mounted in the root of this process, as paths in it."""
    return {Path(line.split()[4]) for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines()} - {Path("/")}


def test_a_guest_has_no_rights_and_sees_nothing_of_the_host(settings: MachineSettings) -> None:
    assert os.geteuid() == 0, "only root can confine others"
    with Machine(settings) as machine:
        pid = guest_of(machine)
        assert status(pid, "Uid").split()[0] not in ("0", "65534")
        assert int(status(pid, "CapEff"), 16) == 0
        assert status(pid, "NoNewPrivs") == "1"
        for kind in ("net", "mnt", "ipc", "uts"):
            assert Path(f"/proc/{pid}/ns/{kind}").readlink() != Path(f"/proc/self/ns/{kind}").readlink()
        limits = Path(f"/proc/{pid}/limits").read_text().splitlines()
        (largest,) = (line.split()[3] for line in limits if line.startswith("Max file size"))
        assert int(largest) < 4 << 30, "it does not fill the disk"
        in_memory = [line for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines() if " - tmpfs " in line]
        assert len(in_memory) >= 2
        assert all(",size=" in line.rpartition(" - ")[2] for line in in_memory), "nor the host's memory"
        root = Path(f"/proc/{pid}/root")
        assert {place.name for place in root.iterdir()} <= NEEDED | {place.parts[1] for place in given(pid)}
        for hidden in ("/etc", "/var", "/proc/1", __file__):
            assert Path(hidden).exists()
            assert not (root / hidden.removeprefix("/")).exists(), hidden


def test_where_it_cannot_be_confined_it_runs_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "own.ops").write_text("creat a\nfsync a\n")
    command = [*WITHOUT_NAMESPACES, *COMMAND, "check", "own.ops", "--target", "ext4-current", "--budget", "20"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode in (ExitCode.HOLDS, ExitCode.UNDECIDED), done.stderr
    assert done.stderr.count("guests are not confined: ") == 1, "the user is told, once"
    confined = command[len(WITHOUT_NAMESPACES) :]
    usual = subprocess.run(confined, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert usual.returncode == done.returncode
    assert "not confined" not in usual.stderr
