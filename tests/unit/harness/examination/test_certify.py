"""What is said of a certificate that does not fit its recording."""

from pathlib import Path
from typing import Any

import pytest

from postcrash._core import Recording, intervals, write_recording
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.certificate import Certificate
from postcrash.harness.examination.certify import certify
from postcrash.harness.guests.machine import Machine, Source

SECTORS = 4096
EVENTS: list[tuple[Any, ...]] = [
    *(("durable",), ("started", 0), ("write", 1, 800, b"\x01" * 4096, False, False), ("complete", 1)),
]
RECORDING = "r-0123456789abcdef"
CERTIFICATE: dict[str, Any] = {
    "recover": {"mount": {"fstype": "ext4", "options": ""}, "walk": True, "map": True, "use_after": False, "fsck": []},
    **{"instants": [], "states": "1", "covered": "1", "recoveries": 1, "remembered": 0},
    **{"left_out": None, "reached": None, "executions": [[[], 0]], "outcomes": [{"observation": None, "states": "1"}]},
}


@pytest.mark.parametrize(
    ("model", "changes", "words"),
    [
        ("absent", {}, f"certificates of {RECORDING}: unknown device model 'absent'"),
        ("cache", {"index": 99}, f"certificate of {RECORDING}, crash interval 99: there are only "),
        ("cache", {"executions": [[[[7, 1]], 0]]}, ": component 7 has no version 1"),
        ("cache", {"executions": [[[[0, 0], [0, 0]], 0]]}, ": component 0 is chosen twice"),
        ("cache", {"executions": []}, f"certificates of {RECORDING}: none of them has an execution"),
        ("cache", {"executions": [[[[0, 0]], 0]]}, ": its executions cover 1 crash states, and it has 2"),
        ("cache", {"executions": [[[], 0], [[], 0]]}, ": its executions cover 4 crash states, and it has 2"),
        ("cache", {"states": "4", "covered": "4"}, ": there are 2 crash states, and it has 4"),
        ("cache", {"instants": []}, ": its 0 instants are not those of the recording"),
        ("cache", {"instants": [{"event": 99, "started": 7, "returned": 7}]}, ": its 1 instants are not those"),
        ("cache", {"outcomes": [{"observation": None, "states": "1"}]}, ": an outcome's number of crash states is not"),
        ("cache", {"left_out": "1 of 2"}, ": it names no reason why crash states are left out although some are"),
    ],
)
def test_a_certificate_that_does_not_fit(tmp_path: Path, model: str, changes: dict[str, Any], words: str) -> None:
    recording, base = tmp_path / f"{RECORDING}.pcr", tmp_path / "base.img"
    base.write_bytes(bytes(SECTORS * 512))
    write_recording(recording, SECTORS, "{}", EVENTS)
    last = intervals(Recording(recording), base, "cache")[-1]
    instants = [
        {"event": event, "started": started, "returned": returned} for event, started, returned in last.instants
    ]
    unused = Machine.__new__(Machine)  # nothing is recovered
    states, outcomes = str(last.states), [{"observation": None, "states": str(last.states)}]
    counts = {"instants": instants, "states": states, "covered": states, "outcomes": outcomes}
    certificate = Certificate.from_wire({**CERTIFICATE, **counts, "index": last.index, **changes})
    with pytest.raises(UsageError) as caught:
        next(certify(unused, Source(recording, base, model), [certificate], 1, 1, is_whole=False))
    assert words in str(caught.value)


def test_a_recording_that_is_cut_short(tmp_path: Path) -> None:
    recording = tmp_path / f"{RECORDING}.pcr"
    write_recording(recording, SECTORS, "{}", EVENTS)
    recording.write_bytes(recording.read_bytes()[:-100])
    with pytest.raises(UsageError, match=rf"certificates of {RECORDING}: .*{RECORDING}.pcr: not a recording"):
        next(certify(Machine.__new__(Machine), Source(recording, tmp_path, "cache"), [], 1, 1, is_whole=False))


def test_no_crash_interval_lacks_a_certificate_if_no_crash_state_was_left_out(tmp_path: Path) -> None:
    recording, base = tmp_path / f"{RECORDING}.pcr", tmp_path / "base.img"
    base.write_bytes(bytes(SECTORS * 512))
    write_recording(recording, SECTORS, "{}", EVENTS)
    known = intervals(Recording(recording), base, "cache")
    assert len(known) > 1
    every = [Certificate.from_wire({**CERTIFICATE, "index": interval.index}) for interval in known]
    unused, source = Machine.__new__(Machine), Source(recording, base, "cache")
    for number, interval in enumerate(known):
        with pytest.raises(UsageError, match=rf": there is none of crash interval {interval.index}$"):
            next(certify(unused, source, [*every[:number], *every[number + 1 :]], 1, 1, is_whole=True))
    with pytest.raises(UsageError, match="instants are not those"):
        next(certify(unused, source, every, 1, 1, is_whole=True))
