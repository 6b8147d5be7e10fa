"""What repairs come to, and the page made of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from ..finding_page import FindingPage
from .repair import Repair


@dataclass(frozen=True)
class MendedPage:
    """The verdicts of a page's command without and with the repair; `states` and `recoveries` are those with it."""

    repair: Repair
    page: FindingPage
    before: str
    after: str
    states: int
    recoveries: int


@dataclass(frozen=True)
class RepairedHunt:
    """What a random hunt on the kernel with all repairs came to. `groups` have judge, message and smallest workload."""

    target: str
    time: str
    workloads: int
    states: int
    recoveries: int
    groups: tuple[tuple[str, str, str], ...]

    @classmethod
    def of(cls, target: str, told: dict[str, Any]) -> Self:
        """That of the JSON of `hunt`."""
        groups = tuple((group["checker"], group["message"], group["workload"]) for group in told["groups"])
        return cls(
            target, told["asked_time"], told["workloads"]["run"], int(told["states"]), told["recoveries"], groups
        )


def repairs_markdown(pages: Sequence[MendedPage], hunts: Sequence[RepairedHunt], kernel: str) -> str:
    """docs/repairs.md."""
    lines = [_HEAD.format(kernel=kernel)]
    lines += ["| finding | what is true instead | as it is | repaired | crash states, recoveries |"]
    lines += ["| --- | --- | --- | --- | ---: |"]
    for mended in pages:
        link = f"[{mended.page.name}](findings/{mended.page.name}.md)"
        counts = f"{mended.states}, {mended.recoveries}"
        lines.append(f"| {link} | {mended.repair.mends} | {mended.before} | {mended.after} | {counts} |")
    lines += ["", _HUNTS]
    lines += [
        "| target | time | workloads | crash states | recoveries | groups |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for hunt in hunts:
        counts = f"{hunt.workloads} | {hunt.states:.0e} | {hunt.recoveries} | {len(hunt.groups)}"
        lines.append(f"| {hunt.target} | {hunt.time} | {counts} |")
    for hunt in hunts:
        for judge, message, workload in hunt.groups:
            lines += ["", f"{hunt.target}, {judge}: {message}", "", "```ops", workload.rstrip(), "```"]
    return "\n".join([*lines, ""])


_HEAD = """# Repairs

Is the cause that a page of [findings/](findings/README.md) names the right one? This page is made by `make repairs`. It
builds user-mode Linux ({kernel}) with a change of the source for each finding, as small as we could make it, of which
bits in the kernel's file choose some (`tests/mutants/repairs/`). It runs the page's command on the kernel as it is, and
on the kernel with this one change. The changes are evidence for causes. They are no patches: some make a file system
slower, or take a case out of a log instead of logging it well.
"""

_HUNTS = """What stands behind the known findings? A kernel with all repairs at once is hunted on:

    postcrash hunt --random --target NAME --time TIME --kernel REPAIRED
"""
