"""What a gate is to run: each part of its file on each target, kernel and device model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from postcrash.apps import Application
from postcrash.harness.auditing.audit import workload_of
from postcrash.harness.auditing.choice import application_called, name_and_parameters, variants_of
from postcrash.harness.budget import Budget
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import FSCK, USE, WALK
from postcrash.harness.expectations.expectation import KERNEL, TARGET, Expectation
from postcrash.harness.gate.blame import Blame
from postcrash.harness.gate.configuration import (
    ApplicationPart,
    CorpusPart,
    GateFile,
    HuntPart,
    PartSection,
    PropertiesPart,
    RandomPart,
    kind_of,
)
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.harness.hunting.corpus import suits
from postcrash.harness.hunting.listed import ListSelection
from postcrash.harness.hunting.random_hunt import RandomSelection
from postcrash.harness.hunting.space_hunt import Selection
from postcrash.harness.session import Session
from postcrash.harness.tables.matrix import kernels_for
from postcrash.harness.workload_files import loaded, loaded_from
from postcrash.model import Workload
from postcrash.properties import properties_named
from postcrash.reports.gate.run import Kind
from postcrash.targets import Target
from postcrash.workloads import GRAMMARS, WorkloadSpace

Shard = tuple[int, int]
"""(i, n): the i-th of n shards; i counts from 1."""
Workloads = Selection | RandomSelection | ListSelection


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """One part of the gate's file on one target, kernel and device model.

    kernel       the kernel; None if no kernel called `kernel_name` has the target's file system
    workloads    what is run; of an application, its only workload
    hold         properties that must hold besides what is expected
    application  the application, if that is what the part runs
    folder       where the files of a corpus are, as seen from the gate's file
    """

    name: str
    kind: Kind
    target: Target
    kernel: Kernel | None
    kernel_name: str
    workloads: Workloads
    how: Exploration
    expected: Expectation
    hold: tuple[str, ...]
    kinds: frozenset[str]
    application: Application | None = None
    folder: Path | None = None

    @property
    def place(self) -> tuple[str, str, str, str]:
        """What tells the part from the other parts, as `Part.place`."""
        label = self.kernel_name if self.kernel is None else self.kernel.label
        return self.name, self.target.name, label, self.how.model


class Planner:
    """Makes the parts of a gate."""

    def __init__(self, session: Session, gate: GateFile, file: Path, shard: Shard = (1, 1)) -> None:
        """`file` is the gate's file. Paths are seen from its folder."""
        self._session, self._gate, self._folder, self._shard = session, gate, file.parent, shard
        self._blame = Blame(file, gate)

    def parts(self, name: str) -> Iterator[PlannedPart]:
        """The parts that the section `name` stands for. Raises HarnessError."""
        section = self._gate.parts[name]
        with self._blame.setting(name, "application"):
            applications = self._applications(section)
        with self._blame.setting(name, "targets"):
            targets = self._targets(self._gate.of(section, "targets"))
        with self._blame.setting(name, "expect"):
            self._check_reference(section)
        for kernel_name in self._gate.of(section, "kernels") or (None,):
            with self._blame.setting(name, "kernels"):
                kernels = kernels_for(self._session, self._kernel_seen(kernel_name), targets)
            for target in targets:
                for model in self._gate.of(section, "models"):
                    planned = self._planned(name, section, target, model)
                    placed = replace(planned, kernel=kernels[target], kernel_name=kernel_name or "default")
                    yield from (
                        _of_applications(placed, applications, is_first=self._shard[0] == 1)
                        if applications
                        else [placed]
                    )

    def _check_reference(self, section: PartSection) -> None:
        """Raise UsageError if what the part is compared with is not there, or if it asks for more than to compare."""
        if isinstance(section, ApplicationPart):
            return
        expected = Expectation.named(self._gate.of(section, "expect"))
        level, _, value = expected.name.partition(":")
        if level == KERNEL:
            next(self._session.kernels_called(value))
        if level == TARGET:
            self._session.target(value)
        if expected.compares and self._gate.of(section, "hold"):
            raise UsageError(f"{expected.name} compares trees only: leave hold out")

    def _targets(self, names: Sequence[str]) -> list[Target]:
        return self._session.targets([self._seen(name) if name.endswith(".toml") else name for name in names])

    def _applications(self, section: PartSection) -> list[Application]:
        if not isinstance(section, ApplicationPart):
            return []
        for setting in ("expect", "hold", "fsck", "use", "recovery"):
            if getattr(section, setting) is not None:
                raise UsageError(f"application {section.application}: its own check judges it: leave {setting} out")
        name, parameters = name_and_parameters(section.application)
        application = application_called(self._seen(name) if name.endswith(".toml") else name)
        return variants_of(application, parameters | section.set, every=section.every)

    def _kernel_seen(self, name: str | None) -> str | None:
        """The name of a kernel, or its file as it is seen from where the command was started."""
        return name if name is None or "/" not in name else self._seen(name)

    def _seen(self, path: str) -> str:
        """A path as it is seen from where the command was started."""
        return str(self._folder / path)

    def _planned(self, name: str, section: PartSection, target: Target, model: str) -> PlannedPart:
        gate = self._gate
        budget = gate.of(section, "budget")
        how = Exploration(
            model=model,
            budget=Budget() if budget is None else Budget.parse(budget),
            depth=gate.of(section, "depth") or 1,
            recovery=gate.of(section, "recovery") or "mount",
        )
        kind = kind_of(section)
        assert kind is not None
        with self._blame.setting(name, kind):
            workloads = self._workloads(section, target, how.disks(one=gate.of(section, "disks") == "one"))
        hold = gate.of(section, "hold")
        kinds = [WALK, *[FSCK] * bool(gate.of(section, "fsck")), *[USE] * bool(gate.of(section, "use"))]
        return PlannedPart(
            name=name,
            kind=kind,
            target=target,
            kernel=None,
            kernel_name="",
            workloads=workloads,
            how=how,
            expected=Expectation.named(gate.of(section, "expect")),
            hold=tuple(each.name for each in properties_named(",".join(hold))) if hold else (),
            kinds=frozenset(kinds),
            folder=self._corpus_folder(section.corpus) if isinstance(section, CorpusPart) else None,
        )

    def _workloads(self, section: PartSection, target: Target, disks: tuple[int | None, ...]) -> Workloads:
        first, step = self._shard
        match section:
            case HuntPart():
                grammar = GRAMMARS[section.grammar]
                space = WorkloadSpace(grammar, section.hunt, section.setups or grammar.setups)
                return Selection(space, self._shard, section.limit, section.seed, disks=disks)
            case RandomPart():
                limit = len(range(first - 1, section.random, step))
                return RandomSelection(GRAMMARS["full"], section.seed * step + first - 1, limit, disks)
            case PropertiesPart():
                families = (each.workloads() for each in properties_named(",".join(section.properties)))
                named = {workload.with_tail(checkpoint=False): None for family in families for workload in family}
                workloads = tuple(named)
            case CorpusPart():
                workloads = tuple(each.with_tail() for each in self._corpus(section.corpus) if suits(each, target))
                if not workloads:
                    raise UsageError(f"no workload of {section.corpus} is about {target.name}: name other targets")
            case ApplicationPart():
                workloads = ()
        return ListSelection(workloads[first - 1 :: step], disks)

    def _corpus_folder(self, path: str) -> Path:
        """The folder of a corpus, which is a folder or one file, as seen from the gate's file."""
        return Path(path) if Path(self._seen(path)).is_dir() else Path(path).parent

    def _corpus(self, path: str) -> tuple[Workload, ...]:
        place = Path(self._seen(path))
        return loaded_from(place) if place.is_dir() else (loaded(str(place)),)


def _of_applications(
    planned: PlannedPart, applications: Sequence[Application], *, is_first: bool
) -> Iterator[PlannedPart]:
    """A part for each application. Each is one workload, which the first shard runs."""
    assert isinstance(planned.workloads, ListSelection)
    for application in applications:
        name = planned.name if len(applications) == 1 else f"{planned.name}: {application.name}"
        workloads = replace(planned.workloads, workloads=(workload_of(application),) if is_first else ())
        yield replace(planned, name=name, workloads=workloads, application=application)
