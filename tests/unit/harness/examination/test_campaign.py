"""A campaign whose time is over starts no machine, and what was not run is undecided."""

import time
from pathlib import Path

from postcrash.harness.examination.campaign import Crew, run_campaign
from postcrash.harness.examination.judges import judges_named
from postcrash.harness.guests.machine import MachineSettings
from postcrash.harness.progress import TerminalProgress
from postcrash.model import Verdict, parse_workload
from postcrash.reports.store.store import Store
from postcrash.targets import target_named

from .fake_machine import pretended_plan

NO_CREW = Crew(MachineSettings(Path("no kernel"), Path("no root")), 1)


def test_what_was_not_run_in_time_is_undecided_and_not_kept(tmp_path: Path) -> None:
    workload = parse_workload("creat a\nfsync a\n", "w")
    plan = pretended_plan(tmp_path, target_named("ext4-current"), workload, judges=judges_named(["mounts"]))
    store = Store(tmp_path / ".postcrash")
    with TerminalProgress(1) as progress:
        (result,) = run_campaign([plan], NO_CREW, store, progress, until=time.monotonic())
    store.close()
    assert {(ruling.verdict, ruling.reason) for ruling in result.rulings.values()} == {
        (Verdict.UNDECIDED, "it was not run: --time")
    }
    assert not result.recording
