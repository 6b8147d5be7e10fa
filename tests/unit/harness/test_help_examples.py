"""Each command teaches by examples, and each example is a command that postcrash understands."""

from pathlib import Path

import click
import pytest

from postcrash.harness.cli.main import cli
from postcrash.harness.examination.session import Session

from ...help_examples import contexts, examples_of, words_of

EVERY = [example for context in contexts() for example in examples_of(context)]
FOLDERS = ("my-bugs", "copy-of-data", "out/lib/modules/6.16.0", "arch/x86/boot", "examples", "corpus/fstests")
FILES = ("linux", "arch/x86/boot/bzImage", "examples/rename-replace.ops", "examples/create-fsync.ops")
"""What examples take for granted: folders and files of the user's."""


def parsed(words: list[str]) -> list[str]:
    """The names of the commands that the words stand for. Raises ClickException for what none takes."""
    context: click.Context = cli.make_context("postcrash", list(words), obj=Session(Path("absent")))
    names = []
    while isinstance(context.command, click.Group):
        name, command, rest = context.command.resolve_command(context, [*context._protected_args, *context.args])
        assert name is not None
        assert command is not None
        context = command.make_context(name, rest, parent=context)
        names.append(name)
    return names


@pytest.mark.parametrize("context", [*contexts()], ids=lambda context: context.command_path)
def test_each_command_has_an_example(context: click.Context) -> None:
    own = [example for example in examples_of(context) if words_of(example)]
    assert own
    if not isinstance(context.command, click.Group):
        path = context.command_path.split()[1:]
        assert any(words_of(example)[: len(path)] == path for example in own)


@pytest.mark.parametrize("example", EVERY)
def test_each_example_is_understood(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FOLDERS:
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    for name in FILES:
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert parsed(words_of(example))


@pytest.mark.parametrize("words", [["check"], ["hunt", "--target", "xfs", "--opps", "1"], ["no-such-command"]])
def test_what_is_wrong_is_not_understood(words: list[str]) -> None:
    """Otherwise the test above would be satisfied by anything."""
    with pytest.raises(click.ClickException):
        parsed(words)
