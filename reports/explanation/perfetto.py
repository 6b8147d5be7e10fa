"""A finding's timeline in the Trace Event Format, which Perfetto, Chrome's tracing and speedscope open.

A recording has an order and no clock, so one moment stands for a millisecond.
"""

from collections.abc import Iterator

from postcrash.reports.explanation.timeline import Span, Timeline
from postcrash.store.explanation_data import Explanation
from postcrash.store.json_codec import Json

_MOMENT_US = 1000
_PROCESS = 1
OPERATIONS, FLUSHES, FIRST_EPOCH = 1, 2, 3
FIRST_THREAD = 1 << 20
"""Numbers of the tracks. Each epoch and each thread of a program has its own."""
_CATEGORY = "postcrash"


def trace_events(title: str, explanation: Explanation, timeline: Timeline) -> Json:
    """Returns the trace as decoded JSON: operations, system calls, flushes, each epoch's writes and the crash.

    `explanation` and `timeline` belong to one finding. Slices that were under way at the crash end there.
    """
    tracks = {OPERATIONS: "operations", FLUSHES: "flushes"}
    tracks |= {FIRST_EPOCH + place: f"epoch {epoch.number}" for place, epoch in enumerate(explanation.epochs)}
    tracks |= {FIRST_THREAD + call.thread: f"thread {call.thread}, {call.program}" for call in explanation.calls}
    events = [
        {"ph": "M", "pid": _PROCESS, "name": "process_name", "args": {"name": title}},
        *(
            {"ph": "M", "pid": _PROCESS, "tid": track, "name": "thread_name", "args": {"name": name}}
            for track, name in tracks.items()
        ),
        *_slices(explanation, timeline),
        {
            "ph": "i",
            "s": "g",
            "pid": _PROCESS,
            "tid": OPERATIONS,
            "cat": _CATEGORY,
            "name": "crash",
            "ts": timeline.crash * _MOMENT_US,
        },
    ]
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _slices(explanation: Explanation, timeline: Timeline) -> Iterator[Json]:
    texts = {operation.number: operation.text for operation in explanation.operations}
    identity = iter(range(1, 1 << 30))
    for operation in timeline.operations:
        yield from _slice(next(identity), OPERATIONS, texts[operation.number], operation.span, timeline, {})
    calls = {call.number: call for call in explanation.calls}
    for timed_call in timeline.calls:
        call = calls[timed_call.number]
        details: Json = {"result": call.result or call.status}
        yield from _slice(next(identity), FIRST_THREAD + call.thread, call.text, timed_call.span, timeline, details)
    for span in timeline.flushes:
        yield from _slice(next(identity), FLUSHES, "flush", span, timeline, {})
    for place, (epoch, timed) in enumerate(zip(explanation.epochs, timeline.writes, strict=True)):
        for write, when in zip(epoch.writes, timed, strict=True):
            details = {
                "status": write.status,
                "sector": write.sector,
                "sectors": write.sectors,
                "flags": write.flags,
                "during": write.during,
                "torn": when.is_torn,
            }
            name = f"{write.status}: {write.words}"
            yield from _slice(next(identity), FIRST_EPOCH + place, name, when.span, timeline, details)


def _slice(identity: int, track: int, name: str, span: Span, timeline: Timeline, details: Json) -> Iterator[Json]:
    """Yields the begin and the end of a slice. Requests overlap, so each slice has its own id."""
    end = timeline.crash if span.end is None else span.end
    common = {"pid": _PROCESS, "tid": track, "cat": _CATEGORY, "id": identity, "name": name}
    yield {"ph": "b", "ts": span.start * _MOMENT_US, **common, "args": details}
    yield {"ph": "e", "ts": end * _MOMENT_US, **common}
