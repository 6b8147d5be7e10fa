"""What a guest does with a crash state."""

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any, Self

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from postcrash.targets.aged_files import AgedFiles
from postcrash.targets.mount import Mount


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class RecoveryKind:
    """A kind of recovery: repair, mount, report the tree, use what is there, run fsck.

    The fields are those of `Recover` in model/wire/src/command.rs, which explains them.
    """

    mount: Mount
    walk: bool
    map: bool
    use_after: bool
    fsck: tuple[str, ...]
    bytes: bool = False
    repair: tuple[str, ...] = ()
    aged: AgedFiles | None = None
    lost_disk: int | None = None

    @classmethod
    def from_wire(cls, wire: dict[str, Any]) -> Self:
        """The kind of recovery from which `to_wire` made `wire`. Raises ValueError if there is none."""
        return cls(**wire)

    def to_wire(self) -> dict[str, Any]:
        """The kind as the crash disk takes it and as it is stored."""
        repair = {"repair": list(self.repair)} if self.repair else {}
        wire = {"mount": self.mount.to_wire(), "walk": self.walk, "map": self.map, "use_after": self.use_after}
        as_bytes = {"bytes": True} if self.bytes else {}
        aged = {"aged": asdict(self.aged)} if self.aged else {}
        lost = {} if self.lost_disk is None else {"lost_disk": self.lost_disk}
        return {**wire, **as_bytes, "fsck": list(self.fsck), **repair, **aged, **lost}

    @property
    def is_repaired(self) -> bool:
        """Whether a program runs before the mount."""
        return bool(self.repair)

    def shows(self, parts: Iterable[str]) -> bool:
        """Whether the guest does all that the fields `parts` name, such as the `looks_at` of a judge."""
        return all(getattr(self, part) for part in parts)

    def by_kernel(self) -> Self:
        """The same kind, but every file is read through the guest's kernel."""
        return replace(self, map=False)
