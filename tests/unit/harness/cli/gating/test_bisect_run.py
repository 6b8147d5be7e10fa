"""What `git bisect run` is told. The command that is bisected is a script that ends as it is told."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from postcrash.harness.cli.main import cli


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands in for postcrash: writes down its arguments, and ends with the last of them."""
    script = tmp_path / "postcrash"
    script.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/asked\nfor last; do :; done\nexit $last\n')
    script.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(script), "given"])
    monkeypatch.setattr(sys, "orig_argv", [str(script), "given"])
    return tmp_path


@pytest.mark.parametrize(
    ("status", "answer"), [(0, 0), (1, 1), (2, 128), (3, 125), (4, 128), (5, 128), (6, 125), (77, 128)]
)
def test_exit_codes(program: Path, status: int, answer: int) -> None:
    asked = ["--store", "s", "bisect-run", "--build", "true", "--", "check", "--flag", str(status)]
    assert CliRunner().invoke(cli, asked, standalone_mode=False).return_value == answer
    assert (program / "asked").read_text() == f"--store s check --flag {status}\n"


def test_what_does_not_build_is_skipped_and_not_run(program: Path) -> None:
    asked = ["bisect-run", "--build", "exit 2", "--", "check", "0"]
    assert CliRunner().invoke(cli, asked, standalone_mode=False).return_value == 125
    assert not (program / "asked").exists()


def test_its_own_errors_end_the_bisection_and_say_nothing_of_the_commit(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert CliRunner().invoke(cli, ["bisect-run"], standalone_mode=False).return_value == 128
    monkeypatch.setattr(sys, "orig_argv", [str(program / "absent"), "given"])
    assert CliRunner().invoke(cli, ["bisect-run", "--", "check", "0"], standalone_mode=False).return_value == 128
