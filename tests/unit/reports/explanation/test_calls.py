"""The system calls of programs, in words and on the axis of the disk's requests."""

import io
from typing import Any

from rich.console import Console

from postcrash._core import Recording
from postcrash.reports.explanation.explanation import explain
from postcrash.reports.explanation.explanation_text import render_text
from postcrash.reports.explanation.perfetto import FIRST_THREAD, trace_events
from postcrash.reports.explanation.timeline import Span, TimedNumber, timeline
from postcrash.store.program_calls import CALLS_MAX, calls_before


def test_calls_are_between_events_in_their_order(calling: Recording) -> None:
    calls = calls_before(calling, 26)
    assert [(call.number, call.thread, call.program, call.text, call.result) for call in calls] == [
        (1, 1, "sh", 'openat("B", O_WRONLY|O_CREAT)', 3),
        (2, 1, "sh", 'rename("B", "A")', 0),
        (3, 1, "sh", "sync()", 0),
        (4, 2, "mv", 'unlink("no")', -2),
    ]
    places = [place for call in calls for place in (call.begins, call.ends) if place is not None]
    assert [int(place) for place in places] == [6, 6, 16, 16, 17, 25, 17, 17]
    third, fourth = calls[2:]
    assert fourth.ends is not None and 17 < third.begins < fourth.begins < fourth.ends < 18


def test_what_ends_behind_the_crash_is_in_progress(calling: Recording) -> None:
    assert [call.result for call in calls_before(calling, 25)] == [3, 0, None, -2]
    assert [call.number for call in calls_before(calling, 17)] == [1, 2]
    assert calls_before(calling, 6) == []


def test_an_explanation_has_them_in_words(crash: Any, calling: Recording) -> None:
    explanation = explain(crash.finding, calling, crash.base)
    assert [(call.text, call.result, call.status) for call in explanation.calls] == [
        ('openat("B", O_WRONLY|O_CREAT)', "3", "returned"),
        ('rename("B", "A")', "0", "returned"),
        ("sync()", "", "in progress"),
        ('unlink("no")', "ENOENT (No such file or directory)", "returned"),
    ]
    out = io.StringIO()
    render_text(explanation, Console(file=out, width=120))
    text = " ".join(out.getvalue().split())
    assert "The last system calls on the target" in text
    assert '3 1 (sh) sync() in progress 4 2 (mv) unlink("no") ENOENT (No such file or directory)' in text
    assert explain(crash.finding, crash.recording, crash.base).calls == ()


def test_the_timeline_has_those_that_reach_into_it(crash: Any, calling: Recording) -> None:
    made = timeline(crash.finding, calling, crash.base)
    without = timeline(crash.finding, crash.recording, crash.base)
    assert made.crash == without.crash + 5, "one of sync()'s ends is behind the crash"
    (renamed, synced, unlinked) = made.calls
    assert [call.number for call in made.calls] == [2, 3, 4]
    assert synced.span.end is None
    assert unlinked.span.end is not None and synced.span.start < unlinked.span.start < unlinked.span.end
    first_write = made.writes[-1][0].span
    assert renamed == TimedNumber(2, Span(renamed.span.start, renamed.span.start + 1))
    assert renamed.span.start < synced.span.start < first_write.start


def test_a_trace_has_a_track_for_each_thread(crash: Any, calling: Recording) -> None:
    explanation = explain(crash.finding, calling, crash.base)
    events = trace_events("t", explanation, timeline(crash.finding, calling, crash.base))["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert (names[FIRST_THREAD + 1], names[FIRST_THREAD + 2]) == ("thread 1, sh", "thread 2, mv")
    told = [(event["tid"] - FIRST_THREAD, event["name"], event["args"]) for event in events if event["ph"] == "b"]
    assert (1, "sync()", {"result": "in progress"}) in told
    assert (2, 'unlink("no")', {"result": "ENOENT (No such file or directory)"}) in told


def test_of_many_calls_the_last_ones_are_shown(crash: Any, calling: Recording, monkeypatch: Any) -> None:
    assert CALLS_MAX > 4
    monkeypatch.setattr("postcrash.reports.explanation.explanation.CALLS_MAX", 2)
    assert [call.number for call in explain(crash.finding, calling, crash.base).calls] == [3, 4]
    assert [call.number for call in timeline(crash.finding, calling, crash.base).calls] == [3, 4]
