"""Manual pages of the commands, from the same texts as `--help`: `python -m postcrash.harness.cli.manual FOLDER`."""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

import postcrash
from postcrash.harness.cli.main import SENTENCE_MAX, cli

_NAME = "postcrash"
_NEVER_WRAPPED = "\b\n"
"""What click has before a paragraph whose lines stay as they are."""
_ESCAPES = {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}


class _Roff(click.HelpFormatter):
    """A help text as the source of a manual page."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """The section SYNOPSIS, and the head of the section for the text that follows."""
        self.write(f".SH SYNOPSIS\n.B {_escaped(prog)}\n{_escaped(args)}\n.SH DESCRIPTION\n")

    def write_heading(self, heading: str) -> None:
        """The head of a section."""
        self.write(f".SH {heading.upper()}\n")

    def write_paragraph(self) -> None:
        """Nothing: a head stands apart by itself."""

    def write_text(self, text: str) -> None:
        """Paragraphs."""
        for paragraph in re.split(r"\n{2,}", text.strip("\n")):
            if paragraph.startswith(_NEVER_WRAPPED):
                self.write(f".PP\n.EX\n{_escaped(paragraph.removeprefix(_NEVER_WRAPPED))}\n.EE\n")
            else:
                self.write(f".PP\n{_escaped(paragraph)}\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Options, or commands: each with what it is for."""
        for term, text in rows:
            self.write(f".TP\n.B {_escaped(term)}\n{_escaped(text)}\n")


def manual_pages() -> dict[str, str]:
    """The pages of section 1 by the names of their files: postcrash.1, and one for each command and each below it."""
    return {f"{_page_name(context)}.1": _page(context) for context in _contexts(cli, _NAME, None)}


def _contexts(command: click.Command, name: str, parent: click.Context | None) -> Iterator[click.Context]:
    """The command, and all below it."""
    context = command.context_class(command, info_name=name, parent=parent, **command.context_settings)
    yield context
    for _, below in _commands_below(context):
        yield from _contexts(below, below.name or "", context)


def _commands_below(context: click.Context) -> Iterator[tuple[str, click.Command]]:
    group = context.command
    if not isinstance(group, click.Group):
        return
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        yield name, command


def _page(context: click.Context) -> str:
    name = _page_name(context)
    summary = context.command.get_short_help_str(SENTENCE_MAX).removesuffix(".")
    text = _Roff(width=SENTENCE_MAX)
    context.command.format_help(context, text)
    others = [*_above(context), *(f"{name}-{below}" for below, _ in _commands_below(context))]
    related = ",\n".join(f".BR {_escaped(other)} (1)" for other in others)
    return (
        f'.TH {_escaped(name.upper())} 1 "" "{_NAME} {postcrash.__version__}" "Commands of {_NAME}"\n'
        f".ad l\n.SH NAME\n{_escaped(name)} \\- {_escaped(summary)}\n{text.getvalue()}.SH SEE ALSO\n{related}\n"
    )


def _above(context: click.Context) -> list[str]:
    """The pages of the groups that the command is in, the outermost first."""
    return [] if context.parent is None else [*_above(context.parent), _page_name(context.parent)]


def _page_name(context: click.Context) -> str:
    return context.command_path.replace(" ", "-")


def _escaped(text: str) -> str:
    """The text, escaped so that roff takes none of it for a request. Its lines stay lines."""
    plain = "".join(_ESCAPES.get(each, each) for each in text)
    ascii_only = re.sub(r"[^\x00-\x7f]", lambda match: rf"\[u{ord(match[0]):04X}]", plain)
    return re.sub(r"^\.", r"\\&.", ascii_only, flags=re.MULTILINE)


def write_manual_pages(folder: Path) -> None:
    """Write all pages into the folder, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in manual_pages().items():
        (folder / name).write_text(text, "ascii")


if __name__ == "__main__":
    write_manual_pages(Path(sys.argv[1]))
