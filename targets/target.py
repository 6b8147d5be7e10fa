"""A file system under test."""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, field, replace
from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from postcrash.targets.aged_files import AgedFiles
from postcrash.targets.mount import Mount
from postcrash.targets.recovery_kind import RecoveryKind
from postcrash.targets.rule import Rule, TomlText, TomlWords

Command = Annotated[TomlWords, Field(min_length=1)]
DEVICES = ("/dev/vda", *(f"/dev/vd{letter}" for letter in "cdefghi"))
"""The test disks in the guest. /dev/vdb is the mailbox."""
SECTORS_PER_MIB = 2048
_INODES = "-N"
"""mke2fs: the number of inodes follows."""


def on_disks(text: str, further: Sequence[str]) -> str:
    """`text` with the names of the disks after the first in place of {1}, {2} and so on."""
    for number, name in enumerate(further, 1):
        text = text.replace(f"{{{number}}}", name)
    return text


def in_guest(*command: str) -> tuple[str, ...]:
    """The command with the devices of the guest."""
    return tuple(on_disks(word, DEVICES[1:]) for word in command)


@dataclass(frozen=True, slots=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Target:
    """How one file system is made, mounted and checked.

    `mkfs` and `fsck` are a program and its arguments; the image's path or the device is appended. Some file systems
    have no fsck. `repair` is what distributions run before they mount (systemd-fsck(8): `fsck -a`). It is empty if this
    does nothing. `needs_repair` means that the kernel mounts nothing that was not repaired, so there is no recovery
    without a repair. `options` are those of mount(8). `helper` mounts a FUSE file system, in place of mount(2). `files`
    are files and folders of this machine that these programs read, by their absolute paths. `size_mib` is the size of
    the image, or of the first disk if there are several. `further_disks_mib` are the sizes of the others: {1}, {2} and
    so on in `mkfs`, `options`, `fsck` and `repair` stand for their images, or for their devices in the guest. The disk
    with the number `lost_disk` is lost with each crash: a blank one is in its place, and options that name the disk are
    left out. The first `garbage_mib` of each image (by default all of it) hold garbage, and the rest holds zeros.
    `aged_mib` is the total size of the files that age it, once a guest can (harness/guests/aged.py). `package` is
    Debian's package of the programs, and `source` says where the choice comes from. `checks_data` means that the file
    system verifies file data when it is read, so that contents cannot be looked up without it, as on several disks.
    `recover_options` are added when a crash state is mounted. They may change how much is read ahead, never what
    recovery does, but for a mount without the lost disk.
    `modules` are kernel modules that a mount asks for by name, besides the file system's own. `supervisor` is the
    program under which workloads run (docs/xsync.md). `after_mkfs` is run on the image once it is made, and its path is
    appended. `configuration` are options of the kernel without which nothing mounts the target. `rules` are what the
    file system's own documentation promises or gives up, by the names of the rules.
    `postcrash.properties.promises` has further rules for all targets.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
    title: TomlText
    fstype: Annotated[str, Field(pattern=r"^[a-z0-9]{1,16}$")]
    mkfs: Command
    after_mkfs: TomlWords = ()
    options: TomlText = ""
    helper: TomlWords = ()
    files: TomlWords = ()
    fsck: TomlWords = ()
    repair: TomlWords = ()
    needs_repair: Annotated[bool, Field(strict=True)] = False
    size_mib: Annotated[int, Field(ge=1, strict=True)]
    further_disks_mib: Annotated[tuple[Annotated[int, Field(ge=1, strict=True)], ...], Field(max_length=7)] = ()
    lost_disk: Annotated[int, Field(ge=0, strict=True)] | None = None
    garbage_mib: Annotated[int, Field(ge=1, strict=True)] | None = None
    package: TomlText = ""
    aged_mib: Annotated[int, Field(ge=1, strict=True)] | None = None
    source: TomlText = ""
    checks_data: Annotated[bool, Field(strict=True)] = False
    recover_options: TomlText = ""
    rules: Annotated[dict[str, Rule], Field(max_length=100)] = field(default_factory=dict, hash=False)
    modules: TomlWords = ()
    configuration: tuple[Annotated[str, Field(pattern=r"^CONFIG_[A-Z0-9_]{1,60}$")], ...] = ()
    supervisor: Literal["", "xsync"] = ""

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """What guests run: a program, by its absolute path if it was found, and its arguments."""
        return tuple(command for command in (self.fsck, self.repair, self.helper) if command)

    def without(self, program: str) -> str:
        """For messages: why `program` does not run, and what can be done about it."""
        if os.path.isfile(program):
            return f"{program} is not executable: run  chmod +x {program}  (target {self.name})"
        if self.package:
            return f"{program} is not installed: run  apt-get install {self.package}  (target {self.name})"
        return f"there is no program {program} (target {self.name})"

    @property
    def words(self) -> frozenset[str]:
        """The words of the mount's and mkfs's options, split at commas. Rules apply to these words."""
        return frozenset(word for text in (self.options, *self.mkfs[1:]) for word in text.split(",") if word)

    def with_inodes(self, count: int) -> "Target":
        """The target with at least so many inodes, if mkfs fixes their number."""
        words = [
            str(count) if before == _INODES and word.isdigit() and int(word) < count else word
            for before, word in zip(("", *self.mkfs), self.mkfs, strict=False)
        ]
        return replace(self, mkfs=tuple(words))

    @property
    def disks_mib(self) -> tuple[int, ...]:
        """The sizes of all disks."""
        return (self.size_mib, *self.further_disks_mib)

    @property
    def mount(self) -> Mount:
        """How it is mounted for a workload."""
        return self._mounted(self.options, self.supervisor)

    def _mounted(self, options: str, supervisor: str = "") -> Mount:
        sectors = tuple(mib * SECTORS_PER_MIB for mib in self.disks_mib) if self.further_disks_mib else ()
        return Mount(self.fstype, on_disks(options, DEVICES[1:]), self.helper, supervisor, sectors)

    def recovery(
        self, *, walk: bool, fsck: bool, use: bool = False, repair: bool = False, device: str = "/dev/vda"
    ) -> RecoveryKind:
        """A kind of recovery. Without `repair` the state is only mounted, unless nothing mounts without a repair."""
        lost = f"{{{self.lost_disk}}}"
        words = [word for word in self.options.split(",") if lost not in word]
        options = ",".join(filter(None, (*words, self.recover_options)))
        return RecoveryKind(
            mount=self._mounted(options),
            walk=walk,
            map=not (self.checks_data or self.further_disks_mib),
            use_after=use,
            fsck=in_guest(*self.fsck, device) if fsck and self.fsck else (),
            repair=in_guest(*self.repair, device) if self.repair and (repair or self.needs_repair) else (),
            aged=None if self.aged_mib is None else AgedFiles.of(self.aged_mib),
            lost_disk=self.lost_disk,
        )

    def digest(self) -> str:
        """SHA-256 of everything that affects a run on this target."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()
