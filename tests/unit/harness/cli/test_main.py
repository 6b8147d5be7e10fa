"""The outermost command: its help shows every command once, and a name that is none is told with the nearest one."""

import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from postcrash.harness.cli.main import cli
from postcrash.harness.findings.last_finding import id_named, keep_last
from postcrash.store.store import NotInStoreError, Store


def test_the_help_shows_every_command_once_and_cuts_no_sentence() -> None:
    shown = CliRunner().invoke(cli, ["--help"]).output
    sections = shown[shown.index("Is everything here:") :]
    assert sorted(re.findall(r"^  (\S+) ", sections, re.MULTILINE)) == cli.list_commands(click.Context(cli))
    assert "..." not in sections
    assert re.findall(r"^\S.*:$", sections, re.MULTILINE)[:2] == ["Is everything here:", "Judge a file system:"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gat", "unknown command 'gat', did you mean 'gate'? (known: doctor, kernels, check, "),
        ("zzz", "unknown command 'zzz' (known: "),
    ],
)
def test_an_unknown_command_is_told_with_the_nearest_one(name: str, said: str) -> None:
    ran = CliRunner().invoke(cli, [name])
    assert ran.exit_code == click.UsageError.exit_code
    assert f"Error: {said}" in ran.output


def test_after_a_command_that_failed_last_is_no_older_finding(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    keep_last(store, ["f-0123456789abcdef"])
    ran = CliRunner().invoke(cli, ["--store", str(store.folder), "check", "no-such.ops", "--target", "vfat"])
    assert ran.exit_code
    with pytest.raises(NotInStoreError, match="found nothing"):
        id_named(store, "last")


@pytest.mark.parametrize("words", [["check", "--help"], ["hunt", "--no-such-option"], ["gat"]])
def test_help_and_a_wrong_command_line_look_for_nothing(tmp_path: Path, words: list[str]) -> None:
    store = Store(tmp_path / "store")
    keep_last(store, ["f-0123456789abcdef"])
    CliRunner().invoke(cli, ["--store", str(store.folder), *words])
    assert id_named(store, "last") == "f-0123456789abcdef"


def test_an_unknown_option_is_no_command() -> None:
    assert "No such option" in CliRunner().invoke(cli, ["--stor", "x"]).output
