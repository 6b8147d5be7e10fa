"""What is output of a machine's guests."""

from pathlib import Path

import pytest

from postcrash.harness.errors import OperationFailedError, UsageError
from postcrash.harness.guests.events import FailedOperation, GuestOutput, RecordingEvent, Transcript
from postcrash.harness.guests.machine import Machine, _warn_unconfined
from postcrash.model import WorkloadBuilder, parse_workload
from postcrash.targets import Mount


def test_the_user_is_told_once_that_guests_are_not_confined(capsys: pytest.CaptureFixture[str]) -> None:
    _warn_unconfined.cache_clear()
    for _ in range(2):
        _warn_unconfined("Operation not permitted")
    output = capsys.readouterr().err
    assert output.count("guests are not confined: Operation not permitted") == 1
    assert "SECURITY.md" in output


def failing(output: GuestOutput | None, *transcripts: Transcript) -> Machine:
    """A machine whose guest has run a workload in which something failed."""
    failed = None if transcripts else FailedOperation(1, 30)
    machine = Machine.__new__(Machine)
    event = RecordingEvent(3, failed, transcripts or None, output)
    machine._events = lambda *_, **__: iter([event])  # type: ignore[method-assign]
    return machine


OUTPUT = GuestOutput(
    "the kernel says: X: bad: the helper says: no room", "kernel log:\n<3>X: bad\n\noutput of the helper:\nno room"
)


def test_an_operation_that_fails_is_told_with_what_the_guest_said(tmp_path: Path) -> None:
    workload = WorkloadBuilder().begin().creat("A").append("A", 6000).build("short")
    for output, end in (
        (OUTPUT, f"EROFS on apfs: {OUTPUT.last}"),
        (None, "EROFS on apfs"),
        (GuestOutput("", "log"), "EROFS on apfs"),
    ):
        with pytest.raises(OperationFailedError) as raised:
            failing(output).record(tmp_path, Mount("apfs", ""), workload, tmp_path, {})
        assert str(raised.value).endswith(f"'append A 6000' failed in the guest with {end}")
        assert raised.value.evidence == (output.log if output else "")


def test_a_program_that_fails_is_told_with_what_the_guest_said(tmp_path: Path) -> None:
    workload = parse_workload("run put", "program")
    with pytest.raises(UsageError, match=rf"'put' ends with status 1 in the guest: no x: {OUTPUT.last}") as raised:
        failing(OUTPUT, Transcript((), 1, "no x\n")).record(tmp_path, Mount("apfs", ""), workload, tmp_path, {})
    assert raised.value.evidence == OUTPUT.log
