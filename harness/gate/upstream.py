"""Recognises failures of a gate that are known upstream: the findings of docs/findings, each with its page.

A failure is such a finding only if all of this agrees: the target, the kernel, the judge with its words, the kinds of
lost writes, the disk if it shows on one only (`held`), and the smallest workload but for its names. A larger workload
may show another failure in the same words, so a failure is not known until its smallest workload is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from postcrash.harness.examination.recording_metadata import provenance
from postcrash.harness.findings.known_findings import MODEL, Showing, known_findings
from postcrash.harness.gate.baseline import KernelRange
from postcrash.harness.gate.planning import PlannedPart
from postcrash.harness.gate.running import workload_in
from postcrash.harness.hunting.causes import Cause, cause_of
from postcrash.model import Operation, Workload
from postcrash.model.operation import PATHS, on_path
from postcrash.model.tree import ROOT_PATH
from postcrash.store.gate_run import Failure, Part
from postcrash.store.store import NotInStoreError, Store

PAGES = "docs/findings"
"""The folder of the pages in the source."""


def page_of(target: str, kernel: str, model: str, cause: Cause, smallest: Workload, *, is_held: bool = False) -> str:
    """The page about a failure; empty if there is none. All pages are about the device model `cache`.

    `is_held` says whether the disk holds completions back.
    """
    if model != MODEL:
        return ""
    for name, finding in known_findings().items():
        is_possible = target in finding.targets and KernelRange.parse(finding.kernels).has(kernel)
        if is_possible and any(_is_shown(showing, cause, smallest, is_held=is_held) for showing in finding.shows):
            return f"{PAGES}/{name}.md"
    return ""


def _is_shown(showing: Showing, cause: Cause, smallest: Workload, *, is_held: bool) -> bool:
    words = (showing.judge, showing.message, showing.lost)
    is_same = (cause.checker, cause.message, cause.lost) == words and is_held >= showing.held
    return is_same and shape(smallest) in {shape(known) for known in showing.smallest}


def shape(workload: Workload) -> str:
    """The operations with names of files replaced by numbers, in the order of their use, and without the tail."""
    names: dict[str, str] = {ROOT_PATH: ROOT_PATH}
    whole = workload.without_tail()
    for operation in whole.operations:
        for path in operation.paths:
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
