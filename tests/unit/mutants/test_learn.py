"""What is learned from the workloads that found mutants."""

import tomllib

from ...mutants.learn import yields
from ...mutants.stages import MutantFinding

KNOWN = {"creat foo\n": frozenset([("creat",), ("creat", "fsync first")]), "sync\n": frozenset([("sync all",)])}


def found(checker: str, workload: str) -> MutantFinding:
    return MutantFinding(checker, "it is gone", workload)


def test_an_interaction_weighs_more_with_each_mutant_that_it_found() -> None:
    told = [found("durability", "creat foo\n"), found("mounts", "creat foo\n"), found("fsck", "sync\n"), None]
    assert tomllib.loads(yields(told, KNOWN)) == {
        "walk": {"creat": 3, "creat + fsync first": 3},
        "fsck": {"sync all": 2},
        "crash": {},
    }


def test_a_workload_that_is_not_ordered_teaches_nothing() -> None:
    assert tomllib.loads(yields([found("durability", "mkdir A\n")], KNOWN))["walk"] == {}
