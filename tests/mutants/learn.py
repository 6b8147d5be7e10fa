"""Learns from the mutants what the default hunt runs first: writes workloads/yields.toml.

    python -m tests.mutants.learn

An interaction weighs 1, and 1 more for each mutant that was found by a workload that has it
(workloads/interactions.py). Only workloads of one or two operations count, for these are ordered, and only mutants that
took more than a few workloads: what breaks nearly every workload teaches nothing. Run `make mutants` first.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from postcrash.harness.files.places import cache_folder
from postcrash.harness.hunting.default_hunt import SINGLE, interactions_of, pairs
from postcrash.harness.hunting.probes import Probe
from postcrash.workloads.interactions import Interaction

from .mutant import load_mutants
from .results import Results
from .source import say
from .stages import MutantFinding

YIELDS = Path(__file__).resolve().parents[2] / "workloads" / "yields.toml"
EASY = 10
"""A mutant that was found in so many workloads teaches nothing."""
_HEAD = """# What interactions of workloads weigh in the order of a hunt (interactions.py); all others weigh 1.
# Made by `python -m tests.mutants.learn`.
"""


def main() -> None:
    """Count, and write the file."""
    results, known = Results(cache_folder() / "mutants" / "results"), _interactions_by_text()
    found = [
        measured.found
        for mutant in load_mutants()
        if (measured := results.earlier(mutant.name, mutant.target, mutant.digest())).workloads > EASY
    ]
    YIELDS.write_text(yields(found, known))
    say(f"{YIELDS}: learned from {sum(each.workload in known for each in found if each)} of {len(found)} mutants")


def yields(found: Iterable[MutantFinding | None], known: Mapping[str, frozenset[Interaction]]) -> str:
    """The file's text. `known` has the interactions of each workload that is ordered."""
    counts = {probe: Counter[Interaction]() for probe in Probe}
    for each in filter(None, found):
        counts[Probe.FSCK if each.checker == "fsck" else Probe.WALK].update(known.get(each.workload, ()))
    return "\n".join([_HEAD, *(line for probe in Probe for line in _table(probe, counts[probe]))])


def _table(probe: Probe, counts: Mapping[Interaction, int]) -> Iterator[str]:
    yield f"[{probe.value}]"
    yield from (f'"{" + ".join(each)}" = {1 + count}' for each, count in sorted(counts.items()))
    yield ""


def _interactions_by_text() -> dict[str, frozenset[Interaction]]:
    return {
        space[number].to_text(): interactions_of(space, number)
        for space, numbers in ((SINGLE, range(len(SINGLE))), pairs())
        for number in numbers
    }


if __name__ == "__main__":
    main()
