"""A machine: one crash disk process with its guest, and the requests that it answers.

The messages are those of recorders/crashdisk/src/control.rs.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Self, TypeVar

from postcrash.harness.budget import Budget
from postcrash.harness.errors import (
    BootError,
    CrashDiskEndedError,
    GuestLostError,
    HarnessError,
    InfrastructureError,
    LostAtWork,
    OperationFailedError,
    UsageError,
    errno_name,
)
from postcrash.harness.files.output import say
from postcrash.harness.files.scratch import ScratchFolder
from postcrash.harness.guests.binaries import find_binary
from postcrash.harness.guests.cpu_pinning import PinnedCpu
from postcrash.harness.guests.engine import LIBRARY, Engine, Uml
from postcrash.harness.guests.events import (
    BootEvent,
    ExecutionReport,
    ExplorationEnd,
    ExplorationEvent,
    FailedOperation,
    GuestOutput,
    LostGuest,
    RecordingEvent,
    RequestFailure,
    Spin,
    SpinEvent,
    Transcript,
    read_event,
)
from postcrash.harness.guests.kernels.kernel import is_static
from postcrash.harness.guests.supervisor import run_to_wire
from postcrash.harness.wire import Message
from postcrash.model import Workload
from postcrash.model.argument import LINE_BYTES_MAX
from postcrash.model.operation import PROGRAMS
from postcrash.model.validation import shown
from postcrash.store.json_codec import Json
from postcrash.targets import Mount, RecoveryKind

M = TypeVar("M", bound=Message)
_TERMINATION_TIMEOUT_S = 5
_NO_OUTPUT = GuestOutput("", "")


@cache
def _warn_unconfined(reason: str) -> None:
    """Tell the user, once for each reason."""
    say(f"guests are not confined: {reason}. A kernel that is taken over has your rights (SECURITY.md)")


@dataclass(frozen=True, slots=True)
class MachineSettings:
    """How guests are started. `root` is a folder for UML, an initramfs for QEMU.

    `disk_mib` is the size of the test disk that they see; images may be smaller. `given` is the file as the user
    knows it, if `kernel` was made from it.
    """

    kernel: Path
    root: Path
    engine: Engine = field(default_factory=Uml)
    disk_mib: int = 1024
    command_timeout_s: float = 30.0
    plain_disk: Path | None = None
    log_disk: bool = False
    """Guests have a disk where dm-log-writes can log. Their kernel has dm-log-writes."""
    given: Path | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """What is explored: a recording, the base image that it was made on, and the device model."""

    recording: Path
    base: Path
    model: str

    def to_wire(self) -> dict[str, str]:
        """The source as in a request. Its paths are absolute."""
        return {"recording": str(self.recording.absolute()), "base": str(self.base.absolute()), "model": self.model}


class Machine:
    """A guest that runs workloads and recovers crash states. Use it in a `with` statement.

    Every method raises InfrastructureError if the machine fails, and UsageError if a request cannot be carried out.
    A lost guest is replaced, and its work is tried once more. If the second guest is lost too, GuestLostError is
    raised. CrashDiskEndedError is raised if the crash disk's process is gone; then the machine is of no further use.
    """

    def __init__(self, settings: MachineSettings) -> None:
        self._settings = settings
        self._work = ScratchFolder()
        self._log = self._work.path / "log"
        self._lost: list[LostAtWork] = []
        try:
            self._process = subprocess.Popen(
                [find_binary("crashdisk")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0
            )
        except (InfrastructureError, OSError) as error:
            self._work.remove()
            raise InfrastructureError(str(error)) from error
        self._pinned_cpu = PinnedCpu()

    def __enter__(self) -> Self:
        try:
            self.boot()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the guest and its disk. This can be called from another thread, and twice."""
        self._process.terminate()
        try:
            self._process.wait(_TERMINATION_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._pinned_cpu.close()
        self._work.remove()

    @property
    def has_log_disk(self) -> bool:
        """Whether dm-log-writes can record its runs."""
        return self._settings.log_disk

    def take_lost(self) -> list[LostAtWork]:
        """The guests lost since the last call, oldest first, except guests lost in the recovery of crash states."""
        lost, self._lost = self._lost, []
        return lost

    def boot(self) -> float:
        """Start the guest. Returns the seconds that it took. BootError if it does not come up."""
        try:
            return self._boot()
        except BootError as error:
            kernel, hint = self._settings.kernel, ""
            if isinstance(self._settings.engine, Uml) and is_static(kernel):
                hint = f": it is linked statically, so that {LIBRARY} cannot be preloaded, and CPUs with AMX need that"
            raise BootError(f"{self._settings.given or kernel} does not boot: {error}{hint}", error.evidence) from error

    def _boot(self) -> float:
        settings = self._settings
        booted = self._request(
            BootEvent,
            "boot",
            engine=settings.engine.to_wire(),
            kernel=str(settings.kernel),
            root=str(settings.root),
            work=str(self._work.path),
            memory_mib=settings.engine.memory_mib,
            disk_sectors=settings.disk_mib * 2048,
            cpu=self._pinned_cpu.cpu,
            boot_timeout_s=settings.engine.boot_timeout_s,
            command_timeout_s=settings.command_timeout_s,
            plain_disk=str(settings.plain_disk) if settings.plain_disk else None,
            log_disk=str(self._log) if settings.log_disk else None,
        )
        if booted.unconfined is not None:
            _warn_unconfined(booted.unconfined)
        return booted.seconds

    def record(
        self,
        base: Path,
        mount: Mount,
        workload: Workload,
        out: Path,
        metadata: Json,
        held: int | None = None,
        *,
        blktrace: Path | None = None,
        log: Path | None = None,
        log_set_up: bool = True,
    ) -> Workload:
        """Run `workload` on `base` and write the recording to `out`. Returns it as it was run, with what programs said.

        OperationFailedError if an operation fails, UsageError if a program does.

        With `held`, the disk completes writes only when the guest stands still, in an order drawn from that seed.
        With `blktrace`, the kernel's own trace of the requests is written to that file (tests/blktrace.py reads it).
        With `log`, dm-log-writes stands above the crash disk, and its log is copied to the file `log`. This needs a log
        disk. Without `log_set_up` the log begins where the set-up has been made durable.
        """
        if log is not None:
            self._log.write_bytes(b"")
        recording = self._request(
            RecordingEvent,
            "record",
            base=str(base.absolute()),
            out=str(out.absolute()),
            run={**run_to_wire(mount, workload), "log_writes": log is not None, "log_set_up": log_set_up},
            metadata=json.dumps(metadata),
            held=held,
            blktrace=str(blktrace.absolute()) if blktrace else None,
        )
        output = recording.output or _NO_OUTPUT
        ran = _as_run(workload, recording.transcripts, output)
        if recording.failed is not None:
            raise _failure(ran, recording.failed, mount.fstype, output)
        if log is not None:
            shutil.copyfile(self._log, log)
        return ran

    def record_recovery(
        self, image: Path, recover: RecoveryKind, out: Path, started: int, returned: int, metadata: Json
    ) -> None:
        """Recover the disk `image` and write what the recovery wrote to the recording `out`.

        Throughout this recording, `started` operations have started and `returned` have returned.
        """
        self._request(
            RecordingEvent,
            "record-recovery",
            base=str(image.absolute()),
            out=str(out.absolute()),
            recover=recover.to_wire(),
            marks={"started": started, "returned": returned},
            metadata=json.dumps(metadata),
        )

    def explore(
        self,
        source: Source,
        recover: RecoveryKind,
        budget: Budget,
        *,
        recheck_share: float = 0.02,
        seed: int = 1,
        brute_force: bool = False,
        memo: bool = True,
        intervals: list[int] | None = None,
        depth: int = 1,
    ) -> Iterator[ExplorationEvent]:
        """Explore every crash interval. `seed` chooses the random states and the recoveries that are run again.

        With `memo`, a state is not run if its recovery would read what an earlier one in this machine has read. With
        `brute_force`, all states are run. With `depth` 2, the intervals of each crash state's recovery are explored
        too.

        Yields events, `ExplorationEnd` at the end. The report on an interval of a recovery names the recovered state in
        `within`. It comes before the report on that state's own interval.
        """
        events = self._events(
            "explore",
            **source.to_wire(),
            recover=recover.to_wire(),
            recoveries_max=budget.recoveries,
            seconds_max=budget.seconds,
            bound=budget.bound,
            samples=budget.samples,
            recheck_share=recheck_share,
            seed=seed,
            brute_force=brute_force,
            memo=memo and not brute_force,
            intervals=intervals,
            depth=depth,
        )
        for event in events:
            yield _expected(ExplorationEvent, event)
            if isinstance(event, ExplorationEnd):
                return

    def execute(
        self, source: Source, interval: int, choices: Sequence[tuple[int, int]], recover: RecoveryKind
    ) -> ExecutionReport:
        """Recover one crash state."""
        return self._request(
            ExecutionReport,
            "execute",
            **source.to_wire(),
            interval=interval,
            choices=choices,
            recover=recover.to_wire(),
        )

    def spin(self, device: str, recover: RecoveryKind, count: int) -> Spin:
        """Recover the guest's own `device` `count` times."""
        return self._request(SpinEvent, "spin", device=device, recover=recover.to_wire(), count=count).result

    def _request(self, answer: type[M], request: str, **fields: object) -> M:
        events = self._events(request, **fields)
        return next(_expected(answer, event) for event in events if not isinstance(event, LostGuest))

    def _events(self, request: str, **fields: object) -> Iterator[Message]:
        """Send a request and yield the events that follow, without end. A `RequestFailure` is raised as an error."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"request": request, **fields}) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise CrashDiskEndedError("the crash disk process has ended") from error
        for line in self._process.stdout:
            match read_event(line):
                case LostAtWork() as lost:
                    self._lost.append(lost)
                case RequestFailure() as failure:
                    raise self._error(request, failure)
                case event:
                    yield event
        raise CrashDiskEndedError("the crash disk process has ended")

    def _error(self, request: str, failure: RequestFailure) -> HarnessError:
        if failure.kind == "lost" and self._lost:
            return GuestLostError(self._lost[-1])
        kind = UsageError if failure.kind == "input" else BootError if request == "boot" else InfrastructureError
        return kind(failure.message, evidence=failure.console)


def _as_run(workload: Workload, transcripts: tuple[Transcript, ...] | None, output: GuestOutput) -> Workload:
    """The workload with what its programs said. UsageError if one failed, or said what no workload can hold."""
    if transcripts is None:
        return workload
    programs = [operation.value for operation in workload.operations if operation.word in PROGRAMS]
    for command, transcript in zip(programs, transcripts, strict=False):
        if transcript.status:
            errors = transcript.errors.strip() or "it wrote nothing to its standard error"
            message = f"{shown(command)} ends with status {transcript.status} in the guest: {errors}"
            raise UsageError(_with_last(message, output), evidence=output.log)
        for line in transcript.lines:
            if not line.isprintable() or "\ufffd" in line or len(line.encode()) > LINE_BYTES_MAX:
                expected = f"printable text of at most {LINE_BYTES_MAX} bytes"
                raise UsageError(f"{shown(command)} says a line that is not {expected}: {shown(line)}")
    return workload.as_run([transcript.lines for transcript in transcripts])


def _with_last(message: str, output: GuestOutput) -> str:
    return f"{message}: {output.last}" if output.last else message


def _failure(ran: Workload, failure: FailedOperation, fstype: str, output: GuestOutput) -> OperationFailedError:
    """The error that says which operation failed, and how."""
    failed = ran.operations[failure.operation]
    name = errno_name(failure.errno)
    message = f"{ran.name}: line {failed.line}: '{failed}' failed in the guest with {name} on {fstype}"
    word = " ".join(filter(None, (failed.word, failed.mode)))
    error = OperationFailedError(
        _with_last(message, output), word, failure.errno, failure.operation, evidence=output.log
    )
    error.variant = failed.variant
    return error


def _expected(kind: type[M], event: Message) -> M:
    if not isinstance(event, kind):
        raise InfrastructureError(f"the crash disk sent an event that was not asked for: {shown(event)}")
    return event
