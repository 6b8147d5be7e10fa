"""`postcrash export ID OUT`: write a recording as a log of dm-log-writes."""

import errno
import json
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from postcrash._core import Recording, export_dm_log_writes
from postcrash.harness.cli.options import json_option
from postcrash.harness.errors import InfrastructureError, UsageError
from postcrash.harness.examination.session import Session
from postcrash.harness.files.output import write_json
from postcrash.model import ExitCode, WorkloadError, parse_workload
from postcrash.recorders.dm_log_writes import NAME as DM_LOG_WRITES
from postcrash.store.json_codec import Json
from postcrash.store.records import is_recording_id


@dataclass(frozen=True, slots=True)
class LogExport:
    """What was written and what was lost, as `export_dm_log_writes` reports."""

    entries: int
    unfinished: int
    overtaken: int
    fua_behind_flush: int


@click.command("export")
@click.argument("recording", metavar="ID")
@click.argument("out", type=click.Path(path_type=Path))
@json_option
@click.pass_obj
def export_log(session: Session, recording: str, out: Path, json_file: str | None) -> int:
    """Write the recording ID to the file OUT as a log of dm-log-writes, for replay-log and similar programs.

    ID is a recording in the store, such as r-1a2b3c4d5e6f7a8b, or the path of a .pcr file. The log starts from
    the recording's base image. Marks tell where operations started and returned (`op 3 started: rename A B`).

    \b
    Example:
      postcrash export r-1a2b3c4d5e6f7a8b log.img
      replay-log --log log.img --replay disk.img --end-mark 'op 3 returned: rename A B'
    """
    path = session.store.recording_path(recording) if is_recording_id(recording) else Path(recording)
    try:
        opened = Recording(path)
        marks = marks_of(opened)
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from error
    try:
        exported = LogExport(**export_dm_log_writes(opened, out, marks))
    except OSError as error:
        raise InfrastructureError(f"cannot write {error}") from error
    except ValueError as error:
        raise UsageError(str(error)) from error
    lost = _lost(exported)
    write_json(json_file, {"log": str(out), "entries": exported.entries, "marks": len(marks), "lost": lost})
    if json_file != "-":
        console = Console(soft_wrap=True, highlight=False)
        console.print(f"{out}: {exported.entries} entries, {len(marks)} of them marks", markup=False)
        for sentence in lost:
            console.print(f"lost: {sentence}", markup=False)
    return ExitCode.HOLDS


def marks_of(recording: Recording) -> list[tuple[int, str]]:
    """The marks of an imported log, and one for each event of an operation: (number of events before it, text)."""
    metadata = json.loads(recording.metadata)
    metadata = metadata if isinstance(metadata, dict) else {}
    events = recording.events()
    operations = _operations(metadata)
    marks = _imported_marks(metadata, len(events))
    for number, event in enumerate(events):
        match event:
            case ("started", op):
                marks.append((number, f"op {op} started{_named(operations, op)}"))
            case ("returned", op, code):
                failure = f" with {errno.errorcode.get(code, str(code))}" if code else ""
                marks.append((number, f"op {op} returned{failure}{_named(operations, op)}"))
            case ("durable",) if operations:
                marks.append((number + 1, "set-up is durable"))
    return sorted(marks, key=lambda mark: mark[0])


def _named(operations: list[str], op: int) -> str:
    return f": {operations[op]}" if op < len(operations) else ""


def _operations(metadata: Json) -> list[str]:
    try:
        return [str(operation) for operation in parse_workload(str(metadata.get("text", "")), "recorded").operations]
    except WorkloadError:
        return []


def _imported_marks(metadata: Json, events: int) -> list[tuple[int, str]]:
    marks = []
    for mark in metadata.get("marks") or [] if metadata.get("imported") == DM_LOG_WRITES else []:
        match mark:
            case {"event": int(event), "text": str(text)} if 0 <= event <= events:
                marks.append((event, text))
            case _:
                raise ValueError(f"the metadata has a broken mark: {str(mark)[:80]}")
    return marks


def _lost(exported: LogExport) -> list[str]:
    """What the recording has and the log lacks, one sentence each."""
    lost = ["when each request was submitted: a write that was under way during a flush seems to have come after it"]
    if count := exported.unfinished:
        lost.append(f"{count} requests that were never completed, though a crash may keep them")
    if count := exported.fua_behind_flush:
        lost.append(f"{count} FUA writes were stable before the flush that stands in front of them")
    if count := exported.overtaken:
        lost.append(
            f"the order of {count} writes: they completed after later ones over the same sectors, and come last"
        )
    return lost
