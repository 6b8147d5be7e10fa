"""Words survive quoting and splitting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postcrash.model.quoting import LineError, quote, split_line

PRINTABLE = st.text(st.characters(codec="utf-8").filter(str.isprintable))


@given(st.lists(PRINTABLE))
def test_quoted_words_come_back(words: list[str]) -> None:
    assert [token.text for token in split_line(" ".join(map(quote, words)))] == words


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", []),
        ("  \t ", []),
        ("# all comment", []),
        ("a b # c", ["a", "b"]),
        ("a b#c", ["a", "b#c"]),
        ('"a b"\t"#c"', ["a b", "#c"]),
        (r'"say \"x\" \\"', ['say "x" \\']),
        (r"back\slash", [r"back\slash"]),
        ('""', [""]),
        ("it's", ["it's"]),
    ],
)
def test_split(line: str, words: list[str]) -> None:
    assert [token.text for token in split_line(line)] == words


@pytest.mark.parametrize(
    ("line", "column"),
    [('a "b', 3), ('a b"c"', 3), ('"a"b', 1), (r'"a\n"', 1), ("a \x00", 3), ("a\xa0b", 1), ("a\u2028", 1)],
)
def test_bad_lines_name_the_column(line: str, column: int) -> None:
    with pytest.raises(LineError) as caught:
        split_line(line)
    assert caught.value.column == column


def test_columns_count_from_one_and_cover_the_quotes() -> None:
    token = split_line('  "a b" c')[0]
    assert (token.column, token.end) == (3, 8)
