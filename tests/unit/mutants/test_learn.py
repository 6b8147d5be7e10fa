"""What is learned from the workloads that found mutants."""

import tomllib

from ...mutants.learn import learned, to_toml
from ...mutants.stages import MutantFinding

KNOWN = {"creat foo\n": frozenset([("creat",), ("creat", "fsync first")]), "sync\n": frozenset([("sync all",)])}
NOTHING: dict[str, dict[str, list[str]]] = {"walk": {}, "fsck": {}, "crash": {}}


def found(checker: str, workload: str) -> MutantFinding:
    return MutantFinding(checker, "it is gone", workload)


def test_each_mutant_has_the_interactions_that_found_it() -> None:
    told = {"a": found("durability", "creat foo\n"), "b": found("mounts", "creat foo\n"), "c": found("fsck", "sync\n")}
    creat = ["creat", "creat + fsync first"]
    taught = learned({}, told, KNOWN)
    assert taught == {"walk": {"a": creat, "b": creat}, "fsck": {"c": ["sync all"]}, "crash": {}}
    assert tomllib.loads(to_toml(taught)) == taught


def test_a_workload_that_is_not_ordered_teaches_nothing() -> None:
    assert learned({}, {"a": found("durability", "mkdir A\n")}, KNOWN) == NOTHING


def test_what_was_learned_before_stays() -> None:
    before = {"walk": {"a": ["creat"], "b": ["mkdir"]}}
    taught = learned(before, {"b": found("mounts", "sync\n")}, KNOWN)
    assert taught["walk"] == {"a": ["creat"], "b": ["sync all"]}
