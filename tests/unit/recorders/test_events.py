"""Events have names, and are the tuples that the core gives. A flush also says the first disk."""

from pathlib import Path

from postcrash._core import Recording, write_recording
from postcrash.recorders.events import (
    CompletionEvent,
    DurableEvent,
    FlushEvent,
    ReturnEvent,
    StartEvent,
    WriteEvent,
    ZeroEvent,
    recording_events,
)


def test_each_event_has_its_type_and_is_the_tuple_of_the_core(tmp_path: Path) -> None:
    write_recording(
        tmp_path / "run.pcr",
        [64, 64],
        "{}",
        [
            ("durable",),
            ("started", 0),
            ("write", 0, 8, bytes(1024), True, False),
            ("zero", 1, 16, 24, True),
            ("complete", 0),
            ("complete", 1),
            ("flush", 2),
            ("flush", 3, 1),
            ("returned", 0, 5),
        ],
    )
    recording = Recording(tmp_path / "run.pcr")
    events = recording_events(recording)
    assert [event for event in events if not isinstance(event, FlushEvent)] == [
        event for event in recording.events() if event[0] != "flush"
    ]
    assert events == [
        DurableEvent(),
        StartEvent("started", operation=0),
        WriteEvent("write", id=0, sector=8, sectors=2, fua=True, preflush=False),
        ZeroEvent("zero", id=1, sector=16, sectors=24, discard=True),
        CompletionEvent("complete", id=0),
        CompletionEvent("complete", id=1),
        FlushEvent("flush", id=2),
        FlushEvent("flush", id=3, disk=1),
        ReturnEvent("returned", operation=0, errno=5),
    ]
    requests = [WriteEvent, ZeroEvent, CompletionEvent, CompletionEvent, FlushEvent, FlushEvent]
    assert list(map(type, events)) == [DurableEvent, StartEvent, *requests, ReturnEvent]
