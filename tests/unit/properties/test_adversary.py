"""Which adversary a workload has in it, and how it is run."""

import pytest

from postcrash.model import Workload, parse_workload
from postcrash.properties import PROPERTIES, property_named
from postcrash.properties.adversary import (
    ADVERSARIES,
    BY_WORKLOAD,
    MARKS,
    Adversary,
    adversary_in,
    adversary_of_run,
    within,
)

PLAIN = "creat a\nappend a 100\n"


@pytest.mark.parametrize(
    ("added", "adversary"),
    [
        ("", Adversary.PLAIN),
        ("fsync a\n", Adversary.FLUSH),
        ("fdatasync .\n", Adversary.FLUSH),
        ("msync a\n", Adversary.FLUSH),
        ("syncfs\nunlink a\n", Adversary.FLUSH),
        ("write-osync a 0 100\n", Adversary.PLAIN),
        ("writeback a\n", Adversary.WRITEBACK),
        ("drop-caches\n", Adversary.WRITEBACK),
        ("commit\nunlink a\n", Adversary.COMMIT),
        ("sleep 31\n", Adversary.COMMIT),
        ("checkpoint\nunlink a\n", Adversary.COMMIT),
        ("fsync a\nwriteback a\n", Adversary.WRITEBACK),
    ],
)
def test_the_strongest_in_a_workload_counts(added: str, adversary: Adversary) -> None:
    family = [parse_workload(text, "w") for text in (PLAIN, PLAIN + added)]
    assert adversary_in(family[1], family) is adversary
    assert adversary_in(family[0], family) is Adversary.PLAIN


def test_what_had_not_started_counts_for_nothing() -> None:
    text = "creat s\n---\ncreat a\nappend a 100\nfsync a\nunlink a\n"
    workload = parse_workload(text, "w").with_tail()
    family = [workload, parse_workload("creat a\nappend a 100\n", "w").with_tail()]
    found = [adversary_in(workload, family, started) for started in range(len(workload.operations) + 1)]
    assert found == [*[Adversary.PLAIN] * 4, *[Adversary.FLUSH] * (len(found) - 4)]


def test_a_workload_is_cut_where_a_stronger_adversary_comes() -> None:
    texts = ("creat a\n", "creat a\nwriteback a\nunlink a\ncommit\nunlink b\n", "sync\ncreat a\n")
    family = [parse_workload(text, "w") for text in texts]

    def cut(workload: Workload, strongest: Adversary) -> str | None:
        shorter = within(workload, family, strongest)
        return None if shorter is None else "; ".join(map(str, shorter.ops))

    plain, several, first = family
    assert [cut(several, each) for each in BY_WORKLOAD] == [
        "creat a",
        "creat a",
        "creat a; writeback a; unlink a",
        "creat a; writeback a; unlink a; commit; unlink b",
    ]
    assert within(several, family, Adversary.COMMIT) is several
    assert [cut(each, Adversary.PLAIN) for each in (plain, first)] == ["creat a", None]


def test_the_tail_counts_for_nothing() -> None:
    workload = parse_workload(PLAIN, "w")
    for checkpoint in (True, False):
        assert adversary_in(workload.with_tail(checkpoint=checkpoint), [workload]) is Adversary.PLAIN


def test_what_each_workload_has_is_the_property_s_own() -> None:
    assert {adversary_in(each, family) for family in [property_named("P4").workloads()] for each in family} == {
        Adversary.PLAIN
    }


def test_each_property_can_be_asked_of_a_power_cut_alone() -> None:
    for prop in PROPERTIES:
        family = prop.workloads()
        assert Adversary.PLAIN in {adversary_in(each, family) for each in family}, prop.name


@pytest.mark.parametrize(
    ("model", "held", "depth", "adversary"),
    [
        ("cache", None, 1, Adversary.PLAIN),
        ("cache", 0, 1, Adversary.HELD),
        ("torn", 1, 1, Adversary.TORN),
        ("ordered", None, 1, Adversary.PLAIN),
        ("torn", 1, 2, Adversary.RECOVERY),
    ],
)
def test_how_workloads_are_run(model: str, held: int | None, depth: int, adversary: Adversary) -> None:
    assert adversary_of_run(model, held, depth) is adversary


def test_each_adversary_has_words_and_a_mark() -> None:
    assert set(ADVERSARIES) == set(MARKS) == set(Adversary) > set(BY_WORKLOAD)
    assert len(set(MARKS.values())) == len(set(ADVERSARIES.values())) == len(Adversary)
