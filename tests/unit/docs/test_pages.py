"""What runs the examples of pages: it must notice each difference."""

from pathlib import Path

import pytest

from ...pages import Example, examples, with_ids

PAGE = """
```console
$ one
first f-00000001 …
…
last
$ two <<END
> of two lines
>
> END
$ three f-00000001
```
```sh
not run
```
"""


def test_commands_and_output_are_told_apart() -> None:
    assert list(examples(PAGE)) == [
        Example("one", ["first f-00000001 …", "…", "last"]),
        Example("two <<END\nof two lines\n\nEND"),
        Example("three f-00000001"),
    ]


def test_an_id_stands_for_the_real_one_from_then_on() -> None:
    one, _, three = examples(PAGE)
    ids = one.found("first f-abcdef12 in 3 s\nwhatever\nmore\nlast\n", {})
    assert ids == {"f-00000001": "f-abcdef12"}
    assert with_ids(three.command, ids) == "three f-abcdef12"
    assert Example("", ["is f-00000001"]).found("is f-abcdef12\n", ids) == {}


@pytest.mark.parametrize(
    "printed",
    ["", "first f-abcdef12 x\n", "first c-abcdef12 x\nlast\n", "first f-abcdef12 x\nlast\nmore\n", "x\nlast\n"],
)
def test_other_output_is_an_error(printed: str) -> None:
    with pytest.raises(AssertionError, match="but the page says"):
        next(examples(PAGE)).found(printed, {})


def test_another_id_is_an_error() -> None:
    with pytest.raises(AssertionError):
        Example("", ["f-00000001"]).found("f-abcdef12\n", {"f-00000001": "f-12abcdef"})
    with pytest.raises(AssertionError):
        Example("", ["f-00000001 f-00000001"]).found("f-abcdef12 f-abcdef13\n", {})


def test_output_without_a_command_is_an_error() -> None:
    with pytest.raises(AssertionError, match="must begin with a command"):
        list(examples("```console\nfirst\n```\n"))


def test_each_line_of_output_counts() -> None:
    assert Example("true").found("", {}) == {}
    with pytest.raises(AssertionError):
        Example("true").found("a word\n", {})


def test_the_tutorials_have_examples() -> None:
    docs = Path(__file__).resolve().parents[3] / "docs"
    for page in docs.glob("tutorial*.md"):
        assert len(list(examples(page.read_text(encoding="utf-8")))) >= 5, page
