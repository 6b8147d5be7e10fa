"""The simplest of several witnesses is kept, whatever the order in which they come."""

from itertools import permutations
from typing import Any

import pytest

from postcrash.harness.examination.result import REASONS_MAX, Examination, Ruling, Witness
from postcrash.model import Verdict
from postcrash.model.judge import Opinion

from .conftest import RECOVER


def witness(lost: tuple[int, ...], torn: int = 0, started: int = 3, interval: int = 1) -> Witness:
    return Witness(
        interval,
        (),
        started=started,
        returned=started,
        lost=lost,
        torn=torn,
        recover=RECOVER,
        observation={},
        casualty=None,
    )


# Each is simpler than the next one, in one part of the key.
LADDER = [
    witness((), torn=2, started=9, interval=9),
    witness((7,), torn=0, started=9, interval=9),
    witness((7,), torn=1, started=2, interval=9),
    witness((7,), torn=1, started=3, interval=0),
    witness((3,), torn=1, started=3, interval=1),
    witness((4,), torn=1, started=3, interval=1),
    witness((1, 2), torn=0, started=1, interval=0),
]


def test_fewest_lost_then_torn_then_started_then_interval_then_the_pieces() -> None:
    assert [w.simplicity for w in LADDER] == sorted(w.simplicity for w in LADDER)
    assert len({w.simplicity for w in LADDER}) == len(LADDER)


def test_the_order_of_arrival_makes_no_difference() -> None:
    for arrived in permutations(LADDER[1:5]):
        ruling = Ruling()
        for one in arrived:
            ruling.violated("broken", one)
        assert ruling.witnesses == {("broken", False): LADDER[1]}


def test_messages_come_with_the_simplest_first() -> None:
    ruling = Ruling()
    for message, one in (("z", LADDER[3]), ("b", LADDER[5]), ("a", LADDER[5]), ("y", LADDER[0])):
        ruling.violated(message, one)
    assert [message for message, _ in ruling.simplest_first()] == ["y", "z", "a", "b"]


class FakeInterval:
    """An interval in which version v of component c loses the pieces 10 c to 10 c + v."""

    def lost(self, choices: Any) -> list[int]:
        return [10 * component + piece for component, version in choices for piece in range(version)]

    def torn(self, choices: Any) -> int:
        return len(choices)


def test_settling_counts_pieces_and_names_deviations_only() -> None:
    first = Witness(
        0, ((4, 1), (2, 0)), started=1, returned=1, lost=(40,), torn=1, recover=RECOVER, observation={}, casualty=None
    )
    settled = first.settled({1: 2, 3: 0}, FakeInterval())  # type: ignore[arg-type]
    assert settled.choices == ((1, 2), (4, 1))
    assert settled.lost == (10, 11, 40)
    assert settled.torn == 2


PASSED, VACUOUS = Opinion(Verdict.HOLDS, True, ""), Opinion(Verdict.HOLDS, False, "")
UNSEEN, BROKEN = Opinion(Verdict.UNDECIDED, False, "why"), Opinion(Verdict.VIOLATED, True, "what")


@pytest.mark.parametrize(
    ("opinions", "verdict"),
    [
        ({"a": [PASSED]}, Verdict.HOLDS),
        ({"a": [VACUOUS]}, Verdict.UNDECIDED),
        ({"a": [VACUOUS], "b": []}, Verdict.UNDECIDED),
        ({}, Verdict.UNDECIDED),
        ({"a": [VACUOUS], "b": [VACUOUS, PASSED]}, Verdict.HOLDS),
        ({"a": [PASSED], "b": [UNSEEN]}, Verdict.UNDECIDED),
        ({"a": [VACUOUS], "b": [BROKEN]}, Verdict.VIOLATED),
    ],
)
def test_what_was_not_put_to_the_test_holds_nothing(opinions: dict[str, list[Opinion]], verdict: Verdict) -> None:
    examination = Examination()
    for name, said in opinions.items():
        examination.rulings[name] = Ruling()
        for opinion in said:
            examination.rulings[name].take(opinion)
    assert examination.verdict is verdict


def test_no_reason_hides_behind_another_one() -> None:
    """Somebody may know one of them. Reasons that differ only in numbers are one."""
    ruling = Ruling()
    ruling.take(Opinion(Verdict.UNDECIDED, True, "a cannot be read"))
    ruling.undecided("crash interval 3: 7 states were left out")
    ruling.undecided("crash interval 4: 9 states were left out")
    ruling.take(Opinion(Verdict.VIOLATED, True, "broken"))
    assert ruling.open_questions == ("a cannot be read", "crash interval 3: 7 states were left out")
    for number in range(2 * REASONS_MAX):
        ruling.undecided("so " * number)
    assert len(ruling.open_questions) == REASONS_MAX + 1
