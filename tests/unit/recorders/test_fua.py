"""The recording with FUA that two recorders' traces make."""

from pathlib import Path
from typing import Any

from postcrash.recorders import crash_disk
from postcrash.recorders.agreement import compare
from postcrash.recorders.fua import events_with_fua

from .conftest import ABOVE, BELOW, block, log_of, recording


def test_both_make_the_recording_with_fua(tmp_path: Path) -> None:
    below = recording(tmp_path, "below.pcr", BELOW)
    made = list(events_with_fua(below, compare(crash_disk.trace(below), log_of(tmp_path, ABOVE))))
    assert made == ABOVE
    recording(tmp_path, "made.pcr", made)


def test_notes_of_calls_stay_where_they_were(tmp_path: Path) -> None:
    at = BELOW.index(("flush", 3))
    notes: list[Any] = [("call-begins", 1, "sh", "sync()"), ("call-begins", 2, "sh", "sync()"), ("call-ends", 1, 0)]
    noted = [*BELOW[:at], *notes[:2], *BELOW[at : at + 2], notes[2], *BELOW[at + 2 :]]
    below = recording(tmp_path, "below.pcr", noted)
    made = list(events_with_fua(below, compare(crash_disk.trace(below), log_of(tmp_path, ABOVE))))
    assert [event for event in made if event not in notes] == ABOVE
    beside = [(made[made.index(note) - 1], made[made.index(note) + 1]) for note in (notes[0], notes[2])]
    assert beside == [(("complete", 2), notes[1]), (("complete", 3), ("write", 4, 32, block("d"), True, False))]
