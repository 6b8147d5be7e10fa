"""The outermost help shows every command once, in a section, with the whole sentence that it starts with."""

import re

import click
from click.testing import CliRunner

from postcrash.harness.cli import cli


def test_the_help_shows_every_command_once_and_cuts_no_sentence() -> None:
    shown = CliRunner().invoke(cli, ["--help"]).output
    sections = shown[shown.index("Is everything here:") :]
    assert sorted(re.findall(r"^  (\S+) ", sections, re.MULTILINE)) == cli.list_commands(click.Context(cli))
    assert "..." not in sections
    assert re.findall(r"^\S.*:$", sections, re.MULTILINE)[:2] == ["Is everything here:", "Judge a file system:"]
