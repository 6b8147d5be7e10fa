"""`postcrash doctor`: is everything here that the other commands need?"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial

import click
from rich.console import Console

from postcrash.harness.commands.options import json_option
from postcrash.harness.errors import HarnessError
from postcrash.harness.guest_root import has_program
from postcrash.harness.machine import Machine
from postcrash.harness.output import write_json
from postcrash.harness.session import Session
from postcrash.model import ExitCode
from postcrash.targets import TARGETS, Target


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor's report."""

    name: str
    ok: bool
    detail: str


@click.command()
@json_option
@click.pass_obj
def doctor(session: Session, json_file: str | None) -> int:
    """Look for everything that is needed, and boot a guest.

    \b
    Each line is something that was tried, not guessed. Exit code 0 if all is well, 3 if something is missing.
    """
    checks = [
        _try("guest kernel", lambda: f"{session.kernel.label} ({session.kernel.path})"),
        _try("guest root", lambda: str(session.root)),
        _try("guest boots", lambda: _boot(session)),
        *(_try(f"target {target.name}", partial(_target, session, target)) for target in TARGETS),
        _try("store", lambda: str(session.store.folder)),
    ]
    ok = all(check.ok for check in checks)
    write_json(json_file, {"ok": ok, "checks": [asdict(check) for check in checks]})
    if json_file != "-":
        console = Console(soft_wrap=True)
        for check in checks:
            mark = "[green]✓[/]" if check.ok else "[red]✗[/]"
            console.print(f"{mark} {check.name}: ", end="")
            console.print(check.detail, markup=False, highlight=False)
    return ExitCode.HOLDS if ok else ExitCode.INFRASTRUCTURE


def _try(name: str, probe: Callable[[], str]) -> Check:
    try:
        return Check(name, True, probe())
    except HarnessError as error:
        return Check(name, False, str(error))


def _boot(session: Session) -> str:
    started = time.monotonic()
    with Machine(session.settings):
        return f"in {time.monotonic() - started:.1f} s"


def _target(session: Session, target: Target) -> str:
    base = session.base(target)
    fsck = "" if has_program(session.root, target.fsck[0]) else f"; {target.fsck[0]} is missing, `check` needs it"
    return f"{base.id}, {target.size_mib} MiB{fsck}"
