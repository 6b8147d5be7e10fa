"""What remedies come to, and the page made of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from ..finding_page import FindingPage
from .remedy import Remedy
from .results import EARLIER


@dataclass(frozen=True)
class MendedPage:
    """The verdicts of a page's command without and with the remedy; `states` and `recoveries` are those with it."""

    remedy: Remedy
    page: FindingPage
    before: str
    after: str
    states: int
    recoveries: int

    @property
    def is_mended(self) -> bool:
        """Whether the remedy makes the difference."""
        return (self.before, self.after) == ("violated", "holds")


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
    """Hunts on the kernel as it is and with all remedies; of the first one's groups, those `left` with all remedies.

    open        how many groups of the first hunt were not looked at to the end with all remedies
    unseen      how many did not show again without remedies, so that it tells nothing that they do not with them
    is_earlier  it was measured with other remedies, or with earlier code
    """

    target: str
    time: str
    before: HuntCounts
    left: tuple[Group, ...]
    open: int
    unseen: int
    after: HuntCounts
    is_earlier: bool

    @classmethod
    def of(cls, target: str, told: dict[str, Any], key: str) -> Self:
        """That of what `mend.py` keeps. `key` is that of today's remedies and code."""
        left = tuple((judge, message, workload) for judge, message, workload in told["left"])
        before, after = (HuntCounts.of(told[which]) for which in ("before", "after"))
        counts = {"open": told["open"], "unseen": told["unseen"]}
        is_earlier = told["key"] != key
        return cls(target, told["time"], before=before, left=left, **counts, after=after, is_earlier=is_earlier)


def remedies_markdown(pages: Sequence[MendedPage], hunts: Sequence[MendedHunt], kernel: str) -> str:
    """docs/results/remedies.md."""
    lines = [_HEAD.format(kernel=kernel)]
    lines += ["| finding | what is true instead | as it is | mended | crash states, recoveries |"]
    lines += ["| --- | --- | --- | --- | ---: |"]
    for mended in pages:
        link = f"[{mended.page.name}](../findings/{mended.page.name}.md)"
        link += "".join(f", with {name} mended" for name in mended.remedy.beside)
        counts = f"{mended.states}, {mended.recoveries}"
        lines.append(f"| {link} | {mended.remedy.mends} | {mended.before} | {mended.after} | {counts} |")
    lines += ["", _HUNTS]
    lines += ["| target | kernel | workloads | crash states | recoveries | groups | still there with all remedies |"]
    lines += ["| --- | --- | ---: | ---: | ---: | ---: | --- |"]
    for hunt in hunts:
        asked = f"{hunt.target}, {hunt.time}{EARLIER * hunt.is_earlier}"
        unknown = (
            f"{len(hunt.left)}, {hunt.open} not looked at to the end, {hunt.unseen} not seen again without remedies"
        )
        lines.append(f"| {asked} | as it is | {hunt.before.row()} | {unknown} |")
        lines.append(f"| {asked} | mended | {hunt.after.row()} | |")
    if any(hunt.is_earlier for hunt in hunts):
        lines += ["", "\\* Measured with earlier remedies, or with earlier code of postcrash."]
    for hunt in hunts:
        for judge, message, workload in dict.fromkeys((*hunt.left, *hunt.after.groups)):
            lines += ["", f"{hunt.target}, {judge}: {message}", "", "```ops", workload.rstrip(), "```"]
    return "\n".join([*lines, ""])


_HEAD = """# Remedies

Made by `make remedies` ({kernel}), [as described](../../tests/README.md#remedies): each finding's command on the
kernel as it is, and with the change that should mend its cause.
"""


_HUNTS = """`postcrash hunt --random --target NAME --time TIME --kernel KERNEL` on the kernel as it is, and with
all remedies:
"""
