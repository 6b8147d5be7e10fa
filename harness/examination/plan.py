"""What an examination is asked to do."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from postcrash.harness.examination.exploration import Exploration
from postcrash.model import Workload
from postcrash.model.judge import Judge
from postcrash.store.kernel_build import KernelBuild
from postcrash.store.records import finding_id
from postcrash.targets import BaseImage, RecoveryKind, Target


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
    is_asked_on: bool = True
    """Whether a judge to which open contents matter is asked for more than one objection to an outcome. It is not if
    each question starts a process."""
    glance: int | None = None
    """The number of recoveries after which a workload is explored no further unless they show a violation. None: no
    such number."""
    enough: int | None = None
    """The number of recoveries after which a violated workload is explored no further. None: no such number."""
    recording: int = 1
    """The number of this recording among those that are made of one workload in the same way."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What else the recording says of itself: what is needed to ask the judges again."""
    built: KernelBuild | None = None

    def key(self, tool: str) -> str:
        """The plan's key. Plans that must come to the same result with the same `tool` have the same key."""
        parts = (
            *(tool, self.target.digest(), self.base.id, self.kernel, self.guest, self.workload.to_text()),
            *(
                repr(self.recoveries),
                repr(self.how),
                f"{self.findings_max} {self.is_asked_on} {self.glance} {self.enough} {self.recording}",
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
