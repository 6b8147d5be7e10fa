"""A failure of our own is not a verdict: its exit code is never that of VIOLATED or HOLDS."""

import errno
import subprocess
import sys
from pathlib import Path

import click
import pytest

from postcrash.harness.cli import main as cli
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.campaign import examination_in
from postcrash.harness.examination.result import Examination
from postcrash.model import ExitCode
from postcrash.store.store import Store, StoreError

pytestmark = pytest.mark.slow

FAILURES = [ZeroDivisionError("ours"), OSError(errno.ENOSPC, "full"), SystemExit(1)]
RUN = "from postcrash.harness.cli.main import main; main()"


@pytest.mark.parametrize("failure", FAILURES, ids=repr)
def test_what_nobody_caught_is_no_violation(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], failure: BaseException
) -> None:
    def fail(**_: object) -> None:
        raise failure

    monkeypatch.setattr(cli.cli, "main", fail)
    monkeypatch.setattr(sys, "set_int_max_str_digits", lambda _: None)  # it would stay so for the tests that follow
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == ExitCode.INFRASTRUCTURE
    assert "postcrash: " in capfd.readouterr().err


def test_a_disk_that_is_full_is_no_defect_wherever_that_shows(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/dev/shm/log")

    monkeypatch.setattr(cli.cli, "main", fail)
    monkeypatch.setattr(sys, "set_int_max_str_digits", lambda _: None)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = "postcrash: /dev/shm/log: no space left on the disk; what was there before is unharmed\n"
    assert (ended.value.code, capfd.readouterr().err) == (ExitCode.INFRASTRUCTURE, said)


@pytest.mark.parametrize(
    "failure",
    [click.UsageError("\x1b[31mno\x08"), UsageError("\x1b[31mno\x08"), ZeroDivisionError("\x1b[31mno\x08")],
    ids=lambda failure: f"{type(failure).__module__}.{type(failure).__name__}",
)
def test_no_error_moves_the_cursor(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], failure: Exception
) -> None:
    def fail(**_: object) -> None:
        raise failure

    monkeypatch.setattr(cli.cli, "main", fail)
    monkeypatch.setattr(sys, "set_int_max_str_digits", lambda _: None)
    with pytest.raises(SystemExit):
        cli.main()
    said = capfd.readouterr().err
    assert r"no\x08" in said
    assert said.replace("\n", "").isprintable()


@pytest.mark.parametrize("arguments", [["--help"], ["kernels", "--help"]], ids=" ".join)
def test_a_full_disk_behind_standard_output_is_told(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-c", RUN, *arguments]
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ran.returncode == ExitCode.INFRASTRUCTURE
    assert "not all results could be written" in ran.stderr


@pytest.mark.parametrize("arguments", [["explain", "f-0123456789abcdef"], ["check", "absent", "--target", "xfs"]])
def test_an_error_that_cannot_be_told_is_no_violation(tmp_path: Path, arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-c", RUN, *arguments]
        ran = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=full, check=False)
    assert ran.returncode == ExitCode.INFRASTRUCTURE


def test_each_thing_that_is_wrong_in_a_gate_s_file_has_a_line(tmp_path: Path) -> None:
    (tmp_path / "postcrash.toml").write_text('speed = 3\ntargets = "x"\n[parts.a]\nhunt = 9\n')
    command = [sys.executable, "-c", RUN, "gate"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == ExitCode.USAGE
    assert [line.rpartition(", found")[0] or line for line in ran.stderr.splitlines()] == [
        "postcrash: postcrash.toml:1: speed: there is no such setting",
        "postcrash: postcrash.toml:2: targets: this must be a list",
        "postcrash: postcrash.toml:4: parts.a.hunt: Input should be 'default', 1, 2 or 3",
    ]


@pytest.mark.parametrize(("field", "value"), [("states", "many"), ("rulings", "none"), ("recording", None)])
def test_a_run_that_is_not_what_was_put_there_is_damage(tmp_path: Path, field: str, value: str | None) -> None:
    whole = Examination().to_json()
    broken = {name: known for name, known in {**whole, field: value}.items() if known is not None}
    store = Store(tmp_path)
    assert examination_in(whole, store) == Examination()
    with pytest.raises(StoreError, match="damaged"):
        examination_in(broken, store)
