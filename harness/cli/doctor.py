"""`postcrash doctor`: try whether everything is here that the other commands need."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from postcrash._core import Recording
from postcrash.harness.cli.options import json_option, kernel_options
from postcrash.harness.errors import HarnessError, InfrastructureError
from postcrash.harness.examination.judges import all_judges, recoveries_for
from postcrash.harness.examination.recording import DM_LOG_WRITES, record, settings_for_recorders
from postcrash.harness.examination.session import Session
from postcrash.harness.files.output import write_json
from postcrash.harness.files.places import cache_folder
from postcrash.harness.files.scratch import scratch
from postcrash.harness.guests.boot import why_no_boot
from postcrash.harness.guests.engine import LIBRARY, qemu_program, why_no_kvm
from postcrash.harness.guests.guest_root import guest_root
from postcrash.harness.guests.kernels.build import build_of
from postcrash.harness.guests.kernels.kernel import Kernel, find_kernel, is_static
from postcrash.harness.guests.kernels.stock import Stock, StockedKernel, missing_in
from postcrash.harness.guests.machine import Machine
from postcrash.model import ExitCode, WorkloadBuilder
from postcrash.recorders.events import WriteEvent, recording_events
from postcrash.targets import TABLE_TARGETS, TARGETS, Target


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor's report. What is not `needed` may be missing."""

    name: str
    ok: bool
    detail: str
    needed: bool = True


@click.command()
@kernel_options
@json_option
@click.pass_obj
def doctor(session: Session, json_file: str | None) -> int:
    """Look for everything that is needed, and boot a guest.

    Each line is something that was tried, not guessed. A line with - names something that is missing and that most
    commands do without. Other engines than the one in use (--engine, --kernel), targets outside the table, or single
    commands such as `trace` may need it. Exit code 0 if all is well, 3 if something that is needed is missing.

    \b
    Examples:
      postcrash doctor
      postcrash doctor --engine qemu --json -
    """
    checks = [
        _try("user-mode Linux", lambda: _about(find_kernel()), needed=False),
        _try("user-mode Linux boots", _uml_boots, needed=False),
        _try("user-mode Linux is confined", _confined, needed=False),
        _try("QEMU", lambda: str(qemu_program()), needed=False),
        _try("KVM", _kvm, needed=False),
        _try("strace", _strace, needed=False),
        *_kernels(),
        _try("guest kernel", lambda: _about(session.kernel)),
        _try("guest root", lambda: str(session.root)),
        _try("guest boots", lambda: _boot(session)),
        _try("blktrace", lambda: _blktrace(session), needed=False),
        _try(f"recorder {DM_LOG_WRITES}", lambda: _log_writes(session), needed=False),
        *(
            _try(f"target {target.name}", partial(_target, session, target), needed=target in TABLE_TARGETS)
            for target in TARGETS
        ),
        _try("store", lambda: str(session.store.folder)),
    ]
    ok = all(check.ok for check in checks if check.needed)
    write_json(json_file, {"ok": ok, "checks": [asdict(check) for check in checks]})
    if json_file != "-":
        console = Console(soft_wrap=True)
        for check in checks:
            mark = "[green]✓[/]" if check.ok else "[red]✗[/]" if check.needed else "[yellow]-[/]"
            console.print(f"{mark} {check.name}: ", end="")
            console.print(check.detail, markup=False, highlight=False)
    return ExitCode.HOLDS if ok else ExitCode.INFRASTRUCTURE


def _try(name: str, probe: Callable[[], str], *, needed: bool = True) -> Check:
    try:
        return Check(name, True, probe(), needed)
    except HarnessError as error:
        return Check(name, False, str(error), needed)


def _uml_boots() -> str:
    """Try to boot now, whatever was found before, so that later commands know the answer."""
    kernel = find_kernel()
    reason = why_no_boot(kernel, guest_root(kernel, cache_folder()), cache_folder(), fresh=True)
    if reason is not None:
        raise InfrastructureError(reason)
    if is_static(kernel.path):
        return f"without {LIBRARY}: it is linked statically, so that nothing can be preloaded"
    return f"with {LIBRARY}"


def _confined() -> str:
    """Whether the crash disk can take from user-mode Linux what a guest does not need (SECURITY.md)."""
    if os.geteuid() != 0:
        raise InfrastructureError("only root can confine it: a guest has your rights (SECURITY.md)")
    made = subprocess.run(
        ["unshare", "--mount", "--net", "--ipc", "--uts", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        reason = made.stderr.strip().splitlines()[-1:] or ["unshare fails"]
        raise InfrastructureError(f"{reason[0]}: a guest has root's rights (SECURITY.md)")
    return "no network, no rights, and nothing of the host but what it reads"


def _about(kernel: Kernel) -> str:
    return f"{kernel.label} ({kernel.known_as}; {build_of(kernel, cache_folder()).description})"


def _strace() -> str:
    program = shutil.which("strace")
    if program is None:
        raise InfrastructureError("not installed; `postcrash trace` needs it")
    return program


def _kvm() -> str:
    images = Stock(cache_folder()).images()
    if not images:
        raise InfrastructureError("not tried, because there is no kernel to boot: run  postcrash kernels fetch")
    reason = why_no_kvm(qemu_program(), images[-1].path, cache_folder())
    if reason is not None:
        raise InfrastructureError(f"{reason}; QEMU emulates the CPU instead (TCG), which is slower")
    return f"{images[-1].name} boots on it"


def _kernels() -> list[Check]:
    try:
        stock = Stock(cache_folder()).all()
    except HarnessError as error:
        return [Check("kernels", False, str(error), needed=False)]
    return [_try(f"kernel {kernel.name}", partial(_stocked, kernel), needed=False) for kernel in stock]


def _stocked(kernel: StockedKernel) -> str:
    missing = missing_in(kernel)
    if missing:
        raise InfrastructureError(f"its configuration lacks {', '.join(missing)}")
    return f"{kernel.engine}, {kernel.origin}" + ("; its configuration is not known" if missing is None else "")


def _boot(session: Session) -> str:
    started = time.monotonic()
    with Machine(session.settings):
        return f"in {time.monotonic() - started:.1f} s"


def _blktrace(session: Session) -> str:
    base = session.base(TARGETS[0])
    with scratch() as folder, Machine(session.settings) as machine:
        out, trace = Path(folder, "recording.pcr"), Path(folder, "trace")
        workload = WorkloadBuilder().sync().build("sync")
        machine.record(base.path, TARGETS[0].mount, workload, out, {}, blktrace=trace)
        return f"{trace.stat().st_size} bytes of one run"


def _log_writes(session: Session) -> str:
    """Record a small workload with dm-log-writes."""
    target, workload = TARGETS[0], WorkloadBuilder().begin().creat("A").fsync("A").build("doctor").with_tail()
    base = session.base(target)
    settings = settings_for_recorders(session.settings, [DM_LOG_WRITES])
    with Machine(settings) as machine, scratch() as folder:
        out = folder / "recording"
        record(machine, base.path, target.mount, workload, out, {}, held=None, recorder=DM_LOG_WRITES)
        fua = sum(isinstance(event, WriteEvent) and event.fua for event in recording_events(Recording(out)))
        return f"{fua} FUA writes seen on {target.name}"


def _target(session: Session, target: Target) -> str:
    session.require(target, recoveries_for(all_judges(), target))
    base = session.base(target)
    return f"{base.id}, {target.size_mib} MiB"
