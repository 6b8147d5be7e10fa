"""Each key of a TOML file is found in the line in which it is set."""

import time
import tomllib

import pytest

from postcrash.model.places_in_toml import line_of

TEXT = """\
targets = ["a"]   # line 1
"quoted key" = 2
dotted.key = 3

[parts.small]
hunt = 1
list = [
  "hunt = 9",
]

[parts.'other one']   # a comment
nested = { deep = { deeper = 1 } }

[[array]]
name = "x"
"""


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (["targets"], 1),
        (["targets", "0"], 1),
        (["quoted key"], 2),
        (["dotted", "key"], 3),
        (["parts", "small"], 5),
        (["parts", "small", "hunt"], 6),
        (["parts", "small", "list", "0"], 7),
        (["parts", "small", "absent"], 5),
        (["parts", "other one"], 11),
        (["parts", "other one", "nested", "deep", "deeper"], 12),
        (["array", "name"], 15),
        (["nowhere"], 1),
        ([], 1),
    ],
)
def test_a_key_is_found_in_its_line(place: list[str], line: int) -> None:
    tomllib.loads(TEXT)
    assert line_of(TEXT, place) == line


@pytest.mark.parametrize("text", ["a" * 60_000, "a." * 30_000, "a " * 30_000, '"a"' * 20_000, " " * 60_000])
def test_a_long_line_that_sets_nothing_takes_no_time(text: str) -> None:
    """A pattern with repetitions in repetitions would try every way to divide the line."""
    begun = time.process_time()
    assert line_of(text, ["a"]) == 1
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("text", ["", "= 1", "[[[", "[a", "\0", '"""\n[x]\n'])
def test_what_is_no_toml_has_a_line_too(text: str) -> None:
    assert line_of(text, ["a"]) >= 1
