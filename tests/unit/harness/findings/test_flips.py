"""Each lost piece of a finding is kept alone, if it can be, and those that matter are told."""

import time
from contextlib import nullcontext
from dataclasses import make_dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash.harness.errors import UsageError
from postcrash.harness.findings import flips as module
from postcrash.harness.findings.flips import Flip, _states_with_piece, with_needed
from postcrash.model import Verdict

LOST_BY = {0: {0: (), 1: (1,), 2: (0, 1)}, 1: {0: (), 1: (2,)}, 2: {0: (), 1: (3,)}}


class Written:
    """An interval with two writes to one block, which are one component, and two writes to other blocks."""

    components = ((0, 8, [1, 1, 2]), (8, 8, [1, 1]), (16, 8, [1, 1]))
    pieces = ((0, 0, 8), (1, 0, 8), (2, 8, 8), (3, 16, 8))

    def lost(self, choices: Any) -> list[int]:
        return [piece for component, version in choices for piece in LOST_BY[component][version]]


@pytest.mark.parametrize(
    ("choices", "kept"),
    [
        ((), []),
        (((1, 1),), [(2, ())]),
        (((1, 1), (2, 1)), [(2, ((2, 1),)), (3, ((1, 1),))]),
        (((0, 1),), [(1, ())]),
        (((0, 2),), [(0, ((0, 1),))]),
        (((0, 2), (1, 1)), [(0, ((1, 1), (0, 1))), (2, ((0, 2),))]),
    ],
)
def test_each_lost_piece_that_can_be_kept_alone_is_kept(choices: Any, kept: Any) -> None:
    assert list(_states_with_piece(Written(), choices)) == kept  # type: ignore[arg-type]


def test_pieces_that_pass_when_they_are_kept_are_needed() -> None:
    finding: Any = make_dataclass("Finding", [("needed", object)])(None)
    tried = [Flip(number, 8, verdict) for number, verdict in enumerate(Verdict)]
    assert with_needed(finding, tried).needed == ((0, 8),)
    assert with_needed(finding, []).needed == ()


def test_a_finding_that_cannot_be_tried_stays_as_it_is_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise UsageError("its recording is gone")

    monkeypatch.setattr(module, "Spare", lambda settings, until: nullcontext(lambda: None))
    monkeypatch.setattr(module, "flips", fails)
    finding: Any = SimpleNamespace(id="f-1", needed=None)
    known: Any = SimpleNamespace(id="f-2", needed=())
    session: Any = SimpleNamespace(settings=None)
    notes = list[str]()
    assert module.find_needed_writes(session, [finding, known], notes.append) == [finding, known]
    assert notes == ["f-1: which of its lost writes matter was not tried: its recording is gone"]


def test_no_machine_is_started_when_the_time_is_over() -> None:
    finding: Any = SimpleNamespace(id="f-1", needed=None)
    notes = list[str]()
    session: Any = SimpleNamespace(settings=None)
    assert module.find_needed_writes(session, [finding], notes.append, time.monotonic() - 1) == [finding]
    assert notes == ["f-1: which of its lost writes matter was not tried: the time of this machine is over"]
