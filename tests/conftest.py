"""Options and checks of the whole test suite: `--require-vm`, `--full`, and the guard against a stale Rust build.

A test, or a case of one, with the marker `full` takes long and resembles others. It runs with `--full` only.

Tests under tests/vm run real guests. If the machine cannot run guests, these tests skip; with `--require-vm` they fail.
A test that calls `pytest.skip` itself is treated in the same way: a test that did not run is never reported as passed.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # a test must not fail because the machine is busy
settings.load_profile("untimed")

# A shell starts background jobs with SIGINT ignored, and programs that tests start would inherit this. Then Ctrl-C
# could not be tested.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent
VM_TESTS = ROOT / "tests/vm"
STYLE_TESTS = ROOT / "tests/style"
FOLDER_MARKERS = {VM_TESTS: "guest", ROOT / "tests/canaries": "planted"}
LONGEST = (
    "vm/test_tutorials.py",
    *("canaries/test_core_mutants.py", "vm/test_virtual_time.py", "vm/test_audit.py", "vm/test_checkers.py"),
    *("vm/test_gate.py", "vm/test_repair.py", "vm/test_xsync.py", "vm/test_engines.py", "vm/test_two_disks.py"),
    *("vm/test_flush_runs.py", "vm/test_hunt.py", "vm/test_recorders_agree.py", "vm/test_vulnerabilities.py"),
    *("vm/test_kills.py", "vm/test_cli.py", "vm/test_findings.py", "vm/test_report.py"),
    *("vm/test_planted_faults.py", "vm/test_table.py", "vm/test_pytest_plugin.py", "vm/test_needs.py"),
    *("vm/test_instants.py", "vm/test_minimal.py", "vm/test_bundles.py", "vm/test_synchrony.py", "vm/test_enough.py"),
    *("vm/test_synchrony_canaries.py", "vm/test_crash_in_recovery.py", "vm/test_ci_files.py", "vm/test_certify.py"),
    *("vm/test_promises.py", "vm/test_bisect_run.py", "vm/test_lost_workloads.py", "vm/test_terminal.py"),
)
"""Files that take minutes. They run first, so that no worker is left with one of them when the others have ended."""
GUEST_COMMANDS = ["linux.uml", "qemu-system-x86_64", "mkfs.ext4"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--require-vm", action="store_true", help="a guest test that cannot run fails instead of skipping")
    parser.addoption("--full", action="store_true", help="every target and workload where tests take a choice of them")
    parser.addoption("--allow-stale", action="store_true", help="run with a Rust build older than its sources")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "full: runs with --full only")
    config.addinivalue_line("markers", "slow: starts other programs, or compares with brute force")
    config.addinivalue_line("markers", "guest: needs a guest; all of tests/vm")
    config.addinivalue_line("markers", "planted: builds with a planted fault; all of tests/canaries")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for folder, marker in FOLDER_MARKERS.items():
            if item.path.is_relative_to(folder):
                item.add_marker(marker)
    places = {ROOT / "tests" / file: place for place, file in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
    if config.option.full:
        return
    left_out = [item for item in items if item.get_closest_marker("full")]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish(session: pytest.Session) -> None:
    options = session.config.option
    if hasattr(session.config, "workerinput"):  # pytest-xdist: the process that started the workers has checked
        return
    needs_build = bool(options.numprocesses) or any(not item.path.is_relative_to(STYLE_TESTS) for item in session.items)
    if not needs_build or options.allow_stale or options.collectonly:
        return
    check = subprocess.run([ROOT / "tools/setup", "is-built"], stderr=subprocess.PIPE, encoding="utf-8", check=False)
    if check.returncode != 0:
        pytest.exit(f"{check.stderr.strip()}  (or pytest --allow-stale)", returncode=3)


def why_no_guest() -> str | None:
    """Why no guest can run on this machine. None if one can."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    missing = [command for command in GUEST_COMMANDS if shutil.which(command, path=path) is None]
    return f"not installed: {', '.join(missing)}: run  make setup" if missing else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.path.is_relative_to(VM_TESTS) and (reason := why_no_guest()):
        pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if item.config.option.require_vm and item.path.is_relative_to(VM_TESTS):
        _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if collector.config.option.require_vm and collector.path.is_relative_to(VM_TESTS):
        _fail_if_skipped(report)
    return report


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"with --require-vm a guest test must run. {reason}"
