"""A file system under test."""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Target:
    """How one file system is made, mounted and checked.

    `mkfs` and `fsck` are a program and its arguments; the image's path or the device follows. `options` are those of
    mount(8). `size_mib` is the size of the image. `source` says where the choice comes from.
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

    def mount_wire(self) -> dict[str, Any]:
        """The mount as the crash disk process takes it."""
        return {"fstype": self.fstype, "options": self.options}

    def recover_wire(self, *, walk: bool, fsck: bool, device: str = "/dev/vda") -> dict[str, Any]:
        """A recovery as the crash disk process takes it: report the tree, run fsck, or both."""
        return {"mount": self.mount_wire(), "walk": walk, "fsck": [*self.fsck, device] if fsck else []}

    def digest(self) -> str:
        """SHA-256 of everything that shapes a run on this target."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()
