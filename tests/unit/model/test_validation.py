import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from postcrash.model.validation import (
    TomlError,
    TooLargeError,
    first_objection,
    read_bounded,
    read_toml,
    shown,
    unknown_name,
)


@dataclass
class Three:
    one: int
    two: int
    three: int


SCHEMA = TypeAdapter(dict[str, dict[str, int]])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"a": {"b": "many"}}, "a.b: Input should be a valid integer, unable to parse .*, found 'many'"),
        ([], r"its text: Input should be a valid dictionary, found \[\]"),
        ({"\x1b[2J": 1}, r"'\\x1b\[2J': Input should be a valid dictionary, found 1"),
        ({"a": "x" * 1000}, "a: Input should be a valid dictionary, found 'x{79}…"),
    ],
)
def test_the_place_and_the_value_are_told(given: Any, said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        SCHEMA.validate_python(given)
    assert re.fullmatch(said, first_objection(caught.value))


def test_all_fields_that_are_missing_are_told_at_once() -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(dict[str, Three]).validate_python({"a": {"two": 2}, "b": {}})
    assert first_objection(caught.value) == "a.one, a.three: Field required"


def test_of_a_text_that_is_no_json_the_column_is_told() -> None:
    with pytest.raises(ValidationError) as caught:
        SCHEMA.validate_json("{")
    assert first_objection(caught.value).startswith("its text: Invalid JSON: EOF while parsing")


def test_a_place_is_one_short_line() -> None:
    for name, told in (("a\n\x1bb", r"'a\\n\\x1bb'"), ("y" * 1000, "y{80}…")):
        with pytest.raises(ValidationError) as caught:
            SCHEMA.validate_python({name: 1})
        assert re.match(f"{told}: Input should be", first_objection(caught.value))


@pytest.mark.parametrize("text", ["a = " + "9" * 5000, "a = " + "[" * 5000, "a = " + "{a=" * 5000, "a ="])
def test_toml_that_python_cannot_take_in_is_no_toml(tmp_path: Path, text: str) -> None:
    (tmp_path / "file.toml").write_text(text)
    with pytest.raises(TomlError, match=r"file\.toml: not TOML: ."):
        read_toml(tmp_path / "file.toml")


@pytest.mark.parametrize(
    ("text", "line"), [("a = [\n", 1), ("a = [\n1,\n2,\n\n", 3), ("b = 1\na =", 2), ('a = """\nx\n', 2), ("a", 1)]
)
def test_toml_that_ends_too_soon_has_a_line(tmp_path: Path, text: str, line: int) -> None:
    (tmp_path / "file.toml").write_text(text)
    with pytest.raises(TomlError, match=rf"not TOML: .* \(at the end, line {line}\)$"):
        read_toml(tmp_path / "file.toml")


def test_a_key_of_thousands_of_parts_is_refused_before_it_takes_seconds(tmp_path: Path) -> None:
    file = tmp_path / "many.toml"
    file.write_text("fine = 1\n" + ".".join("a" * 12_000) + " = 1\n")
    with pytest.raises(TomlError, match=r"many.toml:2: more than 500 dots in a line"):
        read_toml(file)


def test_no_more_is_read_than_may_be_there(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read_bounded(file, 5) == b"12345"
    for endless in (file, Path("/dev/zero")):
        with pytest.raises(TooLargeError, match=f"{endless}: more than 4 bytes"):
            read_bounded(endless, 4)


def test_a_value_is_shown_whatever_it_is() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert shown(deep) == "list with too many levels"
    assert len(unknown_name("target", "x" * 10_000, ["a"])) < 150
