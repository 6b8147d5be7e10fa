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


Group = tuple[str, str, str]
"""A judge, what it says, and the smallest workload."""


@dataclass(frozen=True)
class HuntCounts:
    """What a random hunt came to."""

    workloads: int
    states: int
    recoveries: int
    groups: tuple[Group, ...]

    @classmethod
    def of(cls, told: dict[str, Any]) -> Self:
        """That of the JSON of `hunt`."""
        groups = tuple((group["checker"], group["message"], group["workload"]) for group in told["groups"])
        return cls(told["workloads"]["run"], int(told["states"]), told["recoveries"], groups)

    def row(self) -> str:
        """The cells of the table that count."""
        return f"{self.workloads} | {self.states:.0e} | {self.recoveries} | {len(self.groups)}"


@dataclass(frozen=True)
class MendedHunt:
    """Hunts on the kernel as it is and with all repairs; of the first one's groups, those `left` with all repairs.

    `open` counts groups of the first hunt that were not looked at to the end with all repairs.
    """

    target: str
    time: str
    before: HuntCounts
    left: tuple[Group, ...]
    open: int
    after: HuntCounts

    @classmethod
    def of(cls, target: str, told: dict[str, Any]) -> Self:
        """That of what `mend.py` keeps."""
        left = tuple((judge, message, workload) for judge, message, workload in told["left"])
        before, after = (HuntCounts.of(told[which]) for which in ("before", "after"))
        return cls(target, told["time"], before, left, told["open"], after)


def repairs_markdown(pages: Sequence[MendedPage], hunts: Sequence[MendedHunt], kernel: str) -> str:
    """docs/repairs.md."""
    lines = [_HEAD.format(kernel=kernel)]
    lines += ["| finding | what is true instead | as it is | repaired | crash states, recoveries |"]
    lines += ["| --- | --- | --- | --- | ---: |"]
    for mended in pages:
        link = f"[{mended.page.name}](findings/{mended.page.name}.md)"
        link += "".join(f", with {name} mended" for name in mended.repair.beside)
        counts = f"{mended.states}, {mended.recoveries}"
        lines.append(f"| {link} | {mended.repair.mends} | {mended.before} | {mended.after} | {counts} |")
    lines += ["", _HUNTS]
    lines += ["| target | kernel | workloads | crash states | recoveries | groups | still there with all repairs |"]
    lines += ["| --- | --- | ---: | ---: | ---: | ---: | --- |"]
    for hunt in hunts:
        undecided = f", {hunt.open} undecided" if hunt.open else ""
        lines.append(f"| {hunt.target}, {hunt.time} | as it is | {hunt.before.row()} | {len(hunt.left)}{undecided} |")
        lines.append(f"| {hunt.target}, {hunt.time} | repaired | {hunt.after.row()} | |")
    for hunt in hunts:
        for judge, message, workload in dict.fromkeys((*hunt.left, *hunt.after.groups)):
            lines += ["", f"{hunt.target}, {judge}: {message}", "", "```ops", workload.rstrip(), "```"]
    return "\n".join([*lines, ""])


_HEAD = """# Repairs

Is the cause that a page of [findings/](findings/README.md) names the right one? This page is made by `make repairs`. It
builds user-mode Linux ({kernel}) with a change of the source for each finding, as small as we could make it, of which
bits in the kernel's file choose some (`tests/mutants/repairs/`). It runs the page's command on the kernel as it is, and
on the kernel with this one change. The changes are evidence for causes. They are no patches: some make a file system
slower, or take a case out of a log instead of logging it well.
"""

_HUNTS = """What stands behind the known findings? Each target is hunted on twice, with the kernel as it is and with
one that has all repairs at once:

    postcrash hunt --random --target NAME --time TIME --kernel KERNEL

The smallest workload of each group that the first hunt found is run again on the kernel with all repairs, on both
disks. If it HOLDS there, its cause is known. All that is still there, and all that the second hunt found, follows the
table.
"""
