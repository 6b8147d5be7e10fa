"""What runs the examples of pages: it must notice each difference."""

import re
from pathlib import Path

import pytest

from ...pages import Example, examples

DOCS = Path(__file__).resolve().parents[3] / "docs"
TUTORIALS = sorted(DOCS.glob("tutorial*.md"))
PAGE = """
```console
$ one
first f-… …
…
last
$ two <<END
> of two lines
>
> END
$ three last
```
```sh
not run
```
"""


def test_commands_and_output_are_told_apart() -> None:
    assert list(examples(PAGE)) == [
        Example("one", ["first f-… …", "…", "last"]),
        Example("two <<END\nof two lines\n\nEND"),
        Example("three last"),
    ]


def test_output_with_any_text_in_its_place_is_what_the_page_says() -> None:
    next(examples(PAGE)).check("first f-abcdef12 in 3 s\nwhatever\nmore\nlast\n")


@pytest.mark.parametrize(
    "printed",
    ["", "first f-abcdef12 x\n", "first c-abcdef12 x\nlast\n", "first f-abcdef12 x\nlast\nmore\n", "x\nlast\n"],
)
def test_other_output_is_an_error(printed: str) -> None:
    with pytest.raises(AssertionError, match="but the page says"):
        next(examples(PAGE)).check(printed)


def test_output_without_a_command_is_an_error() -> None:
    with pytest.raises(AssertionError, match="must begin with a command"):
        list(examples("```console\nfirst\n```\n"))


def test_each_line_of_output_counts() -> None:
    Example("true").check("")
    with pytest.raises(AssertionError):
        Example("true").check("a word\n")


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_the_tutorials_have_examples_that_run_on_each_machine(page: Path) -> None:
    """The id of a finding names the kernel, the image and the programs of the machine on which it was made."""
    found = list(examples(page.read_text(encoding="utf-8")))
    assert len(found) >= 5
    for example in found:
        assert not re.search(r"\b[frb]-[0-9a-f]{16}\b", "\n".join([example.command, *example.output])), example
