"""The manual pages: groff reads each without a warning, and what `--help` says of commands and options is there."""

import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest

import postcrash
from postcrash.harness.cli import manual
from postcrash.harness.cli.main import cli
from postcrash.harness.cli.manual import manual_pages, write_manual_pages

PAGES = manual_pages()


def read(source: str, width: int = 1_000) -> tuple[str, str]:
    """What `man` shows of a page, without bold letters, and what groff objects to."""
    groff = shutil.which("groff")
    assert groff is not None, "groff is missing: run  tools/setup packages"
    command = [groff, "-man", "-ww", "-Tutf8", "-P-cbou", f"-rLL={width}n"]
    done = subprocess.run(command, input=source, capture_output=True, encoding="utf-8", check=True)
    return done.stdout, done.stderr


def command_named(page: str) -> click.Context:
    """The command of a page. Those whose name has a hyphen are commands of the outermost group."""
    words = page.removesuffix(".1").removeprefix("postcrash").removeprefix("-")
    context = click.Context(cli, info_name="postcrash")
    for name in words.split("-", 1) if words.startswith("kernels-") else [words] * bool(words):
        assert isinstance(context.command, click.Group)
        command = context.command.get_command(context, name)
        assert command is not None, name
        context = click.Context(command, info_name=name, parent=context)
    return context


def test_there_is_a_page_for_each_command() -> None:
    expected = {f"postcrash-{name}.1" for name in cli.list_commands(click.Context(cli))}
    assert len(expected) > 20
    assert {"postcrash.1", "postcrash-kernels-fetch.1"} < set(PAGES)
    assert {page for page in PAGES if not page.startswith("postcrash-kernels-")} == expected | {"postcrash.1"}


@pytest.mark.parametrize("page", PAGES)
def test_groff_reads_it_without_a_warning(page: str) -> None:
    shown, warnings = read(PAGES[page], 80)
    assert warnings == ""
    assert [head for head in ("NAME", "SYNOPSIS", "OPTIONS", "SEE ALSO") if f"\n{head}\n" not in shown] == []
    assert f"postcrash {postcrash.__version__}" in shown


def test_what_is_no_page_is_objected_to() -> None:
    """Otherwise the test above would be satisfied by anything."""
    assert "macro" in read(".TH x 1\n.SH NAME\n.wrong\n")[1]


@pytest.mark.parametrize("page", PAGES)
def test_each_option_and_command_has_its_line(page: str) -> None:
    context = command_named(page)
    lines = [line.strip() for line in read(PAGES[page])[0].splitlines()]
    words = [" ".join(line.split()) for line in lines]
    options = [each for each in context.command.get_params(context) if isinstance(each, click.Option)]
    for term, text in filter(None, (option.get_help_record(context) for option in options)):
        if term != "--help":
            assert any(line.startswith(term) for line in lines), term
            assert any(" ".join(text.split()) in line for line in words), text
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            assert any(re.match(rf"{name}( |$)", line) for line in lines), name


@pytest.mark.parametrize("page", PAGES)
def test_prose_is_filled_and_examples_are_not(page: str) -> None:
    """A paragraph with fixed lines is wider than a terminal. Only lists and commands have them."""
    for block in re.findall(r"\.EX\n(.*?)\n\.EE", PAGES[page], re.DOTALL):
        head, *rest = block.splitlines()
        assert head.endswith(":") or not head[0].isalpha(), head
        assert all(not line[0].isalnum() for line in rest), block


def test_the_texts_of_help_have_no_word_of_click() -> None:
    assert [page for page, text in PAGES.items() if re.search("INTEGER|FLOAT|TEXT", text)] == []


def test_what_roff_would_take_for_its_own_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command("odd", help=".first line\n'quoted' \\fB `a` ^ ~ ✗ --x\n\n\b\nExample:\n  .hidden  -n '\\n'")
    def odd() -> None:
        """Nothing."""

    monkeypatch.setattr(manual, "cli", odd)
    shown, warnings = read(manual_pages()["postcrash.1"])
    assert warnings == ""
    assert ".first line 'quoted' \\fB `a` ^ ~ ✗ --x" in shown
    assert "  .hidden  -n '\\n'\n" in shown


def test_the_files_are_written(tmp_path: Path) -> None:
    write_manual_pages(tmp_path / "new/man1")
    assert {path.name: path.read_text("ascii") for path in (tmp_path / "new/man1").iterdir()} == PAGES
