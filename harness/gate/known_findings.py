"""Which failures of a gate are findings that are known upstream: those of docs/findings, each with its page.

`known_findings.toml` says how each finding shows:

    [btrfs-half-a-rename]
    targets = ["btrfs"]
    kernels = "6.1..7.2"

    [[btrfs-half-a-rename.shows]]
    judge = "A-rename"
    message = "PATH and PATH are …"
    lost = []
    workloads = ["…"]
    held = true

A failure is such a finding only if all of this agrees: the target, the kernel, the judge with its words, the kinds of
lost writes, the disk if it shows on one only (`held`), and the smallest workload but for its names. A larger workload
may show something else in the same words, so as long as the smallest is not known, the failure is not known either.
"""

from collections.abc import Iterator, Mapping, Sequence
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
"""Where the pages are, as seen from the top of the source."""
MODEL = "cache"


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class Showing:
    """One way in which a finding shows: the cause, and smallest workloads.

    held  it shows only on a disk that holds its completions back
    """

    judge: str
    message: str
    lost: tuple[str, ...]
    workloads: tuple[str, ...]
    held: bool = False

    def is_shown(self, cause: Cause, smallest: Workload, *, is_held: bool) -> bool:
        """Whether the cause and the smallest workload of a failure are those of this way."""
        is_same = cause == Cause(self.judge, self.message, self.lost) and is_held >= self.held
        return is_same and shape(smallest) in {shape(parse_workload(text, "known")) for text in self.workloads}


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class KnownFinding:
    """A finding: the targets, the range of kernels that have it, as in a baseline, and how it shows there."""

    targets: tuple[str, ...]
    kernels: str
    shows: tuple[Showing, ...]

    def tells_of(self, target: str, kernel: str, cause: Cause, smallest: Workload, *, is_held: bool) -> bool:
        """Whether a failure on a target and the kernel with this label is this finding."""
        is_there = target in self.targets and KernelRange.parse(self.kernels).has(kernel)
        return is_there and any(way.is_shown(cause, smallest, is_held=is_held) for way in self.shows)


_schema = TypeAdapter(dict[str, KnownFinding])


@cache
def known_findings() -> dict[str, KnownFinding]:
    """All findings, by the names of their pages."""
    return _schema.validate_python(read_toml(FILE))


def page_of(target: str, kernel: str, model: str, cause: Cause, smallest: Workload, *, is_held: bool = False) -> str:
    """The page about a failure; empty if there is none. The pages are about the device model `cache`.

    `is_held` says whether the disk holds its completions back.
    """
    if model != MODEL:
        return ""
    for name, each in known_findings().items():
        if each.tells_of(target, kernel, cause, smallest, is_held=is_held):
            return f"{PAGES}/{name}.md"
    return ""


def shape(workload: Workload) -> str:
    """The operations with other names for files, in the order of their use, and without what is run at the end."""
    names: dict[str, str] = {ROOT_PATH: ROOT_PATH}
    whole = workload.without_tail()
    for name in _names(whole):
        names.setdefault(name, f"n{len(names)}")

    setup, ops = (tuple(_renamed(each, names) for each in part) for part in (whole.setup, whole.ops))
    return replace(whole, name="", setup=setup, ops=ops).to_text()


def _renamed(operation: Operation, names: Mapping[str, str]) -> Operation:
    def change(path: str) -> str:
        return "/".join(names[name] for name in path.split("/"))

    given = {argument.field: str(value) for argument, value in operation.arguments if argument.kind in PATHS}
    changed = {field: on_path(change, text) for field, text in given.items()}
    return replace(operation, **changed)  # type: ignore[arg-type]


def _names(workload: Workload) -> Iterator[str]:
    return (name for each in workload.operations for path in paths_of(each) for name in path.split("/"))


def with_upstream(parts: Sequence[Part], planned: Sequence[PlannedPart], store: Store) -> tuple[Part, ...]:
    """The parts, in which each failure that is known upstream has its page. What applications lose has none."""
    return tuple(
        part
        if plan.application is not None
        else part.model_copy(update={"failures": tuple(_told(failure, part, plan, store) for failure in part.failures)})
        for part, plan in zip(parts, planned, strict=True)
    )


def _told(failure: Failure, part: Part, planned: PlannedPart, store: Store) -> Failure:
    if not failure.finding:
        return failure
    try:
        finding = store.finding(failure.finding)
    except NotInStoreError:
        return failure
    smallest, is_held = workload_in(planned, finding), provenance(store, finding).held is not None
    page = page_of(part.target, part.kernel, part.model, cause_of(finding), smallest, is_held=is_held)
    return failure.model_copy(update={"upstream": page})
