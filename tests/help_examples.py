"""The examples that `--help` shows: the lines below `Example:` or `Examples:` that begin with postcrash."""

import re
import shlex
from collections.abc import Iterator

import click

from postcrash.harness.cli.main import cli

_EXAMPLES = re.compile(r"^ *(?:Examples?|Start with):\n((?: {2,}\S.*\n?)+)", re.MULTILINE)
_BISECT = "git bisect run "
_REMARK = re.compile(r" {3,}.*")
"""What stands behind a command."""


def contexts(
    command: click.Command = cli, name: str = "postcrash", parent: click.Context | None = None
) -> Iterator[click.Context]:
    """Every command, with the groups that it is in."""
    context = click.Context(command, info_name=name, parent=parent)
    yield context
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            assert found is not None
            yield from contexts(found, each, context)


def examples_of(context: click.Context) -> list[str]:
    """The examples of one command, a line each."""
    found = _EXAMPLES.search(context.command.help or "")
    lines = [] if found is None else found[1].replace("\\\n", " ").splitlines()
    commands = (_REMARK.sub("", line.strip().removeprefix(_BISECT)) for line in lines)
    return [each for line in commands for each in line.split(" && ") if each.startswith("postcrash ")]


def words_of(example: str) -> list[str]:
    """The arguments of postcrash."""
    return shlex.split(example)[1:]
