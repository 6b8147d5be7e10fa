"""Sessions: the kernel, guest root, base images and store of a command."""

import atexit
import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path

from postcrash.checkers import CHECKERS, PRACTICE, recovery
from postcrash.harness.errors import InfrastructureError, UsageError
from postcrash.harness.examination.campaign import Crew
from postcrash.harness.examination.lost_guests import LOST_GUEST_JUDGE
from postcrash.harness.examination.plan import Explainer
from postcrash.harness.examination.recording import CrashDisk
from postcrash.harness.examination.recording_metadata import recorded_target
from postcrash.harness.files.digest import content_digest
from postcrash.harness.files.known_files import known_files
from postcrash.harness.files.output import say
from postcrash.harness.files.places import STORE_DEFAULT, cache_folder
from postcrash.harness.files.scratch import ScratchFolder
from postcrash.harness.guests.aged import aged_image
from postcrash.harness.guests.boot import why_no_boot
from postcrash.harness.guests.engine import Qemu, Uml
from postcrash.harness.guests.guest_identity import guest_digest
from postcrash.harness.guests.guest_root import guest_root, has_program, packed
from postcrash.harness.guests.kernels.build import build_of
from postcrash.harness.guests.kernels.by_content import kernels_here, kernels_with
from postcrash.harness.guests.kernels.bzimage import unpacked
from postcrash.harness.guests.kernels.kernel import Kernel, in_virtual_time
from postcrash.harness.guests.kernels.log_writes import has_log_writes
from postcrash.harness.guests.kernels.stock import Stock, choose_kernel, kernels_of
from postcrash.harness.guests.kernels.suitability import why_unsuitable
from postcrash.harness.guests.machine import MachineSettings
from postcrash.model.text import INVOCATION
from postcrash.properties import PROPERTIES
from postcrash.properties.promises import unknown_names
from postcrash.store.kernel_build import KernelBuild
from postcrash.store.records import Finding
from postcrash.store.store import Store, StoreError
from postcrash.targets import (
    STACKS,
    TARGETS,
    VARIANTS,
    BaseImage,
    BaseImageError,
    NoProgramError,
    RecoveryKind,
    Target,
    TargetFileError,
    UnknownTargetError,
    base_image,
    load_target,
    recipe_of,
    target_named,
)

ALL = "all"
_GROUPS = {ALL: TARGETS, "variants": VARIANTS, "stacks": STACKS}
"""Names of groups of targets."""
JUDGE_NAMES = (
    *(checker.name for checker in (*CHECKERS, *PRACTICE)),
    *(prop.name for prop in PROPERTIES),
    *(LOST_GUEST_JUDGE, recovery.NAME),
)
"""The names of all judges that rulings and findings can have."""


@dataclass
class Session:
    """One run of a command. Everything is made when it is first needed.

    `engine`, `kernel_name` and `virtual_time` come from the command line.
    """

    store_folder: Path
    engine: str = "auto"
    kernel_name: str | None = None
    virtual_time: bool = False
    explainer: Explainer | None = None
    """What explains findings. A session that makes no plans needs none."""
    _own: list[Target] = field(default_factory=list)
    """Targets that are not in the catalogue."""
    _roots: dict[tuple[Kernel, tuple[Target, ...]], Path] = field(default_factory=dict)
    """Root folders of guests. To make one, every program and module in it is read."""
    _images: dict[tuple[object, ...], BaseImage] = field(default_factory=dict)
    """Base images that have not aged, by how they are made."""
    _without_log_writes: set[Kernel] = field(default_factory=set)
    """Kernels without dm-log-writes for which a note has been printed."""

    @property
    def invocation(self) -> str:
        """How postcrash is called with this store, for commands that are printed. A shell takes it as it is."""
        store = [] if self.store_folder == STORE_DEFAULT else ["--store", str(self.store_folder)]
        return shlex.join([INVOCATION, *store])

    @cached_property
    def kernel(self) -> Kernel:
        """The guest's kernel. If none was asked for and user-mode Linux does not boot here, it is QEMU's."""
        kernel = choose_kernel(self.engine, self.kernel_name, cache_folder())
        if self.engine == "auto" and self.kernel_name is None and isinstance(kernel.engine, Uml):
            kernel = self._that_boots(kernel)
        return in_virtual_time(kernel) if self.virtual_time else kernel

    def _that_boots(self, uml: Kernel) -> Kernel:
        reason = why_no_boot(uml, self.root_of(uml), cache_folder())
        if reason is None:
            return uml
        if not Stock(cache_folder()).images():
            raise InfrastructureError(
                f"{reason}; for a kernel that QEMU boots run  postcrash kernels fetch  (postcrash doctor tries again)"
            )
        instead = choose_kernel("qemu", None, cache_folder())
        say(f"{reason}; using {instead.label} instead, which is slower (postcrash doctor tries again)")
        return instead

    @cached_property
    def root(self) -> Path:
        """The guest's root folder."""
        return self.root_of(self.kernel)

    def root_of(self, kernel: Kernel) -> Path:
        """The root folder of guests with `kernel`. It stays the same until a target is loaded."""
        made_for = (kernel, tuple(self._own))
        if made_for not in self._roots:
            self._roots[made_for] = guest_root(kernel, cache_folder(), (*TARGETS, *self._own))
        return self._roots[made_for]

    def on(self, kernel: Kernel) -> "Session":
        """The same session, with the same store, on a kernel that has been chosen already."""
        other = replace(self)
        other.kernel, other.store = kernel, self.store
        return other

    def with_targets(self, targets: Iterable[Target | None]) -> "Session":
        """The same session, whose guests have what these targets need besides the catalogue's, and no others."""
        other = self.on(self.kernel)
        other._own = [target for target in dict.fromkeys(targets) if target is not None and target not in TARGETS]
        return other

    def guest(self, kernel: Kernel | None = None) -> str:
        """The digest of guests with `kernel` or the session's kernel. It tells results and findings apart."""
        kernel = kernel or self.kernel
        return guest_digest(kernel, self.root_of(kernel))

    def build(self, kernel: Kernel | None = None) -> KernelBuild:
        """Which build `kernel` or the session's kernel is."""
        return build_of(kernel or self.kernel, cache_folder())

    def same_kernel(self, label: str, guest: str, built: KernelBuild | None) -> Kernel | None:
        """The kernel of this machine on which something was done. None if it is not here any more.

        It is the one whose file has the content of `built`. If there are several, as with other modules, it is the one
        whose guests have the digest `guest`. If `built` is None, only that digest tells. `label` says whether its time
        was virtual.
        """
        found = kernels_here(cache_folder()) if built is None else kernels_with(built.content, cache_folder())
        alike = [timed for kernel in found if (timed := _timed_like(kernel, label)).label == label or built is not None]
        same = next((kernel for kernel in alike if self.guest(kernel) == guest), None)
        return same if same is not None or built is None else next(iter(alike), None)

    def _settings(self, kernel: Kernel) -> MachineSettings:
        return settings_for(kernel, self.root_of(kernel))

    @cached_property
    def store(self) -> Store:
        """The store for results."""
        try:
            return Store(self.store_folder)
        except StoreError as error:
            raise InfrastructureError(str(error)) from error

    @property
    def settings(self) -> MachineSettings:
        """How guests are started."""
        return self._settings(self.kernel)

    def crew(self, guests: int | None, kernel: Kernel | None = None) -> Crew:
        """`guests` machines with `kernel` or the session's. The default is one for each CPU that this process may use.

        Prints a note if the kernel has no dm-log-writes.
        """
        kernel = kernel or self.kernel
        settings = self._settings(kernel)
        if not settings.log_disk and kernel not in self._without_log_writes:
            self._without_log_writes.add(kernel)
            say(f"{kernel.label} has no dm-log-writes: {CrashDisk.device} (docs/recorders.md)")
        return Crew(settings, guests or len(os.sched_getaffinity(0)))

    def kernels_called(self, name: str | None) -> Iterator[Kernel]:
        """The kernels that `name` stands for, best first. None stands for the kernel that is used without a name."""
        if name is None:
            yield self.kernel
            return
        for kernel in kernels_of(self.engine, name, cache_folder()):
            yield in_virtual_time(kernel) if self.virtual_time else kernel

    def kernel_for(self, name: str | None, target: Target) -> Kernel | None:
        """The best kernel called `name` that can run `target`. None if there is none. Raises HarnessError."""
        return next((each for each in self.kernels_called(name) if why_unsuitable(each, target) is None), None)

    def target(self, name: str) -> Target:
        """The target called `name`, or the one in the TOML file of that name."""
        try:
            target = load_target(Path(name)) if name.endswith(".toml") else target_named(name)
        except (UnknownTargetError, TargetFileError) as error:
            raise UsageError(str(error)) from error
        for problem in unknown_names(target.rules, JUDGE_NAMES):
            raise UsageError(f"{name}: {problem}")
        if name.endswith(".toml"):
            self._own.append(target)
        return target

    def target_of(self, finding: Finding) -> Target:
        """The target of a finding: as its recording describes it, or the one of that name."""
        target = recorded_target(self.store, finding)
        if target is None:
            return self.target(finding.target)
        if target not in self._own:  # each one that is new makes new roots
            self._own.append(target)
        return target

    def targets(self, names: Iterable[str]) -> list[Target]:
        """The targets with these names, each once. Raises HarnessError.

        `all` stands for the catalogue, and `variants` for targets with another option or feature.
        """
        chosen = [target for name in names for target in _GROUPS.get(name) or [self.target(name)]]
        return list(dict.fromkeys(chosen))

    def base(self, target: Target, kernel: Kernel | None = None) -> BaseImage:
        """The target's base image. If it is to be aged, `kernel` or the session's kernel does this."""
        try:
            fresh = self._fresh(target)
            if target.aged_mib is None:
                return fresh
            by = kernel or self.kernel
            return aged_image(target, fresh, self._settings(by), self.guest(by), fresh.path.parent)
        except BaseImageError as error:
            raise InfrastructureError(str(error)) from error

    def _fresh(self, target: Target) -> BaseImage:
        """The target's image as mkfs makes it. If nobody knows what decides its content, each session makes it anew."""
        made_by = (target.fstype, target.mkfs, target.after_mkfs, target.disks_mib, target.garbage_mib)
        if made_by not in self._images:
            folder = cache_folder() / "bases"
            if not _origin(target):
                folder = _images_of_this_process(folder)
            self._images[made_by] = base_image(target, folder, known_files().ask)
        return self._images[made_by]

    def base_origin(self, target: Target) -> str:
        """A digest of what decides the content of the target's image before it ages.

        If nobody knows what decides it, it is the digest of the content. Raises InfrastructureError.
        """
        try:
            return _origin(target) or content_digest(self._fresh(target).path)
        except BaseImageError as error:
            raise InfrastructureError(str(error)) from error

    def require(self, target: Target, recoveries: Sequence[RecoveryKind]) -> None:
        """Raise an error unless the guest's kernel has the file system and the guest has the recoveries' programs."""
        if (why := why_unsuitable(self.kernel, target)) is not None:
            raise UsageError(f"{why}: choose another kernel with --kernel (postcrash kernels list)")
        self.require_programs(target, self.kernel, recoveries)

    def require_programs(self, target: Target, kernel: Kernel, recoveries: Sequence[RecoveryKind]) -> None:
        """Raise an error unless guests with `kernel` have the programs that the target's recoveries need."""
        run = [command for recover in recoveries for command in (recover.repair, recover.fsck)]
        for program in dict.fromkeys(command[0] for command in (target.helper, *run) if command):
            if not has_program(self.root_of(kernel), program):
                raise InfrastructureError(target.without(program))


def _timed_like(kernel: Kernel, label: str) -> Kernel:
    """The kernel in virtual time if the label is that of a kernel in virtual time."""
    if not isinstance(kernel.engine, Qemu):
        return kernel
    virtual = in_virtual_time(kernel)
    return virtual if virtual.label == label else kernel


def settings_for(kernel: Kernel, root: Path) -> MachineSettings:
    """How guests with `kernel` and the root folder `root` are started."""
    path = kernel.path
    if isinstance(kernel.engine, Qemu):
        path, root = unpacked(path, cache_folder()), packed(root)
    return MachineSettings(path, root, kernel.engine, log_disk=has_log_writes(kernel), given=kernel.known_as)


def _origin(target: Target) -> str:
    """A digest of what decides the content of the target's image. Empty if nobody knows that. Raises BaseImageError."""
    try:
        return recipe_of(target, known_files().ask).digest or ""
    except (NoProgramError, OSError) as error:
        raise BaseImageError(str(error)) from error


@lru_cache(maxsize=4)
def _images_of_this_process(bases: Path) -> Path:
    """A folder for images that no other process takes. It is in the folder of all images."""
    try:
        bases.mkdir(parents=True, exist_ok=True)
        folder = ScratchFolder(bases)
    except OSError as error:
        raise BaseImageError(f"{bases}: {error.strerror or error}") from error
    atexit.register(folder.remove)
    return folder.path
