"""The conformance test accepts a sound property, and finds each fault that it should find."""

from dataclasses import replace

import pytest

from postcrash.model import History, Observation, Workload, simulate
from postcrash.model.judge import UNTESTED, Opinion, holds, violated
from postcrash.properties.family import family
from postcrash.properties.property import Property

from .conformance import check_property, crash_free, spoilt


class Fake(Property):
    """A property that gives the answer that it was told to give."""

    name, title, statement, source, exclusions = "fake", "title", "statement", "source", ()

    def __init__(self, *answers: Opinion) -> None:
        self.answers = answers
        self.family = family(("one", "", "creat a"))

    def workloads(self) -> tuple[Workload, ...]:
        return self.family

    def examine(self, history: History, observation: Observation) -> Opinion:
        return self.answers["a" not in observation.tree]


PASS = holds("fine")
VACUOUS = UNTESTED
BROKEN = violated("a is missing")


def sound(refusal: Opinion = BROKEN) -> Fake:
    """A property that asks for `a`, which the set-up makes."""
    fake = Fake(PASS, refusal)
    fake.family = family(("one", "creat a", "creat b"))
    return fake


def test_a_property_that_tells_good_from_bad_conforms() -> None:
    check_property(sound())


@pytest.mark.parametrize(
    ("answers", "complaint"),
    [
        ((PASS, PASS), "refuses nothing"),
        ((BROKEN, BROKEN), "broken without a crash"),
        ((VACUOUS, VACUOUS), "is vacuous"),
        ((replace(PASS, message=""), VACUOUS), "is vacuous"),
    ],
    ids=["always passes", "never passes", "never relevant", "says nothing"],
)
def test_a_useless_property_is_caught(answers: tuple[Opinion, Opinion], complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_property(Fake(*answers))


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([], "no workloads"),
        ([("one", "", "creat a"), ("one", "", "creat a; sync")], "uses a name twice"),
        ([("one", "", "; ".join(f"creat a{i}" for i in range(9)))], "9 recorded operations"),
        ([("one", "", "creat a; append a 12289")], "writes too much"),
    ],
)
def test_an_unaffordable_family_is_caught(rows: list[tuple[str, str, str]], complaint: str) -> None:
    fake = Fake(PASS, PASS)
    fake.family = family(*rows)
    with pytest.raises(AssertionError, match=complaint):
        check_property(fake)


def test_every_instant_has_its_trees() -> None:
    (workload,) = family(("one", "creat s", "creat a; creat b"))
    instants = [(history.started, history.returned, len(tree)) for history, tree in crash_free(workload)]
    assert instants == [(1, 1, 2), (2, 1, 2), (2, 1, 3), (2, 2, 3), (3, 2, 3), (3, 2, 4), (3, 3, 4)]


def test_spoiling_takes_names_and_contents() -> None:
    (workload,) = family(("one", "", "mkdir D; creat D/a; append D/a 10"))
    bad = list(spoilt(simulate(workload)[-1]))
    assert [sorted(tree) for tree in bad] == [["."], [".", "D"], *[[".", "D", "D/a"]] * 3]
    assert [tree["D/a"].segments[:1] for tree in bad[2:]] == [(), ((0, 10, "zero"),), ((0, 10, "stale"),)]


@pytest.mark.parametrize("text", ["name", "title", "statement", "source"])
def test_a_missing_text_is_caught(text: str) -> None:
    fake = sound()
    setattr(fake, text, "")
    with pytest.raises(AssertionError, match="must say something"):
        check_property(fake)


def test_a_refusal_without_a_message_is_caught() -> None:
    with pytest.raises(AssertionError, match="a judgement on one says nothing"):
        check_property(sound(replace(BROKEN, message="")))


def test_a_workload_at_its_limits_is_affordable() -> None:
    """Eight operations, of which one writes three blocks. Sizes that no operation writes cost nothing."""
    fake = sound()
    more = "; ".join(f"creat a{number}" for number in range(5))
    fake.family = family(("one", "creat a", f"append a 12288; truncate a 99999; creat b; {more}"))
    check_property(fake)


def test_spoiling_takes_targets_and_values_of_attributes() -> None:
    (workload,) = family(("one", "", "symlink to s; creat a; setxattr a user.x y"))
    bad = list(spoilt(simulate(workload)[-1]))
    assert [sorted(tree) for tree in bad] == [[".", "s"], [".", "a", "s"], [".", "a"], [".", "a", "s"]]
    assert bad[1]["a"].xattrs == (("user.x", ""),)
    assert bad[3]["s"].target == ""
