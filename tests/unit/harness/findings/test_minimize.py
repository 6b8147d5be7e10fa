"""What is not made smaller, and what a smaller finding must have in common with the first one."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash.harness.errors import InfrastructureError, UsageError
from postcrash.harness.findings import minimize as module
from postcrash.harness.findings.minimize import minimize
from postcrash.model import parse_workload
from postcrash.store.kernel_build import KernelBuild

from ..hunting.pretence import found, plan


def test_a_workload_that_runs_a_program_is_refused_and_the_program_is_not_run() -> None:
    ran = 'creat a\n---\nrun "rm a" 60\nsays done\nends\nsync\n'
    nothing: Any = None  # whatever runs or asks something fails on it
    plan: Any = SimpleNamespace(workload=parse_workload(ran, "ran"))
    finding: Any = SimpleNamespace(id="f-0123456789abcdef")
    with pytest.raises(UsageError, match=r"^f-0123456789abcdef: its workload runs a program"):
        minimize(finding, plan, nothing, nothing, nothing)


def test_a_crash_within_recovery_does_not_become_one_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge objects to both. Each is another bug."""
    nothing: Any = None
    asked = replace(plan(tmp_path), workload=parse_workload("creat a\ncreat b\n", "w"))
    once = found(asked, "it is gone", "r-0123456789abcdef")
    within = replace(once, id="f-0123456789abcdef", base="r-0123456789abcdef/0/-")
    machine: Any = SimpleNamespace(twice=lambda run: run())
    store: Any = SimpleNamespace(put_finding=lambda _: None)

    def shown(*findings: Any) -> None:
        result = SimpleNamespace(rulings={}, findings=findings)
        monkeypatch.setattr(module, "run_plan", lambda *_, **__: result)

    shown(once, within)
    assert minimize(within, asked, machine, store, nothing).finding.id == within.id
    assert minimize(once, asked, machine, store, nothing).finding.id == once.id
    shown(once)
    with pytest.raises(InfrastructureError, match="does not break durability any more"):
        minimize(within, asked, machine, store, nothing)


@pytest.mark.parametrize(("guest", "linked"), [("there", True), ("other kernel or modules", False)])
def test_what_another_guest_shows_is_not_linked_to_the_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guest: str, linked: bool
) -> None:
    """A report would be about the smaller finding. A kernel with other modules is another file system."""
    nothing: Any = None
    build = KernelBuild("a" * 64)
    asked = replace(plan(tmp_path), workload=parse_workload("creat a\n", "w"), guest=guest, built=build)
    shown = found(asked, "it is gone", "r-0123456789abcdef")
    sought = replace(shown, id="f-0123456789abcdef", guest="there", built=build)
    result = SimpleNamespace(rulings={}, findings=[shown])
    monkeypatch.setattr(module, "run_plan", lambda *_, **__: result)
    machine: Any = SimpleNamespace(twice=lambda run: run())
    kept: dict[str, Any] = {}
    store: Any = SimpleNamespace(put_finding=lambda finding: kept.update({finding.id: finding.minimal}))
    minimize(sought, asked, machine, store, nothing)
    assert kept == ({sought.id: shown.id} if linked else {}) | {shown.id: shown.id}
