"""Dataclasses become JSON values and come back the same. What was not written so is refused with its place."""

import json
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from postcrash.store.json_codec import Json, JsonObject, PlainError, from_plain, to_plain


class Colour(Enum):
    """An enumeration whose values are not its names."""

    RED = 7
    DARK_BLUE = 8


@dataclass(frozen=True)
class Inner:
    """A dataclass within another."""

    number: int
    pair: tuple[int, str]


@dataclass(frozen=True)
class Outer:
    """One field of each kind."""

    text: str
    is_so: bool
    colour: Colour
    word: Literal["kept", "lost"]
    obj: Json
    inner: Inner
    many: tuple[Inner, ...]
    maybe: Inner | None
    colours: tuple[Colour, ...] | None = None
    late: int = 3
    later: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Named(JsonObject):
    """An object whose field has a pattern, twice in another, so that pydantic refers to its definition."""

    id: Annotated[str, Field(pattern="^[a-f]{2}$")]
    others: tuple["Named", ...] = ()


OUTER = Outer(
    text="a\ud800\n",
    is_so=True,
    colour=Colour.DARK_BLUE,
    word="lost",
    obj={"a": [1, None, {"b": 2.5}]},
    inner=Inner(-(2**70), (0, "x")),
    many=(Inner(1, (2, "y")), Inner(3, (4, ""))),
    maybe=None,
    colours=(Colour.RED,),
)


def test_the_json_is_exactly_this() -> None:
    assert to_plain(OUTER) == {
        "text": "a\ud800\n",
        "is_so": True,
        "colour": "dark_blue",
        "word": "lost",
        "obj": {"a": [1, None, {"b": 2.5}]},
        "inner": {"number": -(2**70), "pair": [0, "x"]},
        "many": [{"number": 1, "pair": [2, "y"]}, {"number": 3, "pair": [4, ""]}],
        "maybe": None,
        "colours": ["red"],
        "late": 3,
        "later": {},
    }


def test_it_comes_back_through_json() -> None:
    assert from_plain(Outer, json.loads(json.dumps(to_plain(OUTER))), "it") == OUTER


@given(
    st.builds(
        Inner,
        number=st.integers(),
        pair=st.tuples(st.integers(), st.text()),
    )
)
def test_every_value_comes_back(value: Inner) -> None:
    assert from_plain(Inner, json.loads(json.dumps(to_plain(value))), "it") == value


def test_only_a_field_with_a_default_may_be_missing() -> None:
    plain = to_plain(OUTER)
    for each in fields(Outer):
        less = {name: value for name, value in plain.items() if name != each.name}
        if each.name in ("colours", "late", "later"):
            assert (
                getattr(from_plain(Outer, less, "it"), each.name)
                == {"colours": None, "late": 3, "later": {}}[each.name]
            )
        else:
            with pytest.raises(PlainError, match=r"^it: expected the fields text, is_so, colour"):
                from_plain(Outer, less, "it")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"text": 1}, "it.text: expected text, found 1"),
        ({"text": None}, "it.text: expected text, found None"),
        ({"is_so": 1}, "it.is_so: expected true or false, found 1"),
        ({"is_so": None}, "it.is_so: expected true or false, found None"),
        ({"late": True}, "it.late: expected an integer, found True"),
        ({"late": 3.0}, "it.late: expected an integer, found 3.0"),
        ({"late": "3"}, "it.late: expected an integer, found '3'"),
        ({"obj": []}, "it.obj: expected an object, found []"),
        ({"colour": "DARK_BLUE"}, "it.colour: expected one of red, dark_blue, found 'DARK_BLUE'"),
        ({"colour": 8}, "it.colour: expected one of red, dark_blue, found 8"),
        ({"colour": []}, "it.colour: expected one of red, dark_blue, found []"),
        ({"word": "stable"}, "it.word: expected one of kept, lost, found 'stable'"),
        ({"inner": None}, "it.inner: expected an object, found None"),
        ({"inner": {"number": 1, "pair": [1]}}, "it.inner.pair: expected 2 items, found [1]"),
        ({"inner": {"number": 1, "pair": [1, "x", 2]}}, "it.inner.pair: expected 2 items, found [1, 'x', 2]"),
        ({"inner": {"number": 1, "pair": ["x", 1]}}, "it.inner.pair[0]: expected an integer, found 'x'"),
        ({"many": {}}, "it.many: expected an array, found {}"),
        ({"many": "ab"}, "it.many: expected an array, found 'ab'"),
        ({"many": [{"number": 1, "pair": [1, "x"]}, 7]}, "it.many[1]: expected an object, found 7"),
        ({"maybe": 0}, "it.maybe: expected an object, found 0"),
        ({"colours": ["red", None]}, "it.colours[1]: expected one of red, dark_blue, found None"),
        (
            {"more": 1},
            "it: expected the fields text, is_so, colour, word, obj, inner, many, maybe, colours, late, later",
        ),
    ],
)
def test_what_was_not_written_so_is_refused_with_its_place(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(PlainError) as caught:
        from_plain(Outer, {**to_plain(OUTER), **changed}, "it")
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("value", [None, 3, "text", [], [{"number": 1, "pair": [1, "x"]}]])
def test_what_is_no_object_is_refused(value: object) -> None:
    with pytest.raises(PlainError, match=r"^it: expected an object, found "):
        from_plain(Inner, value, "it")


def test_a_large_value_is_not_told_whole() -> None:
    with pytest.raises(PlainError) as caught:
        from_plain(Inner, {"number": "9" * 10**6, "pair": [1, "x"]}, "it")
    assert len(str(caught.value)) < 200


def test_an_object_reads_and_writes_itself_and_errors_begin_with_its_name() -> None:
    named = Named("ab", (Named("cd"), Named("ef")))
    assert Named.from_json(json.loads(json.dumps(named.to_json()))) == named
    with pytest.raises(PlainError, match=r"^named\.others\[1\]\.id: expected text that matches \^\[a-f\]"):
        Named.from_json({"id": "ab", "others": [{"id": "cd"}, {"id": "xyz"}]})
    with pytest.raises(PlainError, match=r"^named\.others\[0\]: expected the fields id, others, found \[\]$"):
        Named.from_json({"id": "ab", "others": [{}]})


def test_any_json_is_kept_in_an_object() -> None:
    """What a stranger's bundle holds cannot always be put into UTF-8."""
    obj = {"\ud800": [{"\ud801": "\ud802", "n": 2**300}]}
    outer = replace(OUTER, obj=obj)
    assert from_plain(Outer, json.loads(json.dumps(to_plain(outer))), "it") == outer
