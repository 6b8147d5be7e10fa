"""Sound inputs, made by the real writers. Those that only real programs write are in the folder `seeds`."""

import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

from postcrash._core import Recording, export_dm_log_writes, intervals, write_recording
from postcrash.harness.errors import LostAtWork
from postcrash.harness.expectations.contract import Contract
from postcrash.harness.gate.baseline import HEADING, lines_for
from postcrash.harness.guests import events
from postcrash.model import Verdict
from postcrash.model.units import SECTOR_BYTES
from postcrash.properties.promises import Clause, Statements
from postcrash.reports.explanation.explanation import explain
from postcrash.store.consoles import Casualty
from postcrash.store.gate_run import Failure, GateRun, Part
from postcrash.store.json_codec import to_plain
from postcrash.store.records import Cell, Finding
from postcrash.store.store import DATABASE, Store

from .target import Seeds

ROOT = Path(__file__).resolve().parents[2]
DISK_SECTORS = 64
WORKLOAD = "creat A\nappend A 4096\n---\ncreat B\nwrite B 0 5000\nrename B A\ncommit\nsync\n"
_BLOCK = b"x" * 8 * SECTOR_BYTES
EVENTS: list[tuple[Any, ...]] = [
    *(("started", 0), ("returned", 0, 0), ("started", 1), ("returned", 1, 0)),
    *(("write", 1, 8, _BLOCK, False, False), ("complete", 1), ("durable",), ("started", 2)),
    *(("write", 2, 16, _BLOCK[:1024], False, False), ("write", 3, 18, _BLOCK, True, True), ("complete", 2)),
    *(("flush", 4), ("complete", 3), ("complete", 4), ("zero", 5, 32, 8, True), ("zero", 6, 0, 9, False)),
    *(("complete", 5), ("returned", 2, 5), ("flush", 7)),
]
"""Every sort of event: requests that are completed, under way and never completed."""
_STATEMENTS = Statements(Clause("rule", "It is so.", "fs(5)"), None)
_LOST = Casualty("the guest hangs", "last words", "schedule")
_LISTING: list[dict[str, Any]] = [
    {"path": ".", "type": "dir", "mode": 0o755, "nlink": 3, "inode": 0},
    {"path": "A", "type": "file", "mode": 0o644, "nlink": 1, "inode": 1, "size": 9, "hash": "0" * 16}
    | {"segments": [[0, 4, "write:0+1"], {"start": 4, "end": 6, "component": 1, "versions": [[[4, 6, "zero"]]]}]},
    {"path": "L", "type": "symlink", "mode": 0o777, "nlink": 1, "inode": 2, "target": "A", "xattrs": {"user.x": "00"}},
]
_LISTING[1]["segments"].append([6, 9, "bytes:000102"])
OBSERVATION: dict[str, Any] = {
    **{"mount_errno": 0, "tree": _LISTING, "klog": ["<4>EXT4-fs warning"], "klog_whole": True},
    **{"fsck": {"status": 1, "output": "clean"}, "repair": None, "used": {"failed": "rmdir A", "errno": 39}},
}


def files(pattern: str) -> Seeds:
    """The files of this checkout whose paths match."""
    return lambda _folder: [path.read_bytes() for path in sorted(ROOT.glob(pattern))]


def applications(_folder: Path) -> list[bytes]:
    """Those of the catalogue that are like no other one."""
    found = (path.read_bytes() for path in sorted(ROOT.glob("apps/catalogue/*.toml")))
    return [content for content in found if b"\nlike =" not in b"\n" + content]


def recordings(folder: Path) -> list[bytes]:
    """A recording, one with marks of an import, and one of a large disk of which most is discarded."""
    about = {"text": WORKLOAD, "device": "crash disk", "base": "b-0"}
    imported = {"imported": "dm-log-writes", "marks": [{"event": 2, "text": "mark"}]}
    found = []
    for number, metadata in enumerate((about, imported)):
        path = folder / f"{number}.pcr"
        write_recording(path, DISK_SECTORS, json.dumps(metadata), EVENTS)
        found.append(path.read_bytes())
    large = folder / "large.pcr"
    write_recording(large, 2**35, "{}", [("durable",), ("zero", 1, 0, 2**10, True), ("zero", 2, 9, 2**10, False)])
    return [*found, large.read_bytes()]


def logs(folder: Path) -> list[bytes]:
    """A log that is exported, one of Linux and one of QEMU."""
    path, log = folder / "made.pcr", folder / "made.log"
    path.write_bytes(recordings(folder)[0])
    export_dm_log_writes(Recording(path), log, [(1, "started:0"), (4, "durable")])
    real = ROOT / "tests/unit/recorders/logs"
    return [log.read_bytes(), *(path.read_bytes() for path in sorted(real.glob("*.log")))]


def blktraces(_folder: Path) -> list[bytes]:
    """A trace of each version of the kernel's format, with a request, its completion and a mark."""
    write, issue, complete, notify = 1 << 17, 7, 8, 1 << 26 | 2
    told = [(issue | write, 4096, b""), (complete | write, 4096, b"cg"), (notify, 0, b"postcrash started 1\0")]
    made = [b"", b""]
    for number, (action, size, text) in enumerate(told, 1):
        sequence = 0 if action == notify else number
        made[0] += struct.pack("<IIQQIIIIIHH", 0x65617407, sequence, number, 8, size, action, 7, 1, 0, 0, len(text))
        made[0] += text
        made[1] += struct.pack("<IIQQIIQIIHH12x", 0x65617408, sequence, number, 8, size, 7, action, 1, 0, 0, len(text))
        made[1] += text
    return made


def baselines(_folder: Path) -> list[bytes]:
    """A baseline with a line of each sort."""
    known = lines_for([(_failure(), _part("UML 6.1.176"))], "it is known", limited=True)
    lines = [HEADING, *known, *lines_for([(_failure(), _part("unknown"))], "why", limited=False)]
    return ["\n".join(lines).encode(), f"{lines[1].replace(' 6.1 ', ' 6.1..6.12 ')}\n\n# why\n".encode()]


def gate_results(_folder: Path) -> list[bytes]:
    """The result of a gate with a failure."""
    parts = (_part("UML 6.1"),)
    run = GateRun(version="0", started="2026-01-31T12:00:00Z", seconds=1.5, file="postcrash.toml", parts=parts)
    return [run.model_dump_json().encode()]


def _part(kernel: str) -> Part:
    place = {"name": "small", "kind": "hunt", "target": "btrfs", "kernel": kernel, "model": "cache"}
    return Part.model_validate({**place, "expect": "practice", "verdict": "violated", "failures": (_failure(),)})


def _failure() -> Failure:
    return Failure(cause=f"c-{1:016x}", verdict="violated", judge="P5", message="A is gone", lost=("data of a file",))


def contracts(_folder: Path) -> list[bytes]:
    """The contract of a cell."""
    return [Contract.of([_cell()], "UML 6.1", "cache").to_text().encode()]


def _cell() -> Cell:
    return Cell(
        target="btrfs",
        property="P1",
        verdict=Verdict.HOLDS,
        states=2**70,
        recoveries=14,
        outcomes=9,
        workloads=12,
        relevant=3,
        witness=None,
        reason="",
        kernel="UML 6.1.176",
        model="cache",
        statements=_STATEMENTS,
    )


def cells(_folder: Path) -> list[bytes]:
    """A row of the store."""
    return [json.dumps(_cell().to_json()).encode()]


def findings(folder: Path) -> list[bytes]:
    """A finding about a crash state with its explanation, and one about a guest that was lost."""
    return [json.dumps(finding.to_json()).encode() for finding in _findings(folder)]


def _findings(folder: Path) -> list[Finding]:
    path, base = folder / "made.pcr", folder / "base.img"
    path.write_bytes(recordings(folder)[0])
    base.write_bytes(bytes(DISK_SECTORS * SECTOR_BYTES))
    about = ("P5", "A is gone", "ext4-current", "UML 6.1", "cache", "w", WORKLOAD, "r-" + "0" * 16, "b-0")
    crash = intervals(Recording(path), base, "cache")[-1]
    instant = crash.started, crash.returned
    choices = (crash.index, ((0, 1),), (0,), 0)
    state = Finding("f-" + "0" * 16, *about, "r-/0/-", *choices, *instant, OBSERVATION, None, {"walk": True})
    lost = Finding(
        "f-" + "1" * 16,
        *about,
        state="",
        interval=0,
        choices=(),
        lost=(),
        torn=0,
        started=3,
        returned=2,
        observation=None,
        casualty=_LOST,
        recover={},
    )
    return [replace(state, explanation=explain(state, Recording(path), base)), lost]


def stores(folder: Path) -> list[bytes]:
    """The file of a store with a row of each sort."""
    store = Store(folder / "store")
    store.put_run("key", {"verdict": "holds"}, _findings(folder))
    store.put_cells([_cell()])
    store.close()
    return [(folder / "store" / DATABASE).read_bytes()]


def observations(_folder: Path) -> list[bytes]:
    """A report of the agent on a recovery, and one on a mount that failed."""
    failed: dict[str, Any] = {"mount_errno": 117, "helper": "no", "tree": None, "klog": []}
    return [json.dumps(report).encode() for report in (OBSERVATION, failed)]


def disk_events(_folder: Path) -> list[bytes]:
    """An event of a crash disk of each sort that has fields of its own, one an input."""
    outcome = events.Outcome(OBSERVATION, 1, 1, ((0, 1),), (0,), _LOST)
    reached, within = events.CertainCoverage(1, None, 3, 4), events.RecoveredState(0, (), None)
    interval = events.IntervalReport(
        0,
        (events.Instant(2, 1, 0),),
        pieces=1,
        components=1,
        states=2,
        covered=2,
        contents=2,
        recoveries=1,
        remembered=0,
        rechecks=0,
        outcomes=(outcome,),
        executions=((((0, 1),), 0),),
        left_out=None,
        reached=reached,
        within=within,
    )
    told = {
        "booted": events.BootEvent(0.5, None),
        "recorded": events.RecordingEvent(
            3,
            events.FailedOperation(1, 5),
            (events.Transcript(("done",), 0, ""),),
            events.GuestOutput("bad", "bad\nworse"),
        ),
        "interval": interval,
        "lost-guest": events.LostGuest(0, ((0, 1),), "it hangs", "", ""),
        "lost-at-work": LostAtWork("run", "it hangs", "", "", 1, 0),
        "executed": events.ExecutionReport(OBSERVATION, (), None),
        "spun": events.SpinEvent(events.Spin(0.5, 3)),
        "error": events.RequestFailure("input", "no", ""),
    }
    return [json.dumps({"event": name, **to_plain(event)}).encode() for name, event in told.items()]
