"""What a section of a gate asks, as a digest: a line of the baseline is fixed only where the same was asked again.

Targets, kernels and device models are not in it, because they have places of their own in a part. Neither is the
budget: what it does not cover is undecided. Where files are makes no difference, but what they hold does.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from postcrash.harness.expectations.expectation import CONTRACT, KERNEL
from postcrash.harness.files.digest import content_digest
from postcrash.harness.gate.configuration import GateFile, PartSection
from postcrash.model import Workload

_ELSEWHERE = {"targets", "kernels", "models", "budget", "corpus", "application"}
_SETTINGS = ("hold", "disks", "recovery", "fsck", "use", "depth")


def asked(gate: GateFile, section: PartSection, workloads: Iterable[Workload]) -> str:
    """The digest of a section. `workloads` are those that it lists; a hunt and an application list none."""
    told: dict[str, Any] = section.model_dump(mode="json", exclude=_ELSEWHERE)
    told |= {name: gate.of(section, name) for name in _SETTINGS}
    told["expect"] = _expected(gate.of(section, "expect"))
    told["workloads"] = [[each.name, each.to_text()] for each in workloads]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _expected(name: str) -> str:
    level, _, value = name.partition(":")
    if level == CONTRACT:
        return f"{level}:{content_digest(Path(value))}"
    return f"{level}:{Path(value).name}" if level == KERNEL else name
