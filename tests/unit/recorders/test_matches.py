"""Requests are ordered by when they were completed, and named in a disagreement by what they are."""

import pytest

from postcrash.recorders.matches import MatchedRequest, completion, described, submission
from postcrash.recorders.trace import Request

WRITE = Request(kind="write", sector=8, sectors=16, submitted=3, completed=7)
FLUSH = Request(kind="flush", sector=0, sectors=0, submitted=4, completed=None)


def test_what_was_never_completed_comes_last() -> None:
    late = MatchedRequest(WRITE, submitted=1, completed=10**12)
    never = MatchedRequest(WRITE, submitted=0, completed=None)
    requests: list[Request | MatchedRequest] = [never, FLUSH, late, WRITE]
    assert sorted(requests, key=completion) == [WRITE, late, never, FLUSH]
    assert completion(Request(kind="write", sector=0, sectors=1, submitted=None, completed=0)) == 0


def test_only_a_request_whose_submission_was_seen_has_a_position() -> None:
    assert [submission(request) for request in (WRITE, FLUSH)] == [3, 4]
    assert submission(Request(kind="write", sector=0, sectors=1, submitted=0, completed=1)) == 0
    with pytest.raises(AssertionError):
        submission(Request(kind="write", sector=0, sectors=1, submitted=None, completed=1))


@pytest.mark.parametrize(
    ("request_seen", "text"),
    [
        (WRITE, "write of 16 sectors from 8 at 3"),
        (FLUSH, "flush at 4"),
        (
            Request(kind="write", sector=0, sectors=8, fua=True, submitted=None, completed=9),
            "write of 8 sectors from 0 FUA at 9",
        ),
        (
            Request(kind="write", sector=0, sectors=8, fua=True, preflush=True, submitted=0, completed=9),
            "write of 8 sectors from 0 PREFLUSH FUA at 0",
        ),
        (Request(kind="flush", sector=0, sectors=0, preflush=True, submitted=2, completed=5), "flush PREFLUSH at 2"),
        (Request(kind="discard", sector=64, sectors=8, submitted=5, completed=6), "discard of 8 sectors from 64 at 5"),
    ],
)
def test_a_request_is_described_with_its_flags_and_its_first_position(request_seen: Request, text: str) -> None:
    assert described(request_seen) == text
