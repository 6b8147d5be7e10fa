"""What a gate is to run: each part of its file on each target, kernel and device model."""

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from postcrash.apps import Application
from postcrash.harness.auditing.application_choice import application_called, name_and_parameters, variants_of
from postcrash.harness.auditing.application_lookup import portable
from postcrash.harness.auditing.audit import workload_of
from postcrash.harness.budget import Budget
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import FSCK, USE, WALK
from postcrash.harness.examination.session import Session
from postcrash.harness.expectations.expectation import KERNEL, TARGET, Expectation
from postcrash.harness.files.workload_files import loaded, loaded_from
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
from postcrash.harness.gate.error_locations import Blame
from postcrash.harness.gate.section_digest import asked
from postcrash.harness.guests.kernels.kernel import Kernel, labels_of
from postcrash.harness.hunting.corpus import suits
from postcrash.harness.hunting.default_hunt import DefaultSelection, DefaultSpace
from postcrash.harness.hunting.list_hunt import ListSelection
from postcrash.harness.hunting.probes import probes_for
from postcrash.harness.hunting.random_hunt import RandomSelection
from postcrash.harness.hunting.run_hunt import AnySelection
from postcrash.harness.hunting.space_hunt import Selection, Shard
from postcrash.harness.tables.matrix import kernels_for
from postcrash.model import Workload
from postcrash.model.validation import shown
from postcrash.properties import properties_named
from postcrash.store.gate_run import PartKey, PartKind
from postcrash.targets import Target
from postcrash.workloads import GRAMMARS, WorkloadSpace

KernelsByName = Mapping[str | None, Mapping[Target, Kernel | None]]
"""For each name of a kernel, the kernel of each target; None if no such kernel can run the target."""


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """One part of the gate's file on one target, kernel and device model.

    kernel       the kernel; None if no kernel called `kernel_name` has the target's file system
    label        as the whole gate calls the kernel (`labelled`); empty for its own label
    workloads    what is run; of an application, its only workload
    hold         properties that must hold besides what is expected
    application  the application, if that is what the part runs
    folder       where the files of a corpus are, as seen from the gate's file
    asked        a digest of what the section runs and expects, in all shards; where its files are makes no difference
    """

    name: str
    kind: PartKind
    target: Target
    kernel: Kernel | None
    kernel_name: str
    workloads: AnySelection
    how: Exploration
    expected: Expectation
    hold: tuple[str, ...]
    kinds: frozenset[str]
    application: Application | None = None
    folder: Path | None = None
    asked: str = ""
    label: str = ""

    @property
    def key(self) -> PartKey:
        """What tells the part from the other parts, as `Part.key`."""
        label = self.kernel_name if self.kernel is None else self.label or self.kernel.label
        return self.name, self.target.name, label, self.how.model


def labelled(parts: Sequence[PlannedPart]) -> list[PlannedPart]:
    """The parts with labels by which no two kernels of the gate are called alike. They are the same in all shards."""
    labels = labels_of({part.kernel: part.kernel_name for part in parts if part.kernel is not None})
    return [part if part.kernel is None else replace(part, label=labels[part.kernel]) for part in parts]


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
        kernels = self._kernels(name, section, targets)
        with self._blame.setting(name, "expect"):
            expected = Expectation.named(self._gate.of(section, "expect"))
            if not applications:
                self._check_reference(section, expected)
                there = [target for target in targets if any(of_targets[target] for of_targets in kernels.values())]
                self._check_expected(section, expected, there)
        for kernel_name, of_targets in kernels.items():
            for target in targets:
                for model in self._gate.of(section, "models"):
                    planned = self._planned(name, section, target, model, expected)
                    placed = replace(planned, kernel=of_targets[target], kernel_name=kernel_name or "default")
                    yield from (
                        _of_applications(placed, applications, is_first=self._shard[0] == 1)
                        if applications
                        else [placed]
                    )

    def _kernels(self, name: str, section: PartSection, targets: Sequence[Target]) -> KernelsByName:
        with self._blame.setting(name, "kernels"):
            names = self._gate.of(section, "kernels") or (None,)
            kernels = {each: kernels_for(self._session, self._kernel_seen(each), targets) for each in names}
            _check_no_kernel_is_there_twice(self._session, kernels)
        return kernels

    def _check_reference(self, section: PartSection, expected: Expectation) -> None:
        """Raise UsageError if what the part is compared with is not there, or if it asks for more than to compare."""
        level, _, value = expected.name.partition(":")
        if level == KERNEL:
            next(self._session.kernels_called(value))
        if level == TARGET:
            self._session.target(value)
        if expected.compares and self._gate.of(section, "hold"):
            raise UsageError(f"{expected.name} compares trees only: leave hold out")
        if expected.compares and (self._gate.of(section, "depth") or 1) > 1:
            raise UsageError(f"{expected.name} compares first recoveries only: leave depth out")

    def _check_expected(self, section: PartSection, expected: Expectation, targets: Sequence[Target]) -> None:
        """Raise UsageError if the expectation says nothing about one of `targets`, or of the part's device models.

        Parts that no kernel can run are not among these targets, because nothing is expected of them.
        """
        level, _, value = expected.name.partition(":")
        for target in targets:
            if level == KERNEL and self._session.kernel_for(value, target) is None:
                raise UsageError(f"no kernel called {value} can run target {target.name}")
            if expected.contract is not None:
                for model in self._gate.of(section, "models"):
                    expected.judges(target, model)

    def _targets(self, names: Sequence[str]) -> list[Target]:
        targets = self._session.targets([self._seen(name) if name.endswith(".toml") else name for name in names])
        for name, count in Counter(target.name for target in targets).items():
            if count > 1:
                raise UsageError(f"{count} targets are called {name}")
        return targets

    def _applications(self, section: PartSection) -> list[Application]:
        if not isinstance(section, ApplicationPart):
            return []
        for setting in ("expect", "hold", "fsck", "use"):
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

    def _planned(
        self, name: str, section: PartSection, target: Target, model: str, expected: Expectation
    ) -> PlannedPart:
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
        disks = how.disks(one=gate.of(section, "disks") == "one")
        hold = gate.of(section, "hold")
        kinds = frozenset([WALK, *[FSCK] * bool(gate.of(section, "fsck")), *[USE] * bool(gate.of(section, "use"))])
        with self._blame.setting(name, kind):
            if isinstance(section, HuntPart) and section.hunt == "default":
                workloads: AnySelection = _of_default_hunt(section, target, expected, how, kinds, disks)
            else:
                workloads = self._workloads(section, target, disks)
        listed: Sequence[Workload] = ()
        match workloads:
            case ListSelection():
                listed = workloads.workloads
            case DefaultSelection():
                listed = workloads.space.corpus
        return PlannedPart(
            name=name,
            kind=kind,
            target=target,
            kernel=None,
            kernel_name="",
            workloads=_share(workloads, self._shard),
            how=how,
            expected=expected,
            hold=tuple(each.name for each in properties_named(",".join(hold))) if hold else (),
            kinds=kinds,
            folder=self._corpus_folder(section.corpus) if isinstance(section, CorpusPart) else None,
            asked=asked(gate, section, listed),
        )

    def _workloads(self, section: PartSection, target: Target, disks: tuple[int | None, ...]) -> AnySelection:
        """The workloads of all shards."""
        match section:
            case HuntPart():
                assert section.hunt != "default"
                grammar = GRAMMARS[section.grammar or "ace"]
                space = WorkloadSpace(grammar, section.hunt, section.setups or grammar.setups)
                return Selection(space, sample=section.limit, seed=section.seed, disks=disks)
            case RandomPart():
                return RandomSelection(GRAMMARS["full"], section.seed, section.random, disks)
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
        return ListSelection(workloads, disks)

    def _corpus_folder(self, path: str) -> Path:
        """The folder of a corpus, which is a folder or one file, as seen from the gate's file."""
        return Path(path) if os.path.isdir(self._seen(path)) else Path(path).parent

    def _corpus(self, path: str) -> tuple[Workload, ...]:
        place = Path(self._seen(path))
        return loaded_from(place) if os.path.isdir(place) else (loaded(str(place)),)


def _of_default_hunt(
    section: HuntPart,
    target: Target,
    expected: Expectation,
    how: Exploration,
    kinds: frozenset[str],
    disks: tuple[int | None, ...],
) -> DefaultSelection:
    space = DefaultSpace(target, probes_for(expected, target, how, kinds))
    return DefaultSelection(space, limit=section.limit, disks=disks)


def _share(workloads: AnySelection, shard: Shard) -> AnySelection:
    """The workloads of one shard. Random ones have a seed of their own in each shard."""
    first, step = shard
    match workloads:
        case Selection() | DefaultSelection():
            return replace(workloads, shard=shard)
        case RandomSelection():
            assert workloads.limit is not None
            limit = len(range(first - 1, workloads.limit, step))
            return replace(workloads, seed=workloads.seed * step + first - 1, limit=limit)
        case ListSelection():
            return replace(workloads, workloads=workloads.workloads[first - 1 :: step])


def _of_applications(
    planned: PlannedPart, applications: Sequence[Application], *, is_first: bool
) -> Iterator[PlannedPart]:
    """A part for each application. Each is one workload, which the first shard runs."""
    assert isinstance(planned.workloads, ListSelection)
    for application in applications:
        name = planned.name if len(applications) == 1 else f"{planned.name}: {application.name}"
        workloads = replace(planned.workloads, workloads=(workload_of(application),) if is_first else ())
        told = f"{planned.asked} {portable(application)}"
        asks = hashlib.sha256(told.encode(errors="surrogatepass")).hexdigest()
        yield replace(planned, name=name, workloads=workloads, application=application, asked=asks)


def _check_no_kernel_is_there_twice(session: Session, kernels: KernelsByName) -> None:
    """Raise UsageError if a target has the same kernel, with the same modules, under two names."""
    seen: dict[tuple[str, str], dict[str | None, Kernel]] = {}
    for name, of_targets in kernels.items():
        for target, kernel in of_targets.items():
            if kernel is None:
                continue
            alike = seen.setdefault((target.name, kernel.label), {})
            for other, known in alike.items():
                if known == kernel or session.guest(known) == session.guest(kernel):
                    raise UsageError(f"{shown(other)} and {shown(name)} are the same {kernel.label}: leave one out")
            alike[name] = kernel
