"""Builds the kernel with the remedies, runs the findings' pages on it, hunts, writes docs/results/remedies.md."""

import hashlib
import json
import signal
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import click

from postcrash.harness.errors import HarnessError, InfrastructureError
from postcrash.harness.examination.campaign import tool_digest
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.kernels.kernel import uml_version
from postcrash.model import ExitCode

from ..finding_page import FindingPage, finding_pages
from .change import MutantError, numbered
from .measure import DOCS, put
from .mended import MendedHunt, MendedPage, remedies_markdown
from .mutant import load_mutants, mutant_changes
from .remedy import Remedy, bits, load_remedies, remedy_changes
from .source import SourceTree, require_packages, say
from .stages import DISK_OPTIONS, POSTCRASH, json_of

TARGETS = ("ext4-current", "ext4-journal", "ext4-fast-commit", "btrfs", "xfs", "f2fs")
HUNTED = Path("mutants", "hunts-on-mended")
"""The folder of the cache where results of hunts are kept."""
GroupFate = Literal["left", "gone", "open", "unseen"]
"""Still violated, not violated any more, not looked at to the end, or not even violated again without remedies."""
OF_EACH_RECOVERY = "kernel-log"
"""A judge that also wants the recoveries of fsck and of use, which take several times as long."""
AGAIN_BUDGET = "2000,60s"
"""What the workload of a group has on each disk: twice the recoveries that it had in the hunt."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", multiple=True, metavar="NAME", help="Only pages that this remedy mends; can be repeated.")
@click.option("--hunt", "hunted", multiple=True, metavar="TARGET", help="Hunt only on this target; can be repeated.")
@click.option("--time", default="10m", show_default=True, help="For each hunt.")
@click.option("--hunts/--no-hunts", default=True, show_default=True)
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Compilers at a time.")
def main(only: tuple[str, ...], hunted: tuple[str, ...], time: str, *, hunts: bool, jobs: int) -> None:
    """Build the kernel with the remedies, and write docs/results/remedies.md."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the hunt ends, too
    try:
        require_packages()
        source = SourceTree(cache_folder() / "mutants", jobs)
        remedies = load_remedies()
        key = _key(remedies)
        built = source.kernel(mutant_changes(load_mutants()) + remedy_changes(remedies))
        with tempfile.TemporaryDirectory(prefix="mended-", dir=cache_folder() / "mutants") as place:
            mender = _Mender(Path(place), built, remedies)
            mended = [mender.page(remedy, page) for remedy, page in _pages(remedies, only)]
            if hunts:
                for target in hunted or TARGETS:
                    mender.hunt(target, time, key)
            if not only:
                (DOCS / "remedies.md").write_text(remedies_markdown(mended, _kept(key), mender.version))
            if failed := [each.page.name for each in mended if not each.is_mended]:
                raise InfrastructureError(f"not mended: {', '.join(failed)}")
    except (MutantError, HarnessError) as error:
        say(f"error: {error}")
        sys.exit(ExitCode.INFRASTRUCTURE)


def _pages(remedies: Sequence[Remedy], only: Sequence[str]) -> list[tuple[Remedy, FindingPage]]:
    known = {page.name: page for page in finding_pages()}
    if unknown := {*only} - {remedy.name for remedy in remedies}:
        raise MutantError(f"there is no remedy {min(unknown)}")
    return [(remedy, known[name]) for remedy in remedies if not only or remedy.name in only for name in remedy.pages]


def _key(remedies: Sequence[Remedy]) -> str:
    """Digest of what hunts depend on: the remedies, and the tool."""
    digests = (change.digest() for remedy in remedies for change in remedy.changes)
    return hashlib.sha256("\0".join((tool_digest(), *digests)).encode()).hexdigest()


class _Mender:
    """Runs commands on kernels with some of the remedies, whose files are in the folder `place`."""

    def __init__(self, place: Path, built: bytes, remedies: Sequence[Remedy]) -> None:
        self._place, self._built, self._remedies = place, built, remedies
        self._kernel = place / "kernel"
        self._make(())
        self.version = f"UML {uml_version(self._kernel)}"

    def page(self, remedy: Remedy, page: FindingPage) -> MendedPage:
        """Run the page's command without and with the remedy, both with those beside it."""
        page.put_workload(self._place)
        beside = tuple(other for other in self._remedies if other.name in remedy.beside)
        before, after = (self._told(made, page.arguments) for made in (beside, (*beside, remedy)))
        mended = MendedPage(
            remedy, page, before["verdict"], after["verdict"], int(after["states"]), after["recoveries"]
        )
        say(f"{remedy.name}, {page.name}: {mended.before}, mended: {mended.after}")
        return mended

    def hunt(self, target: str, time: str, key: str) -> None:
        """Hunt on the kernel as it is and with all remedies, and try the groups of the first hunt again."""
        arguments = ("hunt", "--random", "--target", target, "--time", time, "--fresh", "--no-minimize")
        before = self._told((), arguments)
        say(f"{target}: {before['workloads']['run']} workloads, {len(before['groups'])} groups")
        fates = [(self._fate(target, group, before["tested"]), group) for group in before["groups"]]
        left = [(group["checker"], group["message"], group["workload"]) for fate, group in fates if fate == "left"]
        after = self._told(self._remedies, arguments)
        counts = {fate: sum(each == fate for each, _ in fates) for fate in ("open", "unseen")}
        told = {"key": key, "time": time, "before": before, "left": left, **counts, "after": after}
        folder = cache_folder() / HUNTED
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{target}.json").write_text(json.dumps(told))
        say(f"{target}: {len(left)} groups left, {counts}; mended: {len(after['groups'])} groups")

    def _fate(self, target: str, group: dict[str, Any], judges: Iterable[str]) -> GroupFate:
        """What becomes of a group's workload with all remedies."""
        place = self._place / "group.ops"
        place.write_text(group["workload"])
        asked = ",".join(sorted({*judges} - {OF_EACH_RECOVERY} | {group["checker"]}))
        check = ("check", place.name, "--target", target, "--judge", asked, "--budget", AGAIN_BUDGET)
        verdicts = [self._told(self._remedies, (*check, *disk))["verdict"] for disk in DISK_OPTIONS]
        if "violated" in verdicts:
            return "left"
        if "undecided" in verdicts:
            return "open"
        seen = any(self._told((), (*check, *disk))["verdict"] == "violated" for disk in DISK_OPTIONS)
        return "gone" if seen else "unseen"

    def _told(self, made: Sequence[Remedy], arguments: Sequence[str]) -> dict[str, Any]:
        """The JSON of a command on the kernel with these remedies."""
        self._make(made)
        command: list[str | Path] = [POSTCRASH, "--store", self._place / "store", *arguments]
        command += ["--kernel", self._kernel, "--json", "-"]
        return json_of(command, self._place)

    def _make(self, made: Sequence[Remedy]) -> None:
        put(self._kernel, numbered(self._built, 0, bits(self._remedies, made)))


def _kept(key: str) -> list[MendedHunt]:
    """What hunts came to, also in earlier runs with other remedies or earlier code."""
    folder = cache_folder() / HUNTED
    told = {place.stem: json.loads(place.read_text()) for place in folder.glob("*.json")}
    return [MendedHunt.of(target, told[target], key) for target in TARGETS if target in told]


if __name__ == "__main__":
    main()
