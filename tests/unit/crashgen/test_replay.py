"""The device model `prefix` shows what a replay of the exported dm-log-writes log shows, entry by entry."""

import struct
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from postcrash._core import export_dm_log_writes
from postcrash.model.units import SECTOR_BYTES

from .conftest import DISK_SECTORS, MODELS, Log, Recorder, letters_of, random_logs

ENTRY = struct.Struct("<QQQQ")
DISCARD = 4


def entries(log: bytes) -> Iterator[tuple[int, bytes]]:
    """Sector and data of each write or discard."""
    count = int.from_bytes(log[16:24], "little")
    at = SECTOR_BYTES
    for _ in range(count):
        sector, sectors, flags, _ = ENTRY.unpack_from(log, at)
        at += SECTOR_BYTES
        data = bytes(sectors * SECTOR_BYTES) if flags & DISCARD else log[at : at + sectors * SECTOR_BYTES]
        at += 0 if flags & DISCARD else len(data)
        if sectors:
            yield sector, data
    assert at == len(log)


def replays(log: bytes) -> list[str]:
    """The disk after none, one, two … of the entries with data."""
    disk = bytearray(b"." * SECTOR_BYTES * DISK_SECTORS)
    shown = [letters_of(bytes(disk))]
    for sector, data in entries(log):
        disk[sector * SECTOR_BYTES : sector * SECTOR_BYTES + len(data)] = data
        shown.append(letters_of(bytes(disk)))
    return shown


def test_a_replay_shows_the_crash_states_of_prefix(recorder: Recorder, pytestconfig: pytest.Config) -> None:
    out = recorder.folder / "exported"
    [model] = [model for model in MODELS if model.name == "prefix"]

    @settings(max_examples=300 if pytestconfig.option.full else 60, suppress_health_check=[HealthCheck.too_slow])
    @given(random_logs(model))
    def agree(log: Log) -> None:
        out.unlink(missing_ok=True)
        export_dm_log_writes(recorder.record(log), out, [])
        shown = replays(out.read_bytes())
        written = [ident for ident in log.submitted if log.request(ident)[0] != "flush"]
        assert len(shown) == 1 + sum(ident in log.completed for ident in written)
        in_set_up = sum(log.completed.get(ident, len(log.events)) < log.set_up_end for ident in written)
        assert set().union(*recorder.contents(log).values()) == set(shown[in_set_up:])

    agree()
