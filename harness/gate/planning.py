"""Plans a gate: each part of its file on each target, kernel and device model."""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from postcrash.apps import Application
from postcrash.harness.auditing.application_choice import application_called, name_and_parameters, variants_of
from postcrash.harness.auditing.application_lookup import portable
from postcrash.harness.auditing.audit import workload_of
from postcrash.harness.budget import Budget
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import FSCK, USE, WALK
from postcrash.harness.examination.session import Session
from postcrash.harness.expectations.expectation import CONTRACT, KERNEL, TARGET, Expectation
from postcrash.harness.files.digest import content_digest
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
    located_errors,
)
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
"""For each name of a kernel, the kernel of each target. None if no such kernel can run the target."""
_DIGESTED_ELSEWHERE = {"targets", "kernels", "models", "budget", "corpus", "application"}
"""Settings that are no part of a section's digest as they stand in the file."""
_DIGESTED_SETTINGS = ("hold", "disks", "recovery", "fsck", "use", "depth")


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """One part of the gate's file on one target, kernel and device model.

    kernel          None if no kernel called `kernel_name` has the target's file system
    label           the kernel's name in the whole gate (`labelled`); empty for its own label
    workloads       of an application, its only workload
    hold            properties that must hold besides what is expected
    application     None if the part runs no application
    folder          where the files of a corpus are, as seen from the gate's file
    section_digest  of what the section runs and expects, in all shards
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
    section_digest: str = ""
    label: str = ""

    @property
    def key(self) -> PartKey:
        """Identifies the part, as `Part.key`."""
        label = self.kernel_name if self.kernel is None else self.label or self.kernel.label
        return self.name, self.target.name, label, self.how.model


def labelled(parts: Sequence[PlannedPart]) -> list[PlannedPart]:
    """Gives the kernels of a gate labels that differ. These are the same in all shards."""
    labels = labels_of({part.kernel: part.kernel_name for part in parts if part.kernel is not None})
    return [part if part.kernel is None else replace(part, label=labels[part.kernel]) for part in parts]


class Planner:
    """Makes the parts of a gate."""

    def __init__(self, session: Session, gate: GateFile, file: Path, shard: Shard = (1, 1)) -> None:
        """`file` is the gate's file. Paths are seen from its folder."""
        self._session, self._gate, self._folder, self._shard = session, gate, file.parent, shard
        self._located_errors = partial(located_errors, file, gate)

    def parts(self, name: str) -> Iterator[PlannedPart]:
        """The parts that the section `name` stands for. Raises HarnessError."""
        section = self._gate.parts[name]
        with self._located_errors(name, "application"):
            applications = self._applications(section)
        with self._located_errors(name, "targets"):
            targets = self._targets(self._gate.setting(section, "targets"))
        with self._located_errors(name, "kernels"):
            names = self._gate.setting(section, "kernels") or (None,)
            kernels = {kernel: kernels_for(self._session, self._kernel_path(kernel), targets) for kernel in names}
            _check_kernels_differ(self._session, kernels)
        with self._located_errors(name, "expect"):
            expected = Expectation.named(self._gate.setting(section, "expect"))
            if not applications:
                runnable = [target for target in targets if any(by_target[target] for by_target in kernels.values())]
                self._check_expected(section, expected, runnable)
        for kernel_name, by_target in kernels.items():
            for target in targets:
                for model in self._gate.setting(section, "models"):
                    planned = replace(
                        self._planned(name, section, target, model, expected),
                        kernel=by_target[target],
                        kernel_name=kernel_name or "default",
                    )
                    yield from self._of_applications(planned, applications) if applications else [planned]

    def _check_expected(self, section: PartSection, expected: Expectation, targets: Sequence[Target]) -> None:
        """Raise UsageError if the expectation does not go with the part's settings, or does not cover `targets`.

        Targets that no kernel can run are not among them, because nothing is expected there.
        """
        setting = partial(self._gate.setting, section)
        level, _, value = expected.name.partition(":")
        if level == KERNEL:
            next(self._session.kernels_called(value))
        if level == TARGET:
            self._session.target(value)
        if expected.compares and setting("hold"):
            raise UsageError(f"{expected.name} compares trees only: leave hold out")
        if expected.compares and (setting("depth") or 1) > 1:
            raise UsageError(f"{expected.name} compares first recoveries only: leave depth out")
        for target in targets:
            if level == KERNEL and self._session.kernel_for(value, target) is None:
                raise UsageError(f"no kernel called {value} can run target {target.name}")
            if expected.contract is not None:
                for model in setting("models"):
                    expected.judges(target, model)

    def _targets(self, names: Sequence[str]) -> list[Target]:
        targets = self._session.targets([self._path(name) if name.endswith(".toml") else name for name in names])
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
        application = application_called(self._path(name) if name.endswith(".toml") else name)
        return variants_of(application, parameters | section.set, every=section.every)

    def _kernel_path(self, name: str | None) -> str | None:
        """The name of a kernel, or the path of its file."""
        return name if name is None or "/" not in name else self._path(name)

    def _path(self, path: str) -> str:
        """The `path`, which is relative to the gate's file, as seen from the working folder."""
        return str(self._folder / path)

    def _planned(
        self, name: str, section: PartSection, target: Target, model: str, expected: Expectation
    ) -> PlannedPart:
        setting = partial(self._gate.setting, section)
        how = Exploration(
            model=model,
            budget=Budget.parse(setting("budget")) if setting("budget") is not None else Budget(),
            depth=setting("depth") or 1,
            recovery=setting("recovery") or "mount",
        )
        kind = kind_of(section)
        assert kind is not None
        kinds = frozenset([WALK, *[FSCK] * bool(setting("fsck")), *[USE] * bool(setting("use"))])
        with self._located_errors(name, kind):
            workloads = self._workloads(section, target, expected, how, kinds)
        return PlannedPart(
            name=name,
            kind=kind,
            target=target,
            kernel=None,
            kernel_name="",
            workloads=_shard_of(workloads, self._shard),
            how=how,
            expected=expected,
            hold=tuple(prop.name for prop in properties_named(",".join(setting("hold")))) if setting("hold") else (),
            kinds=kinds,
            folder=self._corpus_folder(section.corpus) if isinstance(section, CorpusPart) else None,
            section_digest=_section_digest(self._gate, section, workloads),
        )

    def _workloads(
        self, section: PartSection, target: Target, expected: Expectation, how: Exploration, kinds: frozenset[str]
    ) -> AnySelection:
        """The workloads of all shards."""
        disks = how.disks(one=self._gate.setting(section, "disks") == "one")
        match section:
            case HuntPart(hunt="default"):
                space = DefaultSpace(target, probes_for(expected, target, how, kinds))
                return DefaultSelection(space, limit=section.limit, disks=disks)
            case HuntPart():
                assert section.hunt != "default"
                grammar = GRAMMARS[section.grammar or "ace"]
                operations = WorkloadSpace(grammar, section.hunt, section.setups or grammar.setups)
                return Selection(operations, sample=section.limit, seed=section.seed, disks=disks)
            case RandomPart():
                return RandomSelection(GRAMMARS["full"], section.seed, section.random, disks)
            case PropertiesPart():
                families = (prop.workloads() for prop in properties_named(",".join(section.properties)))
                tailed = (workload.with_tail(checkpoint=False) for family in families for workload in family)
                workloads = tuple(dict.fromkeys(tailed))
            case CorpusPart():
                place = Path(self._path(section.corpus))
                corpus = loaded_from(place) if os.path.isdir(place) else (loaded(str(place)),)
                workloads = tuple(workload.with_tail() for workload in corpus if suits(workload, target))
                if not workloads:
                    raise UsageError(f"no workload of {section.corpus} is about {target.name}: name other targets")
            case ApplicationPart():
                return ListSelection((), disks, one_look=True)
        return ListSelection(workloads, disks)

    def _corpus_folder(self, path: str) -> Path:
        """The folder of a corpus, which is a folder or one file, as seen from the gate's file."""
        return Path(path) if os.path.isdir(self._path(path)) else Path(path).parent

    def _of_applications(self, planned: PlannedPart, applications: Sequence[Application]) -> Iterator[PlannedPart]:
        """A part for each application. Each is one workload, which the first shard runs."""
        assert isinstance(planned.workloads, ListSelection)
        for application in applications:
            name = planned.name if len(applications) == 1 else f"{planned.name}: {application.name}"
            run = (workload_of(application),) if self._shard[0] == 1 else ()
            text = f"{planned.section_digest} {portable(application)}"
            yield replace(
                planned,
                name=name,
                workloads=replace(planned.workloads, workloads=run),
                application=application,
                section_digest=hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest(),
            )


def _section_digest(gate: GateFile, section: PartSection, workloads: AnySelection) -> str:
    """A digest of a section's workloads and expectations. A line of the baseline is fixed only where it is the same.

    Targets, kernels and device models are not in it, because they have places of their own in a part. Neither is the
    budget: what it does not cover is undecided. The content of files counts, their paths do not.
    """
    fields: dict[str, Any] = section.model_dump(mode="json", exclude=_DIGESTED_ELSEWHERE)
    fields |= {name: gate.setting(section, name) for name in _DIGESTED_SETTINGS}
    fields["expect"] = gate.setting(section, "expect")
    level, _, value = fields["expect"].partition(":")
    if level == CONTRACT:
        fields["expect"] = f"{level}:{content_digest(Path(value))}"
    elif level == KERNEL:
        fields["expect"] = f"{level}:{Path(value).name}"
    explicit: Sequence[Workload] = ()
    match workloads:
        case ListSelection():
            explicit = workloads.workloads
        case DefaultSelection():
            explicit = workloads.space.corpus
    fields["workloads"] = [[workload.name, workload.to_text()] for workload in explicit]
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def _shard_of(workloads: AnySelection, shard: Shard) -> AnySelection:
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


def _check_kernels_differ(session: Session, kernels: KernelsByName) -> None:
    """Raise UsageError if a target has the same kernel, with the same modules, under two names."""
    seen: dict[tuple[str, str], dict[str | None, Kernel]] = {}
    for name, by_target in kernels.items():
        for target, kernel in by_target.items():
            if kernel is None:
                continue
            alike = seen.setdefault((target.name, kernel.label), {})
            for other, known in alike.items():
                if known == kernel or session.guest(known) == session.guest(kernel):
                    raise UsageError(f"{shown(other)} and {shown(name)} are the same {kernel.label}: leave one out")
            alike[name] = kernel
