"""A message of the crash disk is taken over completely, or not at all."""

import json
from typing import Any

import pytest

from postcrash.harness.errors import InfrastructureError, LostAtWork
from postcrash.harness.guests.events import IntervalReport, LostGuest, RecoveredState, read_event
from postcrash.store.consoles import Casualty

from ..examination.conftest import interval_wire

WIRE = {"event": "interval", **interval_wire(([[0, 1], [2, 0]], {"mount_errno": 0}), ([], None))}
LOST = {"what": "the guest hangs", "console": "last words", "stacks": "xfs_log_force"}


def read(**fields: Any) -> Any:
    return read_event(json.dumps({**WIRE, **fields}))


def test_a_report_is_read_with_all_that_it_has() -> None:
    within = {"interval": 3, "choices": [[4, 1]], "observation": None}
    report = read(states=str(2**70), within=within, reached={"all_kept": 1, "none_kept": None, "samples": 0, "seed": 1})
    assert isinstance(report, IntervalReport)
    assert (report.states, report.covered) == (2**70, 2)
    assert report.executions == ((((0, 1), (2, 0)), 0), ((), 1))
    assert [each.observation for each in report.outcomes] == [{"mount_errno": 0}, None]
    assert [each.casualty for each in report.outcomes] == [None, Casualty("the guest hangs")]
    assert report.within == RecoveredState(3, ((4, 1),), None)
    assert report.reached is not None and report.reached.none_kept is None


def test_a_lost_guest_is_a_casualty_whatever_it_did() -> None:
    over_state = read_event(json.dumps({"event": "lost-guest", "interval": 1, "choices": [[0, 1]], **LOST}))
    at_work = read_event(json.dumps({"event": "lost-at-work", "during": "run", "started": 1, "returned": 0, **LOST}))
    assert isinstance(over_state, LostGuest) and isinstance(at_work, LostAtWork)
    assert over_state.casualty == at_work.casualty == Casualty(**LOST)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"states": "many"}, "IntervalReport.states: "),
        ({"recoveries": None}, "IntervalReport.recoveries: Input should be a valid integer, found None"),
        ({"executions": [[[[1]], 0]]}, "IntervalReport.executions.0.0.0.1: Field required, found [1]"),
        ({"outcomes": [{}]}, "IntervalReport.outcomes.0.observation: Field required"),
        ({"instants": 3}, "IntervalReport.instants: "),
        ({"pieces": 1, "more": 2}, "IntervalReport.more: Unexpected keyword argument, found 2"),
        ({"event": "executed"}, "ExecutionReport.observation: Field required"),
        ({"event": "unknown"}, "the crash disk sent an unknown event: "),
        ({"\x1b[2J": 2}, r"'IntervalReport.\x1b[2J': Unexpected keyword argument, found 2"),
        ({"event": [1]}, "the crash disk sent an unknown event: "),
    ],
)
def test_a_broken_event_is_one_clear_error(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InfrastructureError) as caught:
        read(**fields)
    assert message in str(caught.value)


@pytest.mark.parametrize("line", ["", "{", "3", "[]", "{}", "null"])
def test_a_line_that_is_no_event_is_one_clear_error(line: str) -> None:
    with pytest.raises(InfrastructureError, match="the crash disk sent an unknown event"):
        read_event(line)


def test_an_event_with_too_many_levels_is_unknown() -> None:
    with pytest.raises(InfrastructureError, match="the crash disk sent an unknown event: "):
        read_event("[" * 100_000)
