"""Two recordings have one shape if the disk was asked for the same in the same order, whatever the bytes were."""

from pathlib import Path
from typing import Any

import pytest

from postcrash._core import write_recording
from postcrash.harness.auditing.recording_equivalence import shape_of

Event = tuple[Any, ...]
SET_UP: tuple[Event, ...] = (("started", 0), ("write", 1, 0, b"\x01" * 4096, False, False), ("returned", 0, 0))
RUN: tuple[Event, ...] = (
    *(("started", 1), ("write", 2, 8, b"\x02" * 4096, False, False), ("write", 3, 16, b"\x03" * 4096, True, False)),
    *(("flush", 4), ("returned", 1, 0)),
)


def shape(folder: Path, *events: Event) -> str:
    write_recording(folder / "made.pcr", 4096, "{}", events)
    return shape_of(folder / "made.pcr")


def changed(place: int, event: Event) -> tuple[Event, ...]:
    return (*RUN[:place], event, *RUN[place + 1 :])


def test_bytes_completions_and_the_set_up_make_no_difference(tmp_path: Path) -> None:
    first = shape(tmp_path, *SET_UP, ("durable",), *RUN)
    other = ("write", 2, 8, b"\x09" * 4096, False, False)
    assert shape(tmp_path, *SET_UP, ("durable",), *changed(1, other)) == first
    assert shape(tmp_path, *SET_UP, ("durable",), *RUN, ("complete", 3), ("complete", 2)) == first
    more = ("write", 9, 80, b"\x01" * 4096, False, False)
    assert shape(tmp_path, more, *SET_UP, ("complete", 1), ("durable",), *RUN) == first


@pytest.mark.parametrize(
    "run",
    [
        RUN[:-1],
        (RUN[0], RUN[2], RUN[1], *RUN[3:]),
        changed(1, ("write", 2, 24, b"\x02" * 4096, False, False)),
        changed(1, ("write", 2, 8, b"\x02" * 8192, False, False)),
        changed(1, ("write", 2, 8, b"\x02" * 4096, True, False)),
        changed(1, ("zero", 2, 8, 8, True)),
        changed(4, ("returned", 1, 5)),
        (*RUN[:3], RUN[4], RUN[3]),
    ],
)
def test_requests_marks_and_their_order_make_another_shape(tmp_path: Path, run: tuple[Event, ...]) -> None:
    assert shape(tmp_path, *SET_UP, ("durable",), *run) != shape(tmp_path, *SET_UP, ("durable",), *RUN)


def test_without_a_durable_set_up_all_of_it_counts(tmp_path: Path) -> None:
    assert shape(tmp_path, *SET_UP) != shape(tmp_path, *SET_UP[:1], *SET_UP[2:])


def test_what_cannot_be_read_has_no_shape(tmp_path: Path) -> None:
    (tmp_path / "bad.pcr").write_bytes(b"no recording")
    with pytest.raises(OSError, match="absent"):
        shape_of(tmp_path / "absent.pcr")
    with pytest.raises(ValueError, match="bad"):
        shape_of(tmp_path / "bad.pcr")
