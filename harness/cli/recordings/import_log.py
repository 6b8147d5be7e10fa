"""`postcrash import LOG BASE`: put a log of dm-log-writes into the store as a recording."""

import json
import math
import os
import stat
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich.console import Console

from postcrash._core import Recording, count_states, import_dm_log_writes, scan_dm_log_writes
from postcrash.harness.cli.options import json_option
from postcrash.harness.errors import InfrastructureError, UsageError
from postcrash.harness.examination.session import Session
from postcrash.harness.files.output import write_json
from postcrash.model import ExitCode
from postcrash.model.units import SECTOR_BYTES
from postcrash.recorders.dm_log_writes import NAME as DM_LOG_WRITES
from postcrash.store.json_codec import Json
from postcrash.store.records import recording_id
from postcrash.store.store import Store
from postcrash.targets import copy_image, image_id

MODEL = "cache"
_COUNT_MAX = {"interval_pieces_max": 3_000_000, "interval_pieces": 20_000_000}
"""Counting crash states takes some 150 bytes for each piece in the largest interval, and 2 µs for each piece in any
interval. These limits keep it within 0.5 GB, apart from 256 MiB of mapped files, and 40 s."""
_DIGITS_MAX = 4_000
"""Python writes integers of at most 4,300 digits."""


@dataclass(frozen=True, slots=True)
class LogSummary:
    """What a log holds, as `scan_dm_log_writes` reports."""

    log_sector_bytes: int
    entries: int
    writes: int
    fua_writes: int
    flushes: int
    discards: int
    marks_left_out: int
    metadata_flags: int
    padded_writes: int
    interval_pieces_max: int
    interval_pieces: int
    marks: list[tuple[int, str]]
    goes_on: bool


@click.command("import")
@click.argument("log", type=click.Path(path_type=Path))
@click.argument("base", type=click.Path(path_type=Path))
@json_option
@click.pass_obj
def import_log(session: Session, log: Path, base: Path, json_file: str | None) -> int:
    """Import LOG, made by dm-log-writes over the disk image BASE, as a recording.

    LOG is a file or a block device. The kernel's log-writes target (as fstests uses it) or QEMU's blklogwrites wrote
    it. BASE is a raw image of the disk as it was when the log began. BASE is copied into the store.
    docs/recorders.md tells how to make both, and what a log does not contain.

    \b
    Example:
      postcrash import log.img before.img
    """
    disk_sectors = _disk_sectors(base)
    try:
        summary = LogSummary(**scan_dm_log_writes(log, disk_sectors))
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from error
    lost = _lost(summary)
    recording, base_id = _keep(session.store, log, base, disk_sectors, summary, lost)
    counted = _count(session.store, recording, base_id, summary)
    result = {"recording": recording, "base": base_id, **_to_json(summary), **_counted_json(counted), "lost": lost}
    write_json(json_file, result)
    if json_file != "-":
        _print(result, counted)
    return ExitCode.HOLDS


def _disk_sectors(base: Path) -> int:
    try:
        mode = base.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISBLK(mode)):
            raise UsageError(f"{base}: it is neither a file nor a block device")
        with base.open("rb") as image:
            size = image.seek(0, os.SEEK_END)
    except OSError as error:
        raise UsageError(f"{base}: {error.strerror or error}") from error
    if size == 0 or size % SECTOR_BYTES:
        raise UsageError(f"{base}: {size} bytes are no disk image: it must be whole sectors of {SECTOR_BYTES} bytes")
    return size // SECTOR_BYTES


def _keep(
    store: Store, log: Path, base: Path, disk_sectors: int, summary: LogSummary, lost: list[str]
) -> tuple[str, str]:
    """Put the recording and the base image into the store, and return their ids."""
    image, recording = store.scratch(), store.scratch()
    try:
        with base.open("rb") as file:  # copied, because images of the store never change, and this one is the user's
            base_id = image_id(copy_image(file, image))
        metadata = {
            "imported": DM_LOG_WRITES,
            "log": log.name,
            "base": base_id,
            "device": "unknown: the log does not say",
            **_to_json(summary),
            "lost": lost,
        }
        import_dm_log_writes(log, disk_sectors, recording, json.dumps(metadata, ensure_ascii=False))
        id = recording_id(Recording(recording).digest)
        store.keep_base(image, base_id)
        store.adopt_recording(recording, id)
        return id, base_id
    except OSError as error:
        raise InfrastructureError(f"cannot import {log}: {error}") from error
    except ValueError as error:
        raise UsageError(str(error)) from error
    finally:
        image.unlink(missing_ok=True)
        recording.unlink(missing_ok=True)


def _lost(summary: LogSummary) -> list[str]:
    """What the log leaves out or gets wrong, one sentence each."""
    lost = [
        "no submission times: each request counts as submitted when the one before it was completed. A write that was "
        "under way during a flush or a FUA write may have survived without it: those crash states are missing",
        "no operations: what had returned at a crash is unknown; marks are kept in the recording's metadata",
    ]
    if count := summary.fua_writes:
        lost.append(
            f"the kernel logs FUA writes ({count} here) before earlier writes that no flush had covered yet: crash "
            "states with those and without the FUA write are missing, and where both write a sector, the older wins"
        )
    elif not summary.marks and not summary.metadata_flags:
        lost.append(
            "it has neither FUA nor marks. QEMU's blklogwrites logs a FUA write as a write and a flush, and a flush "
            "behind writes that completed during it, which it did not cover: crash states are missing"
        )
    if summary.marks:
        lost.append("the kernel logs a mark before earlier writes that no flush had covered yet")
    if count := summary.marks_left_out:
        lost.append(f"{count} marks: there are too many for a recording")
    if count := summary.metadata_flags:
        lost.append(f"the metadata flag of {count} entries: it means nothing for a crash")
    if count := summary.padded_writes:
        lost.append(
            f"the end of {count} DAX writes: it is padded with zeros; writes through DAX mappings are not logged"
        )
    if summary.goes_on:
        lost.append(
            f"what stands behind the {summary.entries} entries that the superblock counts: more entries, if the "
            "host went down while logging, or the rest of an older log"
        )
    return lost


def _to_json(summary: LogSummary) -> Json:
    left_out = {"marks", "goes_on", *_COUNT_MAX}
    counts = {name: value for name, value in asdict(summary).items() if name not in left_out}
    return {**counts, "marks": [{"event": event, "text": text} for event, text in summary.marks]}


def _count(store: Store, recording: str, base_id: str, summary: LogSummary) -> tuple[int, int] | None:
    """The numbers of crash intervals and of their crash states. None if counting takes too long or too much memory."""
    if any(getattr(summary, cost) > limit for cost, limit in _COUNT_MAX.items()):
        return None
    try:
        return count_states(Recording(store.recording_path(recording)), store.base_path(base_id), MODEL)
    except ValueError:
        return None


def _counted_json(counted: tuple[int, int] | None) -> Json:
    """`states` is decimal text, because it can be too large for JSON readers. Null if it has more than 4,000 digits."""
    if counted is None:
        return {"intervals": None, "states": None, "states_log10": None}
    found, states = counted
    digits = _log10(states)
    return {
        "intervals": found,
        "states": str(states) if digits < _DIGITS_MAX else None,
        "states_log10": round(digits, 3),
    }


def _log10(number: int) -> float:
    shift = max(number.bit_length() - 64, 0)
    return math.log10(number >> shift) + shift * math.log10(2)


def _print(result: Json, counted: tuple[int, int] | None) -> None:
    console = Console(soft_wrap=True, highlight=False)
    console.print(f"[bold]{result['recording']}[/] on {result['base']}: {result['entries']} entries: ", end="")
    console.print(
        f"{result['writes']} writes ({result['fua_writes']} FUA), {result['flushes']} flushes, "
        f"{result['discards']} discards, {len(result['marks'])} marks"
    )
    if counted is None:
        console.print("crash intervals: not counted, too many requests stand between two flushes")
    else:
        found, states = counted
        number = f"{states}" if states < 10**15 else f"about 10^{_log10(states):.0f}"
        console.print(f"crash intervals: {found}; crash states: {number} (device model {MODEL})")
    for sentence in result["lost"]:
        console.print(f"lost: {sentence}", markup=False)
