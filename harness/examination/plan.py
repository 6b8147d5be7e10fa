"""Plans: the parameters of an examination."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from postcrash._core import Recording
from postcrash.harness.examination.exploration import Exploration
from postcrash.model import Workload
from postcrash.model.judge import Judge
from postcrash.store.explanation_data import Explanation
from postcrash.store.kernel_build import KernelBuild
from postcrash.store.records import Finding, finding_id
from postcrash.targets import BaseImage, RecoveryKind, Target


class Explainer(Protocol):
    """Explains findings and names blocks of file systems. `postcrash.reports.explanation.explanation` is one."""

    @property
    def explain(self) -> Callable[[Finding, Recording, Path], Explanation]:
        """Explains a finding by its recording and the base image that this was made on."""
        ...

    @property
    def block_kind(self) -> Callable[[bytes, Workload], str]:
        """Says what a written block is: `data` of the workload, or the name of a structure."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """What to examine. `recoveries` are the kinds of recovery; each is explored on its own.

    `kernel` is the name of the guest's kernel, for people. `guest` is the digest of the guest (`guest_digest`). It
    tells guests apart whose kernels have the same name. `built` says which build of the kernel is in it.
    """

    target: Target
    base: BaseImage
    kernel: str
    guest: str
    workload: Workload
    judges: tuple[Judge, ...]
    recoveries: tuple[RecoveryKind, ...]
    how: Exploration
    findings_max: int = 1
    """The most findings for each judge."""
    seeks_more_violations: bool = True
    """Whether judges of open contents look for further violations in an outcome that they object to. They do not if
    each opinion starts a process."""
    first_look: int | None = None
    """The number of recoveries after which a workload is explored no further, unless they show a violation and `enough`
    is set: then exploration goes on to that number. None: no such number."""
    enough: int | None = None
    """The number of recoveries after which a violated workload is explored no further. None: no such number."""
    recording: int = 1
    """The number of this recording among those that are made of one workload in the same way."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Further metadata of the recording, which are needed to make the judges again."""
    built: KernelBuild | None = None
    explainer: Explainer = field(kw_only=True, repr=False, compare=False)
    """What explains the findings."""

    def key(self, tool: str) -> str:
        """The plan's key. Plans that must come to the same result with the same `tool` have the same key."""
        parts = (
            *(tool, self.target.digest(), self.base.id, self.kernel, self.guest, self.workload.to_text()),
            *(
                repr(self.recoveries),
                repr(self.how),
                f"{self.findings_max} {self.seeks_more_violations} {self.first_look} {self.enough} {self.recording}",
                *(f"{judge.name} {judge.version}".strip() for judge in self.judges),
            ),
        )
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def finding_id(self, judge: str, message: str, recover: RecoveryKind | None, *, within_recovery: bool) -> str:
        """The id of a finding of `judge` on a state that was recovered by `recover`. It is the same in every run.

        It therefore does not depend on the budget, the seed or our own code. A finding about the run itself has no
        `recover`.
        """
        wire = recover.by_kernel().to_wire() if recover else {"map": False}
        parts = (
            *(self.target.name, json.dumps(self.target.mount.to_wire()), self.base.id, self.kernel, self.guest),
            *(self.workload.to_text(), self.how.model, self.how.recorder, str(self.how.held)),
            *(json.dumps(wire, sort_keys=True), str(within_recovery), judge, message),
            *([json.dumps(dict(self.about), sort_keys=True)] if self.about else []),
        )
        return finding_id(parts)

    def finding(
        self, judge: str, message: str, recover: RecoveryKind | None, *, within_recovery: bool, **shown: Any
    ) -> Finding:
        """A finding of `judge`, as `finding_id` has it, in which `shown` are the fields that say what was seen."""
        return Finding(
            id=self.finding_id(judge, message, recover, within_recovery=within_recovery),
            checker=judge,
            message=message,
            target=self.target.name,
            kernel=self.kernel,
            guest=self.guest,
            built=self.built,
            model=self.how.model,
            workload_name=self.workload.name,
            workload_text=self.workload.to_text(),
            recover=recover.to_wire() if recover else {},
            **shown,
        )
