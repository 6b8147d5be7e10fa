"""A file system under test."""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Target:
    """How one file system is made, mounted and checked.

    `mkfs` and `fsck` are a program and its arguments; the image's path or the device follows. `options` are those of
    mount(8). `size_mib` is the size of the image. `source` says where the choice comes from. `checks_data`: the file
    system verifies file data when it is read, so that contents cannot be looked up behind its back. `recover_options`
    are added when a crash state is mounted; they may change how much is read ahead, never what recovery does.
    """

    name: str
    title: str
    fstype: str
    mkfs: tuple[str, ...]
    options: str
    fsck: tuple[str, ...]
    size_mib: int
    package: str
    source: str
    checks_data: bool = False
    recover_options: str = ""

    def mount_wire(self) -> dict[str, Any]:
        """The mount as the crash disk process takes it."""
        return {"fstype": self.fstype, "options": self.options}

    def recover_wire(self, *, walk: bool, fsck: bool, device: str = "/dev/vda") -> dict[str, Any]:
        """A recovery as the crash disk process takes it: report the tree, run fsck, or both."""
        fsck_command = [*self.fsck, device] if fsck else []
        options = ",".join(filter(None, (self.options, self.recover_options)))
        mount = {"fstype": self.fstype, "options": options}
        return {"mount": mount, "walk": walk, "map": not self.checks_data, "fsck": fsck_command}

    def read_wire(self) -> dict[str, Any]:
        """A recovery that reports the tree with every file read through the guest's kernel."""
        return {**self.recover_wire(walk=True, fsck=False), "map": False}

    def digest(self) -> str:
        """SHA-256 of everything that shapes a run on this target."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()
