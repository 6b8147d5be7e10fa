"""Supervisors: programs under which a target's workloads run, in guests that see this machine's files."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import postcrash
from postcrash.harness.errors import UsageError
from postcrash.harness.guests.binaries import find_binary
from postcrash.model import Workload
from postcrash.model.operation import PROGRAMS, RUN_UNFLUSHED, WATCH, Operation
from postcrash.targets import Mount

MOUNT_POINT = "/mnt"
"""Where guests have the target (harness/guests/agent)."""


def run_to_wire(mount: Mount, workload: Workload) -> dict[str, Any]:
    """What the agent gets to run `workload`.

    Raises InfrastructureError, and UsageError for flushes that are left out under a supervisor.

    A supervisor runs the programs of the workload. If there are no programs, it runs all operations after the set-up.
    """
    wire = {"mount": replace(mount, supervisor="").to_wire(), **workload.to_wire()}
    if not mount.supervisor:
        return wire
    network = "tun" if workload.runs_programs else "none"
    box = ["run", "--fs", MOUNT_POINT, *show_checkout(), "--network", network, "--"]
    supervisor = [str(find_binary(mount.supervisor)), *box]
    if workload.runs_programs:
        return {**wire, "ops": [_supervised(operation, supervisor).to_wire() for operation in workload.ops]}
    return {**wire, "supervisor": [*supervisor, str(find_binary("postcrash-agent")), "--perform", mount.fstype]}


def show_checkout() -> list[str]:
    """Options of xsync for its box, which has a /tmp of its own and would hide a checkout in /tmp."""
    checkout = Path(postcrash.__file__).resolve().parent.parent
    return ["--show", str(checkout)] if checkout.is_relative_to("/tmp") else []


def _supervised(operation: Operation, supervisor: Sequence[str]) -> Operation:
    if operation.word not in PROGRAMS:
        return operation
    if operation.word == RUN_UNFLUSHED:
        raise UsageError(f"{operation.word}: a supervisor answers flushes itself, so that none can be left out")
    command = shlex.join(["exec", *supervisor, "/bin/sh", "-c", operation.value])
    return replace(operation, word=WATCH, value=command)
