"""With dm-log-writes, a recording is made only if the two recorders agree."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from postcrash._core import Recording
from postcrash.harness.errors import RecordersDisagreeError
from postcrash.harness.examination.recording import (
    AUTO,
    CRASH_DISK,
    DM_LOG_WRITES,
    order_of,
    record,
    recorder_named,
)
from postcrash.model import Workload, parse_workload
from postcrash.model.operation import RUN, Operation
from postcrash.targets import Mount

from .fake_machine import WRITE_AND_FLUSH, FakeLog, FakeMachine

WORKLOAD = parse_workload("creat a\n", "w")


def recorded(folder: Path, *, fua: bool) -> Recording:
    out = folder / "run.pcr"
    machine = FakeMachine(WRITE_AND_FLUSH, log=FakeLog(fua))
    record(machine, folder, Mount("ext4", ""), WORKLOAD, out, {}, held=None, recorder=DM_LOG_WRITES)  # type: ignore[arg-type]
    return Recording(out)


def test_the_recording_has_fua_and_says_so(tmp_path: Path) -> None:
    recording = recorded(tmp_path, fua=True)
    events = [("started", 0), ("write", 0, 0, 8, True, False), ("complete", 0), ("returned", 0, 0)]
    assert recording.events() == events
    metadata = json.loads(recording.metadata)
    assert (metadata["recorder"], metadata["device"]) == (DM_LOG_WRITES, recorder_named(DM_LOG_WRITES).device)


@pytest.mark.parametrize(("has_log_disk", "wanted"), [(True, DM_LOG_WRITES), (False, CRASH_DISK)])
def test_by_default_dm_log_writes_records_where_it_is_there(tmp_path: Path, has_log_disk: bool, wanted: str) -> None:
    machine = FakeMachine(WRITE_AND_FLUSH, log=FakeLog(fua=True) if has_log_disk else None)
    out = tmp_path / "run.pcr"
    record(machine, tmp_path, Mount("ext4", ""), WORKLOAD, out, {}, held=None, recorder=AUTO)  # type: ignore[arg-type]
    metadata = json.loads(Recording(out).metadata)
    assert (metadata["recorder"], metadata["device"]) == (wanted, recorder_named(wanted).device)


def test_what_does_not_agree_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        RecordersDisagreeError, match=r"w: .* do not agree on this run: flush at 3 of crash-disk belongs to"
    ):
        recorded(tmp_path, fua=False)
    assert not (tmp_path / "run.pcr").exists()


@pytest.mark.parametrize(("agrees_from", "is_recorded"), [(5, True), (7, False)])
def test_what_does_not_agree_is_run_again_and_then_given_up(
    tmp_path: Path, agrees_from: int, is_recorded: bool
) -> None:
    out, log = tmp_path / "run.pcr", FakeLog(fua=True, agrees_from=agrees_from)
    machine = FakeMachine(WRITE_AND_FLUSH, log=log)
    with nullcontext() if is_recorded else pytest.raises(RecordersDisagreeError):
        record(machine, tmp_path, Mount("ext4", ""), WORKLOAD, out, {}, held=None, recorder=AUTO)  # type: ignore[arg-type]
    assert (log.runs, out.exists()) == (6, is_recorded)  # twice each time, because the log must have the set-up too


def test_workloads_have_their_own_orders_of_completions_and_the_same_each_time() -> None:
    texts = ["creat a\n", "creat a\nfsync a\n", "mkdir a\n"]
    orders = [order_of(parse_workload(text, name), 1) for text in texts for name in ("first", "second")]
    assert orders[::2] == orders[1::2]
    assert len(set(orders)) == len(texts)
    assert order_of(WORKLOAD, 2) not in orders
    assert order_of(WORKLOAD, None) is None


def test_each_workload_is_recorded_in_its_own_order(tmp_path: Path) -> None:
    orders: list[object] = []

    class Machine(FakeMachine):
        def record(self, *given: Any, **more: Any) -> Workload:
            orders.append(given[5])
            base, mount, workload, out, metadata, _ = given
            return super().record(base, mount, workload, out, metadata, None, **more)

    record(
        *(Machine(WRITE_AND_FLUSH), tmp_path, Mount("ext4", ""), WORKLOAD, tmp_path / "run.pcr", {}),  # type: ignore[arg-type]
        held=1,
        recorder=CRASH_DISK,
    )
    assert orders == [order_of(WORKLOAD, 1)]
    assert json.loads(Recording(tmp_path / "run.pcr").metadata)["held"] == 1


def test_workloads_that_run_programs_have_one_order_wherever_these_are() -> None:
    program = Workload("w", (), (Operation(RUN, value="sh /tmp/x/put.sh"),))
    assert program.runs_programs
    assert order_of(program, 7) == 7
