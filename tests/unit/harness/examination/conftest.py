"""Reports of a crash disk on an exploration."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from postcrash.harness.guests.events import ExplorationEnd, IntervalReport
from postcrash.targets import BaseImage, target_named

RECOVER = target_named("ext4-current").recovery(walk=True, fsck=False)
EXPLORED = ExplorationEnd(recoveries=0, seconds=0.0, memory_kib=0, disk_memory_kib=0)


def empty_base(folder: Path) -> BaseImage:
    """A base image of one block of zeros."""
    base = folder / "base.img"
    base.write_bytes(bytes(4096))
    return BaseImage(base, "b-0")


def interval_wire(*runs: tuple[Sequence[Sequence[int]], Any], **fields: Any) -> dict[str, Any]:
    """A crash interval's report with an outcome for each run: its choices, and what it showed (None: a lost guest)."""
    outcomes = [
        {"observation": shown, "states": "1", "executions": 1, "choices": choices, "lost": []}
        | ({} if shown else {"casualty": {"what": "the guest hangs", "console": "", "stacks": ""}})
        for choices, shown in runs
    ]
    executions = [(choices, number) for number, (choices, _) in enumerate(runs)]
    return {
        **{"index": 0, "instants": [{"event": 2, "started": 1, "returned": 0}], "pieces": 1, "components": 1},
        **{"states": "2", "covered": "2", "contents": "2", "recoveries": len(runs), "remembered": 0, "rechecks": 0},
        **{"outcomes": outcomes, "executions": executions, "left_out": None, "reached": None, **fields},
    }


def interval_report(*runs: tuple[Sequence[Sequence[int]], Any], **fields: Any) -> IntervalReport:
    """The same report, after it was read."""
    return IntervalReport.from_wire(interval_wire(*runs, **fields))
