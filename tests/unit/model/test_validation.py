import re
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from postcrash.model.validation import first_objection

SCHEMA = TypeAdapter(dict[str, dict[str, int]])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"a": {"b": "many"}}, "a.b: Input should be a valid integer, unable to parse .*, found 'many'"),
        ([], r"its text: Input should be a valid dictionary, found \[\]"),
        ({"a": "x" * 1000}, "a: Input should be a valid dictionary, found 'x{79}…"),
    ],
)
def test_the_place_and_the_value_are_told(given: Any, said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        SCHEMA.validate_python(given)
    assert re.fullmatch(said, first_objection(caught.value))


def test_of_a_text_that_is_no_json_the_column_is_told() -> None:
    with pytest.raises(ValidationError) as caught:
        SCHEMA.validate_json("{")
    assert first_objection(caught.value).startswith("its text: Invalid JSON: EOF while parsing")


def test_a_place_is_one_short_line() -> None:
    for name, shown in (("a\n\x1bb", r"'a\\n\\x1bb'"), ("y" * 1000, "y{80}…")):
        with pytest.raises(ValidationError) as caught:
            SCHEMA.validate_python({name: 1})
        assert re.match(f"{shown}: Input should be", first_objection(caught.value))
