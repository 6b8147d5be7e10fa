"""Gate files, read and planned as the command does it, with a kernel that stands in for those of this machine."""

from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

from postcrash.apps import UnknownApplicationError, application_named
from postcrash.harness.examination.session import Session
from postcrash.harness.gate.configuration import ApplicationPart, PartSection, load
from postcrash.harness.gate.planning import Planner
from postcrash.harness.guests.engine import Uml
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.targets import Target

GATE = (
    'targets = ["ext4-current"]\nkernels = ["6.1"]\ntime = "10m"\nexpect = "practice"\n',
    '[parts.table]\nproperties = ["hotdep13"]\n[parts.small]\nhunt = 1\nhold = ["P5"]\n[parts.chance]\nrandom = 9\n',
    '[parts.app]\napplication = "replace-shell"\nset = {durable = "atomic"}\n',
    '[parts."a.b"]\ncorpus = "own.ops"\nbudget = "9m"\n',
)
"""A part of each kind."""


class _WithoutKernels(Session):
    """A session with a kernel of its own for each name. To find out what a kernel is, a real one runs its file."""

    def kernels_called(self, name: str | None) -> Iterator[Kernel]:
        yield Kernel(Path("/linux.uml"), f"6.1.{crc32(repr(name).encode())}", None, Uml())

    def kernel_for(self, name: str | None, target: Target) -> Kernel | None:
        return next(self.kernels_called(name))


def plan(file: Path) -> None:
    """Load the gate's file and plan its parts. Their workloads are chosen, but not counted: this can take minutes."""
    (file.parent / "own.ops").write_text("creat A\n")
    gate = load(file)
    planner = Planner(_WithoutKernels(file.parent / "store"), gate, file)
    for name, section in gate.parts.items():
        if not _runs_a_build(section):
            list(planner.parts(name))


def _runs_a_build(section: PartSection) -> bool:
    """Whether to plan it runs commands: an application of the catalogue that comes as source, or one in a file."""
    if not isinstance(section, ApplicationPart):
        return False
    try:
        return section.application.endswith(".toml") or bool(
            application_named(section.application.partition("[")[0]).build
        )
    except UnknownApplicationError:
        return False
