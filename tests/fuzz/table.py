"""Every reader of what comes from elsewhere. To fuzz one more, add a row."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from postcrash._core import Recording, count_states, import_dm_log_writes, scan_dm_log_writes
from postcrash.apps.application import ApplicationFileError, load_application
from postcrash.apps.protocol import TraceError, read_trace
from postcrash.harness.cli.recordings.export_log import marks_of
from postcrash.harness.errors import InfrastructureError, UsageError
from postcrash.harness.expectations.contract import Contract
from postcrash.harness.expectations.known_objections import FILE, load_known
from postcrash.harness.files.workload_files import loaded
from postcrash.harness.findings.bundles.archive import BundleError
from postcrash.harness.gate.baseline import load_baseline
from postcrash.harness.gate.merging import load_result
from postcrash.harness.guests.events import read_event
from postcrash.model.observation import Observation, ObservationError
from postcrash.model.units import SECTOR_BYTES
from postcrash.recorders import blklogwrites, dm_log_writes
from postcrash.recorders.strace import StraceError, import_strace, prepare
from postcrash.store.json_codec import PlainError
from postcrash.store.records import Cell, Finding
from postcrash.store.store import DATABASE, Store, StoreError
from postcrash.targets.catalogue import TargetFileError, load_target
from postcrash.targets.xfstests import NotImportedError, target_of_section
from postcrash.targets.xfstests_config import ConfigError, read_sections

from ..blktrace import BlktraceError, read_blktrace
from ..qemu_log import LogPosition
from . import bundles, gates, sound
from .target import FuzzTarget, Read, text

_DIGEST_BYTES = 32
_MODELS = ("cache", "torn", "ordered", "prefix", "through", "barrier")


def _sealed(content: bytes) -> bytes:
    """A recording with the digest that belongs to it, as somebody would write it who means harm."""
    body = content[:-_DIGEST_BYTES]
    return body + hashlib.sha256(body).digest()


def _recording(file: Path) -> None:
    recording = Recording(file)
    marks_of(recording)
    recording.contents(len(recording.events()))
    base = file.with_suffix(".img")
    base.write_bytes(bytes(sound.DISK_SECTORS * SECTOR_BYTES))
    for model in _MODELS:
        count_states(recording, base, model)


def _log(file: Path) -> None:
    dm_log_writes.trace(file, sound.DISK_SECTORS)
    scan_dm_log_writes(file, sound.DISK_SECTORS)
    import_dm_log_writes(file, sound.DISK_SECTORS, file.with_suffix(".pcr"), "{}")


def _qemu_log(file: Path) -> None:
    blklogwrites.trace(file, sound.DISK_SECTORS)
    LogPosition.end_of(file).cut(file, file.with_suffix(".new"))


def _blktrace(file: Path) -> None:
    for level in ("queued", "issued"):
        read_blktrace(file.read_bytes(), level)


def _strace(file: Path) -> None:
    import_strace(file, prepare(Path("/r")), "workload", "/r").to_text()


def _store(file: Path) -> None:
    store = Store(file.parent)
    try:
        store.cells(), store.findings(), list(store.runs())
    finally:
        store.close()


def _event(file: Path) -> None:
    read_event(file.read_text(encoding="utf-8", errors="replace"))


def _xfstests(file: Path) -> None:
    """Each section becomes a target whose file says the same. Of those that cannot, the worst message is raised."""
    refused: list[NotImportedError] = []
    for section in read_sections(file):
        try:
            imported = target_of_section(section, file.name)
        except NotImportedError as error:
            refused.append(error)
            continue
        made = file.with_suffix(".toml")
        made.write_text(imported.to_toml(), encoding="utf-8")
        if load_target(made) != imported.target:
            raise AssertionError(f"the file of section {section.name!r} is another target: {imported.to_toml()!r}")
    if refused:
        raise max(refused, key=lambda error: (not str(error).isprintable(), len(str(error))))


def _of_json(read: Callable[[object], object]) -> Read:
    """Reads what JSON says. Text that is no JSON comes to no such reader."""

    def read_file(file: Path) -> None:
        try:
            value = json.loads(file.read_bytes())
        except (ValueError, RecursionError):
            return
        read(value)

    return read_file


_KNOWN = '[page]\npage = "page.md"\ntargets = ["f2fs"]\njudges = ["mounts"]\nworkloads = ["a*"]\n'

TARGETS = {
    target.name: target
    for target in (
        FuzzTarget("recording", sound.recordings, _recording, (OSError, ValueError), _sealed, cpu_seconds=60),
        FuzzTarget("dm-log-writes", sound.logs, _log, (OSError, ValueError)),
        FuzzTarget("blklogwrites", sound.logs, _qemu_log, (OSError, ValueError)),
        FuzzTarget("blktrace", sound.blktraces, _blktrace, (BlktraceError,)),
        FuzzTarget("strace", sound.files("tests/fuzz/seeds/strace.txt"), _strace, (StraceError,)),
        FuzzTarget("calls", sound.files("tests/fuzz/seeds/calls.jsonl"), read_trace, (TraceError,)),
        FuzzTarget("workload", sound.files("examples/*.ops"), lambda file: loaded(str(file)), (UsageError,)),
        FuzzTarget("target", sound.files("targets/catalogue/*.toml"), load_target, (TargetFileError,)),
        FuzzTarget("xfstests", sound.files("tests/fuzz/seeds/*.config"), _xfstests, (ConfigError, NotImportedError)),
        FuzzTarget("application", sound.applications, load_application, (ApplicationFileError,)),
        FuzzTarget("gate", text("".join(gates.GATE)), gates.plan, (UsageError,)),
        FuzzTarget("baseline", sound.baselines, load_baseline, (UsageError,)),
        FuzzTarget("known", text(_KNOWN), lambda file: load_known(file.parent, Path()), (UsageError,), file=FILE),
        FuzzTarget("contract", sound.contracts, lambda file: Contract.load(str(file)), (UsageError,)),
        FuzzTarget("gate-result", sound.gate_results, load_result, (UsageError,)),
        FuzzTarget("cell", sound.cells, _of_json(Cell.from_json), (PlainError,)),
        FuzzTarget("finding", sound.findings, _of_json(Finding.from_json), (PlainError,)),
        FuzzTarget("store", sound.stores, _store, (StoreError,), file=DATABASE),
        FuzzTarget("bundle", bundles.contents, bundles.read, (BundleError,), bundles.sealed),
        FuzzTarget("bundle-tar", bundles.tars, bundles.read, (BundleError,), bundles.packed),
        FuzzTarget("observation", sound.observations, _of_json(Observation.from_wire), (ObservationError,)),
        FuzzTarget("event", sound.disk_events, _event, (InfrastructureError,)),
    )
}
