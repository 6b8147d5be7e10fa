"""Text from a guest can be shown: nothing in it moves a cursor, hides a character or turns the reading direction."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postcrash.model.text import cut, one_line, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("a b", "a b"),
        ("a\n\tb", "a\n\tb"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\r\nb\x00\x7f", "a\\r\nb\\x00\\x7f"),
        ("\u202etxt\u200b\u2028", "\\u202etxt\\u200b\\u2028"),
        ("\udcff", "\\udcff"),
        ("\U000e0001", "\\U000e0001"),
        ("ä€\U0001f469 é\x9b", "ä€\U0001f469 é\\x9b"),
        ("'\"\\", "'\"\\"),
    ],
)
def test_what_does_not_print_is_told_as_an_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text(st.characters()))
def test_whatever_it_holds_it_can_be_printed_and_is_shown_once(text: str) -> None:
    shown = visible(text)
    assert all(character in "\n\t" or character.isprintable() for character in shown)
    assert visible(shown) == shown
    assert one_line(text).isprintable()
    shown.encode()


@pytest.mark.parametrize(
    ("text", "line"),
    [("", ""), ("  a \n\n\tb  ", "a b"), ("\n", ""), ("a\x0bb\rc", "a\\x0bb\\rc"), ("a\u00a0b", "a\\xa0b")],
)
def test_white_space_of_a_line_is_one_space(text: str, line: str) -> None:
    assert one_line(text) == line


@pytest.mark.parametrize(("most", "told"), [(4, "abcd"), (9, "abcd"), (3, "abc…"), (1, "a…"), (0, "…")])
def test_only_what_is_too_long_is_cut(most: int, told: str) -> None:
    assert cut("abcd", most) == told
    assert cut("", most) == ""
