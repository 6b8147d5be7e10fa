"""`postcrash needs` with several applications: one that cannot be asked is named, and the others are asked."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from postcrash.harness.cli.main import cli
from postcrash.harness.errors import UsageError

pytestmark = pytest.mark.slow

MESSAGE = "the sandbox lacks a program that the check runs"


def asked(folder: Path, *names: str) -> Result:
    (folder / "good.toml").write_text('run = "echo a >b"\ncheck = "true"\n')
    (folder / "bad.toml").write_text('run = "echo a >b"\ncheck = "no-such-program"\n')
    (folder / "mine.list").write_text("".join(f"{folder}/{name}.toml\n" for name in names))
    return CliRunner().invoke(
        cli, ["--store", str(folder / "s"), "needs", str(folder / "mine.list"), "--json", str(folder / "told.json")]
    )


def test_the_others_are_asked(tmp_path: Path) -> None:
    ended = asked(tmp_path, "bad", "good")
    assert isinstance(ended.exception, UsageError)
    assert str(ended.exception).startswith(f"1 of 2 applications could not be asked: bad: {MESSAGE}")
    assert f"left out: bad: {MESSAGE}" in ended.stderr
    answers = json.loads((tmp_path / "told.json").read_text())["needs"]
    assert [answer["application"] for answer in answers] == ["good"]


def test_of_one_it_is_said_once(tmp_path: Path) -> None:
    ended = asked(tmp_path, "bad")
    assert str(ended.exception).startswith(f"bad: {MESSAGE}")
    assert "left out" not in ended.stderr
