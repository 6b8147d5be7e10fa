"""Recognises failures of a gate that are known upstream: the findings of docs/findings, each with its page.

`known_findings.toml` says how each finding shows:

    [btrfs-half-a-rename]
    targets = ["btrfs"]
    kernels = "6.1..7.2"

    [[btrfs-half-a-rename.shows]]
    judge = "A-rename"
    message = "PATH and PATH are …"
    lost = ["…"]
    workloads = ["…"]
    held = true

A failure is such a finding only if all of this agrees: the target, the kernel, the judge with its words, the kinds of
lost writes, the disk if it shows on one only (`held`), and the smallest workload but for its names. A larger workload
may show another failure in the same words, so a failure is not known until its smallest workload is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

from postcrash.harness.examination.recording_metadata import provenance
from postcrash.harness.gate.baseline import KernelRange
from postcrash.harness.gate.planning import PlannedPart
from postcrash.harness.gate.running import workload_in
from postcrash.harness.hunting.causes import Cause, cause_of, paths_of
from postcrash.model import Operation, Workload, parse_workload
from postcrash.model.operation import PATHS, on_path
from postcrash.model.tree import ROOT_PATH
from postcrash.model.validation import read_toml
from postcrash.store.gate_run import Failure, Part
from postcrash.store.store import NotInStoreError, Store

FILE = Path(__file__).with_name("known_findings.toml")
PAGES = "docs/findings"
"""The folder of the pages in the source."""
MODEL = "cache"


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class Showing:
    """One way in which a finding shows: the cause, and smallest workloads.

    held  it shows only on a disk that holds completions back
    """

    judge: str
    message: str
    workloads: tuple[str, ...]
    lost: tuple[str, ...] = ()
    held: bool = False

    def is_shown(self, cause: Cause, smallest: Workload, *, is_held: bool) -> bool:
        """Whether a failure with this cause and smallest workload shows the finding."""
        is_same = cause == Cause(self.judge, self.message, self.lost) and is_held >= self.held
        return is_same and shape(smallest) in {shape(parse_workload(text, "known")) for text in self.workloads}


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class KnownFinding:
    """A finding: the targets, the range of kernels that have it, as in a baseline, and how it shows there."""

    targets: tuple[str, ...]
    kernels: str
    shows: tuple[Showing, ...] = ()


_schema = TypeAdapter(dict[str, KnownFinding])


@cache
def known_findings() -> dict[str, KnownFinding]:
    """All findings, by the names of their pages."""
    return _schema.validate_python(read_toml(FILE))


def page_of(target: str, kernel: str, model: str, cause: Cause, smallest: Workload, *, is_held: bool = False) -> str:
    """The page about a failure; empty if there is none. All pages are about the device model `cache`.

    `is_held` says whether the disk holds completions back.
    """
    if model != MODEL:
        return ""
    for name, finding in known_findings().items():
        is_possible = target in finding.targets and KernelRange.parse(finding.kernels).has(kernel)
        if is_possible and any(showing.is_shown(cause, smallest, is_held=is_held) for showing in finding.shows):
            return f"{PAGES}/{name}.md"
    return ""


def shape(workload: Workload) -> str:
    """The operations with names of files replaced by numbers, in the order of their use, and without the tail."""
    names: dict[str, str] = {ROOT_PATH: ROOT_PATH}
    whole = workload.without_tail()
    for operation in whole.operations:
        for path in paths_of(operation):
            for name in path.split("/"):
                names.setdefault(name, f"n{len(names)}")
    setup, ops = (tuple(_renamed(operation, names) for operation in part) for part in (whole.setup, whole.ops))
    return replace(whole, name="", setup=setup, ops=ops).to_text()


def _renamed(operation: Operation, names: Mapping[str, str]) -> Operation:
    def change(path: str) -> str:
        return "/".join(names[name] for name in path.split("/"))

    paths = {argument.field: str(value) for argument, value in operation.arguments if argument.kind in PATHS}
    changed = {field: on_path(change, path) for field, path in paths.items()}
    return replace(operation, **changed)  # type: ignore[arg-type]


def with_upstream(parts: Sequence[Part], planned: Sequence[PlannedPart], store: Store) -> tuple[Part, ...]:
    """Adds its page to each failure that is known upstream. Failures of applications have no pages."""
    return tuple(
        part
        if plan.application is not None
        else part.model_copy(
            update={"failures": tuple(_with_page(failure, part, plan, store) for failure in part.failures)}
        )
        for part, plan in zip(parts, planned, strict=True)
    )


def _with_page(failure: Failure, part: Part, planned: PlannedPart, store: Store) -> Failure:
    if not failure.finding:
        return failure
    try:
        finding = store.finding(failure.finding)
    except NotInStoreError:
        return failure
    smallest, is_held = workload_in(planned, finding), provenance(store, finding).held is not None
    page = page_of(part.target, part.kernel, part.model, cause_of(finding), smallest, is_held=is_held)
    return failure.model_copy(update={"upstream": page})
