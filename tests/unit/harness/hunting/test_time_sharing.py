"""How much of a limited time is for looking, and how much for following up."""

import time

import pytest

from postcrash.harness.hunting.time_sharing import LAST_SECONDS, Turns


@pytest.mark.parametrize(
    ("now", "is_first", "ends"),
    [(0.0, True, 180.0), (180.0, False, 225.0), (240.0 - LAST_SECONDS, False, 240.0), (232.0, True, 238.0)],
)
def test_a_turn_keeps_a_fourth_of_what_is_left_unless_little_is(
    monkeypatch: pytest.MonkeyPatch, now: float, is_first: bool, ends: float
) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: now)
    assert Turns(240.0).looking_ends(is_first=is_first) == ends
    assert Turns(240.0).has_another


def test_no_more_than_a_minute_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    assert Turns(3600.0).looking_ends(is_first=True) == 3540.0


def test_without_a_limit_there_is_one_turn_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 10.0)
    assert (Turns(None).looking_ends(is_first=True), Turns(None).has_another) == (None, False)
    assert not Turns(10.0).has_another
