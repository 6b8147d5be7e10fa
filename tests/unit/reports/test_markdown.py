"""Whatever text holds, Markdown shows it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from postcrash.model.text import visible
from postcrash.reports.markdown import escaped, markdown_row, markdown_table


def shown(markdown: str) -> str:
    """What a reader sees, by another program."""
    (paragraph,) = [token for token in MarkdownIt("commonmark").parse(f"x {markdown} x") if token.type == "inline"]
    assert paragraph.children is not None
    assert {token.type for token in paragraph.children} <= {"text", "text_special"}
    return "".join(token.content for token in paragraph.children).removeprefix("x ").removesuffix(" x")


@given(st.text())
def test_text_is_shown_as_it_is(text: str) -> None:
    assert shown(escaped(text)).split() == visible(text).split()


@pytest.mark.parametrize(
    "text", ["<b>", "&lt;", "a | b", "`x`", "[a](b)", "*a*", "_a_", "~~a~~", "$a$", "a\\", "\x1b[1m"]
)
def test_what_markdown_would_take_for_its_own(text: str) -> None:
    assert shown(escaped(text)) == visible(text)


def test_a_table_has_a_cell_for_each_text() -> None:
    lines = markdown_table(("a|b", "c"), [markdown_row(("1 | 2", "3\n4"))])
    html = MarkdownIt("commonmark").enable("table").render("\n".join(lines))
    assert html.split("<tbody>")[1].count("<td>") == 2
    assert "<td>1 | 2</td>" in html and "<td>3 4</td>" in html and "<th>a|b</th>" in html
