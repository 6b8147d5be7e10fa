"""How a guest mounts a target."""

from typing import Any

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class Mount:
    """How a target is mounted, and the supervisor under which workloads run then.

    The fields but `supervisor` are those of `Mount` in model/wire/src/command.rs, which explains them. A recovery runs
    no workload, so that its mount has no `supervisor`.
    """

    fstype: str
    options: str
    helper: tuple[str, ...] = ()
    supervisor: str = ""
    disks: tuple[int, ...] = ()

    def to_wire(self) -> dict[str, Any]:
        """The mount as the crash disk takes it, as it is stored, and as findings are named by it."""
        helper = {"helper": list(self.helper)} if self.helper else {}
        supervisor = {"supervisor": self.supervisor} if self.supervisor else {}
        disks = {"disks": list(self.disks)} if self.disks else {}
        return {"fstype": self.fstype, "options": self.options, **helper, **supervisor, **disks}
