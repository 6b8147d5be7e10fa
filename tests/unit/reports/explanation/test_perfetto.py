"""The trace of the crash in conftest: every slice has two ends, on its own track, and the crash comes last."""

from collections import Counter
from typing import Any

from postcrash.reports.explanation.explanation import explain
from postcrash.reports.explanation.perfetto import FIRST_EPOCH, FLUSHES, OPERATIONS, trace_events
from postcrash.reports.explanation.timeline import timeline


def test_every_slice_has_two_ends_and_stands_on_its_track(crash: Any) -> None:
    explanation = explain(crash.finding, crash.recording, crash.base)
    made = timeline(crash.finding, crash.recording, crash.base)
    events = trace_events("a title", explanation, made)["traceEvents"]
    begun = {event["id"]: event for event in events if event["ph"] == "b"}
    ended = {event["id"]: event for event in events if event["ph"] == "e"}
    assert begun.keys() == ended.keys()
    for key, event in begun.items():
        assert (event["name"], event["tid"]) == (ended[key]["name"], ended[key]["tid"])
        assert event["ts"] < ended[key]["ts"] <= made.crash * 1000
    assert Counter(event["tid"] for event in begun.values()) == Counter(
        {
            OPERATIONS: len(made.operations),
            FLUSHES: len(made.flushes),
            **{FIRST_EPOCH + place: len(writes) for place, writes in enumerate(made.writes)},
        }
    )


def test_names_say_what_became_of_a_write(crash: Any) -> None:
    explanation = explain(crash.finding, crash.recording, crash.base)
    events = trace_events("t", explanation, timeline(crash.finding, crash.recording, crash.base))["traceEvents"]
    names = [event["name"] for event in events if event["ph"] == "b"]
    lost = [write for epoch in explanation.epochs for write in epoch.writes if write.status == "lost"]
    assert lost
    assert all(f"lost: {write.words}" in names for write in lost)


def test_the_crash_is_the_last_moment(crash: Any) -> None:
    explanation = explain(crash.finding, crash.recording, crash.base)
    made = timeline(crash.finding, crash.recording, crash.base)
    events = trace_events("t", explanation, made)["traceEvents"]
    (instant,) = [event for event in events if event["ph"] == "i"]
    assert instant["name"] == "crash"
    assert instant["ts"] == max(event.get("ts", 0) for event in events)
