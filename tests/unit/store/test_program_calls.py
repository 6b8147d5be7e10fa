"""The results of system calls in words."""

from pathlib import Path
from typing import Any

import pytest

from postcrash._core import Recording, write_recording
from postcrash.store.program_calls import calls_before


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (14, "14"),
        (-28, "ENOSPC (No space left on device)"),
        (-512, "interrupted by a signal"),
        (-(2**63), "never returns"),
        (1 - 2**63, "-9223372036854775807"),
        (-4096, "-4096"),
    ],
)
def test_each_result_has_words(tmp_path: Path, result: int, shown: str) -> None:
    notes: list[tuple[Any, ...]] = [
        ("durable",),
        ("call-begins", 1, "sh", "sync()"),
        ("call-ends", 1, result),
        ("flush", 1),
    ]
    write_recording(tmp_path / "noted.pcr", 4096, "{}", notes)
    (call,) = calls_before(Recording(tmp_path / "noted.pcr"), 2)
    assert call.explained.result == shown
