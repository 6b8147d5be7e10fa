"""What is sent to a guest of which the target has a supervisor."""

import shlex
from pathlib import Path

import pytest

import postcrash
from postcrash.harness.guests import supervisor
from postcrash.harness.guests.binaries import find_binary
from postcrash.harness.guests.supervisor import run_to_wire
from postcrash.model import parse_workload
from postcrash.targets import target_named

OPERATIONS = parse_workload("creat a\n---\nappend a 1\nfsync a\ncommit\n", "w")
PROGRAM = parse_workload('run "echo set-up"\n---\nrun "echo \'it is\'" 9\nsync\n', "w")


def test_without_a_supervisor_nothing_changes() -> None:
    mount = target_named("ext4-journal").mount
    assert run_to_wire(mount, PROGRAM) == {"mount": mount.to_wire(), **PROGRAM.to_wire()}


def test_operations_are_performed_under_it() -> None:
    mount = target_named("xsyncfs").mount
    wire = run_to_wire(mount, OPERATIONS)
    assert wire["mount"] == target_named("ext4-journal").mount.to_wire()
    assert {name: wire[name] for name in ("setup", "ops")} == OPERATIONS.to_wire()
    assert wire["supervisor"][:4] == [str(find_binary("xsync")), "run", "--fs", "/mnt"]
    assert wire["supervisor"][-3:] == [str(find_binary("postcrash-agent")), "--perform", "ext4"]


def test_a_program_is_run_by_it_and_set_up_without_it() -> None:
    wire = run_to_wire(target_named("xsyncfs").mount, PROGRAM)
    assert "supervisor" not in wire
    assert wire["setup"] == PROGRAM.to_wire()["setup"]
    program, sync = wire["ops"]
    words = shlex.split(program["value"])
    assert (program["op"], program["seconds"], sync) == ("watch", 9, {"op": "sync"})
    assert words[:5] == ["exec", str(find_binary("xsync")), "run", "--fs", "/mnt"]
    assert words[-3:] == ["/bin/sh", "-c", "echo 'it is'"]


@pytest.mark.parametrize(("checkout", "is_shown"), [("/tmp/a/checkout", True), ("/srv/checkout", False)])
def test_a_checkout_in_tmp_is_shown(monkeypatch: pytest.MonkeyPatch, checkout: str, is_shown: bool) -> None:
    monkeypatch.setattr(postcrash, "__file__", f"{checkout}/postcrash/__init__.py")
    monkeypatch.setattr(supervisor, "find_binary", Path)
    words = run_to_wire(target_named("xsyncfs").mount, OPERATIONS)["supervisor"]
    assert (f"--show {checkout}" in shlex.join(words)) == is_shown
