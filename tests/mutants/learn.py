"""Learns from the mutants what the default hunt runs first: writes workloads/yields.toml.

    python -m tests.mutants.learn

For each mutant, the file has the interactions (workloads/interactions.py) of the workload that found it. Only mutants
that took more than a few workloads count: what breaks nearly every workload teaches nothing. A mutant that the file's
own order finds at once keeps what it taught before.
Run `make mutants` first.
"""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path

from postcrash.corpus import of_fstests
from postcrash.harness.files.places import cache_folder
from postcrash.harness.hunting.default_hunt import SINGLE, interactions_in, pairs
from postcrash.harness.hunting.probes import Probe
from postcrash.workloads.interactions import Interaction, interactions_of, name_of

from .mutant import load_mutants
from .results import Results
from .source import say
from .stages import MutantFinding

YIELDS = Path(__file__).resolve().parents[2] / "workloads" / "yields.toml"
EASY = 3
"""A mutant that was found in so many workloads teaches nothing new."""
_HEAD = """# The interactions of workloads that found mutants, by the probe and the mutant; interactions.py weighs them.
# Made by `python -m tests.mutants.learn`.
"""

Taught = dict[str, dict[str, list[str]]]
"""For each probe and mutant, the names of interactions."""


def main() -> None:
    """Add what the last results teach, and write the file."""
    results, known = Results(cache_folder() / "mutants" / "results"), _interactions_by_text()
    mutants, found = load_mutants(), {}
    for mutant in mutants:
        measured = results.earlier(mutant.name, mutant.target, mutant.digest())
        if measured.found and measured.workloads > EASY:
            found[mutant.name] = measured.found
    taught = learned(tomllib.loads(YIELDS.read_text()), found, known)
    YIELDS.write_text(to_toml(taught))
    say(f"{YIELDS}: learned from {sum(map(len, taught.values()))} of {len(mutants)} mutants")


def learned(before: Taught, found: Mapping[str, MutantFinding], known: Mapping[str, frozenset[Interaction]]) -> Taught:
    """What the mutants teach, with what they taught before. `known`: the interactions of each ordered workload."""
    taught: Taught = {probe.value: dict(before.get(probe.value, {})) for probe in Probe}
    for mutant, each in found.items():
        parts = known.get(each.workload)
        if parts is not None:
            probe = Probe.FSCK if each.checker == "fsck" else Probe.WALK
            taught[probe.value][mutant] = sorted(map(name_of, parts))
    return taught


def to_toml(taught: Taught) -> str:
    """The file's text."""
    lines = [_HEAD]
    for probe, mutants in taught.items():
        lines += [f"[{probe}]", *(f"{name} = {json.dumps(parts)}" for name, parts in sorted(mutants.items())), ""]
    return "\n".join(lines)


def _interactions_by_text() -> dict[str, frozenset[Interaction]]:
    drawn = {
        space[number].to_text(): interactions_in(space, number)
        for space, numbers in ((SINGLE, range(len(SINGLE))), pairs())
        for number in numbers
    }
    return {workload.without_tail().to_text(): interactions_of(workload) for workload in of_fstests()} | drawn


if __name__ == "__main__":
    main()
